//! Tokens as rows: access to the API.

use serde::{Deserialize, Serialize};

/// A token, or a session that was opened with one. Only the hash of the secret is
/// stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The principal that it authenticates.
    pub principal: String,
    /// SHA-256 of the secret, in hexadecimal.
    pub sha256: String,
    /// `viewer`, `operator`, `approver`, `admin`: its largest set of permissions.
    pub roles: Vec<String>,
    /// Restricts it to these permissions; absent means all of its roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Groups of approvers that the principal belongs to, as policies name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The token that created it. It is valid only while that one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether it is a console session of a person.
    #[serde(default)]
    pub session: bool,
    /// Time of creation.
    pub created_at_ms: u64,
    /// Time of expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}
