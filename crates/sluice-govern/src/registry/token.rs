//! Tokens as rows: who may ask for what over the network.

use serde::{Deserialize, Serialize};

/// A token, or a session that was opened with one. The secret itself is never
/// kept, only its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// In whose name things are done with it.
    pub principal: String,
    /// SHA-256 of the secret, in hexadecimal.
    pub sha256: String,
    /// `viewer`, `operator`, `approver`, `admin`: what it may do at most.
    pub roles: Vec<String>,
    /// Of that, only these permissions; all if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Groups of approvers that the principal is in, as policies name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The token that made it. It counts only as long as that one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether it stands for a person at a console.
    #[serde(default)]
    pub session: bool,
    /// When it was made.
    pub created_at_ms: u64,
    /// From when on it counts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}
