//! The tokens of an organisation, indexed for lookup.

use super::Caller;
use super::permission::{Permission, Permissions, Role};
use super::secret::{self, Digest};
use sluice_core::hex;
use sluice_govern::registry::{Kind, Row, Token};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of ancestors of a token.
pub(crate) const ANCESTORS_MAX: usize = 8;

/// Tokens by the hash of their secrets, as of one epoch of the registry.
#[derive(Debug, Default)]
pub struct Identities {
    /// The epoch of the registry.
    pub epoch: u64,
    by_digest: HashMap<Digest, String>,
    by_id: BTreeMap<String, Token>,
}

impl Identities {
    /// Reads the tokens among rows. A token that cannot be read authenticates no caller.
    pub fn read(epoch: u64, rows: &[Row]) -> Identities {
        let mut all = Identities { epoch, ..Identities::default() };
        for row in rows.iter().filter(|row| row.kind == Kind::Token) {
            let token = serde_json::from_value::<Token>(row.body.clone()).ok();
            let Some(token) = token else { continue };
            let Some(digest) = hex::parse(&token.sha256) else { continue };
            all.by_digest.insert(digest, row.name.clone());
            all.by_id.insert(row.name.clone(), token);
        }
        all
    }

    /// The caller whose secret has this hash, if the token is still valid.
    pub fn find(&self, digest: &Digest, now_ms: u64) -> Option<Caller> {
        let id = self.by_digest.get(digest)?;
        let (token, permissions) = self.standing(id, now_ms)?;
        let roles = token.roles.iter().chain(&token.groups).cloned().collect();
        Some(Caller {
            name: token.principal.clone(),
            token: id.clone(),
            counted_as: token
                .parent
                .clone()
                .filter(|_| token.session)
                .unwrap_or_else(|| id.clone()),
            permissions,
            roles,
            session: token.session,
            operator: None,
        })
    }

    /// A valid token and its permissions: at most those of each of its ancestors.
    pub fn standing(&self, id: &str, now_ms: u64) -> Option<(&Token, Permissions)> {
        let first = self.by_id.get(id)?;
        let (mut token, mut permissions) = (first, Permissions::all());
        for _ in 0..=ANCESTORS_MAX {
            if token.expires_at_ms.is_some_and(|at| at <= now_ms) {
                return None;
            }
            permissions = permissions.and(granted(token));
            match &token.parent {
                None => return Some((first, permissions)),
                Some(parent) => token = self.by_id.get(parent)?,
            }
        }
        None
    }

    /// A token and all its descendants; `None` if there is no such token.
    pub fn family(&self, id: &str) -> Option<BTreeSet<String>> {
        self.by_id.get(id)?;
        let mut family = BTreeSet::from([id.to_owned()]);
        loop {
            let known = family.len();
            let child = |one: &&String| {
                self.by_id[*one].parent.as_ref().is_some_and(|parent| family.contains(parent))
            };
            let children: Vec<String> = self.by_id.keys().filter(child).cloned().collect();
            family.extend(children);
            if family.len() == known {
                return Some(family);
            }
        }
    }

    /// All tokens, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Token)> {
        self.by_id.iter().map(|(id, token)| (id.as_str(), token))
    }
}

/// The permissions that a token itself grants. An unknown role or scope grants nothing.
pub fn granted(token: &Token) -> Permissions {
    let roles = token.roles.iter().filter_map(|word| Role::parse(word));
    let all: Permissions = roles.flat_map(|role| role.permissions().iter()).collect();
    match &token.scopes {
        None => all,
        Some(scopes) => {
            let scopes = scopes.iter().filter_map(|word| Permission::parse(word));
            all.and(scopes.collect())
        }
    }
}

/// The registry row of a token.
pub fn row(id: &str, token: &Token) -> Row {
    let body = serde_json::to_value(token).expect("a token is an object");
    Row { kind: Kind::Token, name: id.to_owned(), body }
}

/// The hash of a new secret, as stored in the row.
pub fn hash(secret: &str) -> String {
    secret::digest(secret).as_ref().map(secret::shown).unwrap_or_default()
}

#[cfg(test)]
mod tests;
