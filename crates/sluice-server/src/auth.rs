//! Authentication and permissions of callers.
//!
//! INVARIANT: only the token determines the organisation, and a token can do at most what
//! its parent can do at this moment.

pub mod identities;
pub mod permission;
pub mod secret;

use permission::{Permission, Permissions};

/// The authenticated sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Name of the principal, as in journals and the audit.
    pub name: String,
    /// Id of the token.
    pub token: String,
    /// Id of the token that requests, streams and connections are charged to: for a session,
    /// the token that opened it.
    pub counted_as: String,
    /// What the caller may do.
    pub permissions: Permissions,
    /// Roles and groups in which the caller resolves approvals.
    pub roles: Vec<String>,
    /// Whether it is a session of the console, identified by cookie.
    pub session: bool,
}

impl Caller {
    /// Whether the caller has a permission.
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.has(permission)
    }

    /// The owner of a local data directory, who has all permissions.
    pub fn owner(name: &str, roles: Vec<String>) -> Caller {
        Caller {
            name: name.to_owned(),
            token: String::new(),
            counted_as: String::new(),
            permissions: Permissions::all(),
            roles,
            session: false,
        }
    }
}
