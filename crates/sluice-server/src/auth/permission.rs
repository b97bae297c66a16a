//! Permissions, and the roles that grant them.

use sluice_govern::choice::choices;

choices! {
    /// A permission of a token.
    pub enum Permission, "a permission" {
        /// Read workflows and runs.
        WorkflowRead = "workflow:read",
        /// Change workflows, schedules and inbound webhooks.
        WorkflowWrite = "workflow:write",
        /// Start runs of registered workflows, and resume runs.
        WorkflowExecute = "workflow:execute",
        /// Start runs of documents that are not registered.
        WorkflowInline = "workflow:inline",
        /// Cancel and pause runs.
        RunCancel = "run:cancel",
        /// Read agents, gateways, policies, budgets and approvals.
        GovernanceRead = "governance:read",
        /// Resolve approvals.
        GovernanceApprove = "governance:approve",
        /// Change policies, budgets, roles, deployments and webhooks.
        GovernanceWrite = "governance:write",
        /// Change agents and their instructions.
        AgentWrite = "agent:write",
        /// Change gateways.
        GatewayWrite = "gateway:write",
        /// Read and verify the audit.
        AuditRead = "audit:read",
        /// Create and revoke tokens.
        TokenManage = "token:manage",
    }
}

impl Permission {
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(u16);

impl Permissions {
    /// The set of all permissions.
    pub fn all() -> Permissions {
        Permission::ALL.into_iter().collect()
    }

    /// Whether the set contains a permission.
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// The intersection of two sets.
    #[must_use]
    pub const fn and(self, other: Permissions) -> Permissions {
        Permissions(self.0 & other.0)
    }

    /// Whether the set is a subset of another.
    pub const fn within(self, other: Permissions) -> bool {
        self.0 & !other.0 == 0
    }

    /// The permissions of the set, in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |one| self.has(*one))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(iter: I) -> Permissions {
        Permissions(iter.into_iter().fold(0, |bits, one| bits | one.bit()))
    }
}

choices! {
    /// A role of a token.
    #[derive(schemars::JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    pub enum Role, "a role" {
        /// Reads workflows, runs and governance.
        Viewer = "viewer",
        /// Writes and runs workflows.
        Operator = "operator",
        /// Resolves approvals and reads the audit.
        Approver = "approver",
        /// Has all permissions.
        Admin = "admin",
    }
}

impl Role {
    /// The permissions that the role grants.
    pub fn permissions(self) -> Permissions {
        use Permission as P;
        let list: &[Permission] = match self {
            Role::Viewer => &[P::WorkflowRead, P::GovernanceRead],
            Role::Operator => &[
                P::WorkflowRead,
                P::WorkflowWrite,
                P::WorkflowExecute,
                P::WorkflowInline,
                P::RunCancel,
                P::GovernanceRead,
            ],
            Role::Approver => {
                &[P::WorkflowRead, P::GovernanceRead, P::GovernanceApprove, P::AuditRead]
            }
            Role::Admin => &Permission::ALL,
        };
        list.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_admins_create_tokens_and_only_approvers_approve() {
        let can = |role: Role, permission| role.permissions().has(permission);
        for role in [Role::Viewer, Role::Operator, Role::Approver] {
            assert!(!can(role, Permission::TokenManage), "{role:?}");
            assert!(!can(role, Permission::GovernanceWrite), "{role:?}");
        }
        assert!(!can(Role::Operator, Permission::GovernanceApprove));
        assert!(can(Role::Approver, Permission::GovernanceApprove));
        assert!(!can(Role::Approver, Permission::WorkflowExecute));
        assert!(Role::Viewer.permissions().within(Role::Operator.permissions()));
    }
}
