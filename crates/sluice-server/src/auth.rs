//! Who asks, and what they may ask for.
//!
//! INVARIANT: the organisation comes from the token and from nowhere else, and a
//! token can do at most what its parent can at this moment.

pub mod identities;
pub mod permission;
pub mod secret;

use permission::{Permission, Permissions};

/// Whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// In whose name: what journals and the audit say.
    pub name: String,
    /// The token's id.
    pub token: String,
    /// The token that its requests, streams and connections are counted as: of a
    /// session, the one that opened it.
    pub counted_as: String,
    /// What may be asked.
    pub permissions: Permissions,
    /// In which roles and groups questions are answered.
    pub roles: Vec<String>,
    /// Whether it is a person at a console, by cookie.
    pub session: bool,
}

impl Caller {
    /// Whether something may be asked.
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.has(permission)
    }

    /// Whoever has the data directory: nobody else decides there.
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
