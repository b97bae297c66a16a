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
    /// Set for a command of the operator on a data directory.
    pub operator: Option<OperatorCommand>,
}

/// What a command on a data directory may do beyond what a token may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorCommand {
    /// Why changes of the registry skip the policies in force; recorded in the audit.
    pub break_glass: Option<String>,
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
            operator: None,
        }
    }

    /// The operator of a data directory, at the command line: the registry is shown
    /// with its secret references, and tokens need no parent.
    pub fn operator(name: &str, roles: Vec<String>, command: OperatorCommand) -> Caller {
        Caller { operator: Some(command), ..Caller::owner(name, roles) }
    }

    /// Whether the caller needs no token: it has the data directory.
    pub fn is_local(&self) -> bool {
        self.token.is_empty()
    }
}
