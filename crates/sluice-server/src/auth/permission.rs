//! Permissions, and the roles that grant them.

use serde::{Deserialize, Serialize};

macro_rules! permissions {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A permission of a token.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Permission {
            $($(#[$doc])* $variant,)*
        }

        impl Permission {
            /// All permissions.
            pub const ALL: &'static [Permission] = &[$(Permission::$variant,)*];

            /// The text form, as in tokens and the API.
            pub const fn as_str(self) -> &'static str {
                match self { $(Permission::$variant => $text,)* }
            }
        }
    };
}

permissions! {
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

impl Permission {
    /// Parses the text form.
    pub fn parse(word: &str) -> Option<Permission> {
        Permission::ALL.iter().copied().find(|one| one.as_str() == word)
    }

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
        Permission::ALL.iter().copied().collect()
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
        Permission::ALL.iter().copied().filter(move |one| self.has(*one))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(iter: I) -> Permissions {
        Permissions(iter.into_iter().fold(0, |bits, one| bits | one.bit()))
    }
}

/// A role of a token.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads workflows, runs and governance.
    Viewer,
    /// Writes and runs workflows.
    Operator,
    /// Resolves approvals and reads the audit.
    Approver,
    /// Has all permissions.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Approver, Role::Admin];

    /// The text form, as in tokens and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Approver => "approver",
            Role::Admin => "admin",
        }
    }

    /// Parses the text form.
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|one| one.as_str() == word)
    }

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
            Role::Admin => Permission::ALL,
        };
        list.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for one in Permission::ALL {
            assert_eq!(Permission::parse(one.as_str()), Some(*one));
        }
        for one in Role::ALL {
            assert_eq!(Role::parse(one.as_str()), Some(one));
        }
        assert_eq!(Permission::parse("workflow:Read"), None);
    }

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
