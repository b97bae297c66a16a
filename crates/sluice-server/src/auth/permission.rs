//! Permissions, and the roles that have them.

use serde::{Deserialize, Serialize};

macro_rules! permissions {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// Something that may be asked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Permission {
            $($(#[$doc])* $variant,)*
        }

        impl Permission {
            /// All of them.
            pub const ALL: &'static [Permission] = &[$(Permission::$variant,)*];

            /// The word on every wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Permission::$variant => $text,)* }
            }
        }
    };
}

permissions! {
    /// Look at workflows and runs.
    WorkflowRead = "workflow:read",
    /// Add and change workflows, and what starts them.
    WorkflowWrite = "workflow:write",
    /// Start runs of registered workflows, and let runs go on.
    WorkflowExecute = "workflow:execute",
    /// Start runs of documents that are not registered.
    WorkflowInline = "workflow:inline",
    /// Stop runs, and change their course.
    RunCancel = "run:cancel",
    /// Look at agents, gateways, policies, budgets and approvals.
    GovernanceRead = "governance:read",
    /// Answer approvals.
    GovernanceApprove = "governance:approve",
    /// Change policies, budgets, roles, deployments and webhooks.
    GovernanceWrite = "governance:write",
    /// Change agents, and what they are told.
    AgentWrite = "agent:write",
    /// Change gateways.
    GatewayWrite = "gateway:write",
    /// Read the audit, and verify it.
    AuditRead = "audit:read",
    /// Make and revoke tokens.
    TokenManage = "token:manage",
}

impl Permission {
    /// Reads the word.
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
    /// Every permission there is.
    pub fn all() -> Permissions {
        Permission::ALL.iter().copied().collect()
    }

    /// Whether it is among them.
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// Those in both.
    #[must_use]
    pub const fn and(self, other: Permissions) -> Permissions {
        Permissions(self.0 & other.0)
    }

    /// Whether all of these are in the other.
    pub const fn within(self, other: Permissions) -> bool {
        self.0 & !other.0 == 0
    }

    /// Them, in their order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.iter().copied().filter(move |one| self.has(*one))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(iter: I) -> Permissions {
        Permissions(iter.into_iter().fold(0, |bits, one| bits | one.bit()))
    }
}

/// What people and programs are to Sluice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Writes workflows and runs them.
    Operator,
    /// Answers approvals.
    Approver,
    /// Everything.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Approver, Role::Admin];

    /// The word on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Approver => "approver",
            Role::Admin => "admin",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// What it may ask for.
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
    fn only_an_admin_makes_tokens_and_only_approvers_answer() {
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
