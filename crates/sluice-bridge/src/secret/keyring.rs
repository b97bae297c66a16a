//! The secrets that the operator declares, and the access that rows have to them.
//!
//! INVARIANT: a row's secret is read only if the operator declares it for the row's
//! organisation, or wrote the row; and only for a host that may receive it.

use super::hosts::Hosts;
use super::{NoSecret, Secret};
use crate::outbound::error::origin;
use reqwest::Url;
use sluice_core::secret::SecretRef;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Stands for every organisation.
pub const EVERY_ORGANISATION: &str = "*";

/// A secret that the operator declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Name that rows use.
    pub name: String,
    /// The variable or file with the value.
    pub from: SecretRef,
    /// Organisations that may use it in their rows.
    pub organisations: Vec<String>,
    /// Hosts that may receive it, or webhooks signed with it.
    pub hosts: Hosts,
}

/// The secrets that the rows of one organisation may use.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    organisation: String,
    declared: Arc<BTreeMap<String, Arc<Declared>>>,
    /// Directories that rows may not read files from.
    closed: Arc<[PathBuf]>,
}

impl Keyring {
    /// The secrets of an organisation. Nothing in the closed directories is read.
    pub fn new(
        organisation: &str,
        declared: impl IntoIterator<Item = Declared>,
        closed: Vec<PathBuf>,
    ) -> Keyring {
        let by_name = |one: Declared| (one.name.clone(), Arc::new(one));
        Keyring {
            organisation: organisation.to_owned(),
            declared: Arc::new(declared.into_iter().map(by_name).collect()),
            closed: closed.into(),
        }
    }

    /// The secret that a row names.
    pub fn of_row(&self, reference: &SecretRef, by_operator: bool) -> NamedSecret {
        let source = match reference {
            SecretRef::Named(name) => match self.find(name) {
                Some(declared) => SecretSource::Declared(Arc::clone(declared)),
                None => SecretSource::None(NoSecret::NotDeclared(name.clone())),
            },
            _ if by_operator => SecretSource::Machine(reference.clone()),
            _ => SecretSource::None(NoSecret::NotOfOperator(reference.clone())),
        };
        NamedSecret { source, closed: Arc::clone(&self.closed) }
    }

    /// The secret that a setting of the operator names.
    pub fn of_setting(&self, reference: &SecretRef) -> NamedSecret {
        match reference {
            SecretRef::Named(name) => {
                let source = match self.declared.get(name) {
                    Some(declared) => SecretSource::Declared(Arc::clone(declared)),
                    None => SecretSource::None(NoSecret::NotDeclared(name.clone())),
                };
                NamedSecret { source, closed: Arc::clone(&self.closed) }
            }
            _ => NamedSecret::of_operator(reference.clone()),
        }
    }

    /// Whether the organisation's rows may use a secret.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Every declared secret, with the reason if it cannot be read.
    pub fn check(&self) -> impl Iterator<Item = (&Declared, Option<NoSecret>)> + '_ {
        let tried = |one: &Declared| Secret::read_outside(&one.from, &self.closed).err();
        self.declared.values().map(move |one| (&**one, tried(one)))
    }

    fn find(&self, name: &str) -> Option<&Arc<Declared>> {
        let may = |one: &&Arc<Declared>| {
            let of = |each: &String| *each == self.organisation || each == EVERY_ORGANISATION;
            one.organisations.iter().any(of)
        };
        self.declared.get(name).filter(may)
    }
}

/// A secret that a row or a setting names. It is read anew each time, because it may change
/// while Sluice runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    source: SecretSource,
    closed: Arc<[PathBuf]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SecretSource {
    /// The operator's own reference: valid for every host.
    Machine(SecretRef),
    Declared(Arc<Declared>),
    None(NoSecret),
}

impl NamedSecret {
    /// A variable or file that the operator names outside of the registry.
    pub fn of_operator(reference: SecretRef) -> NamedSecret {
        let source = match reference {
            SecretRef::Named(name) => SecretSource::None(NoSecret::NotDeclared(name)),
            reference => SecretSource::Machine(reference),
        };
        NamedSecret { source, closed: Arc::from([]) }
    }

    /// Reads the secret for a request to the URL's host, or to sign one.
    pub fn read_for(&self, url: &str) -> Result<Secret, NoSecret> {
        if let SecretSource::Declared(declared) = &self.source {
            let fits = |url: Url| declared.hosts.contains(&url);
            if !Url::parse(url).is_ok_and(fits) {
                let host = origin(url).unwrap_or_else(|| "an address that is not valid".to_owned());
                return Err(NoSecret::NotForHost { name: declared.name.clone(), host });
            }
        }
        self.read()
    }

    /// Reads the secret to verify a signature. It must not be sent.
    pub fn read(&self) -> Result<Secret, NoSecret> {
        match &self.source {
            SecretSource::Machine(reference) => Secret::read_outside(reference, &self.closed),
            SecretSource::None(why) => Err(why.clone()),
            SecretSource::Declared(declared) => {
                let read = Secret::read_outside(&declared.from, &self.closed);
                read.map_err(|why| {
                    // The location of the secret is not shown to the
                    // organisation.
                    tracing::warn!(secret = declared.name, %why, "cannot read a secret");
                    NoSecret::NotReadable(declared.name.clone())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(organisation: &str) -> (tempfile::TempDir, Keyring) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "sk-declared-0001\n").unwrap();
        let declared = |name: &str, organisations: &[&str]| Declared {
            name: name.to_owned(),
            from: SecretRef::File(path.display().to_string()),
            organisations: organisations.iter().map(|one| (*one).to_owned()).collect(),
            hosts: Hosts::parse(["api.example.com"]).unwrap(),
        };
        let declared = [
            declared("own", &["default"]),
            declared("theirs", &["acme", "umbrella"]),
            declared("shared", &["*"]),
            Declared { from: SecretRef::Env("NOT_SET_9".to_owned()), ..declared("lost", &["*"]) },
        ];
        (dir, Keyring::new(organisation, declared, Vec::new()))
    }

    #[test]
    fn an_organisation_has_the_secrets_declared_for_it() {
        let url = "https://api.example.com/v1";
        let names = ["own", "theirs", "shared", "none"];
        for (organisation, has) in [
            ("default", [true, false, true, false]),
            ("acme", [false, true, true, false]),
            ("other", [false, false, true, false]),
        ] {
            let (_dir, keyring) = keyring(organisation);
            for (name, has) in names.into_iter().zip(has) {
                let key = keyring.of_row(&SecretRef::Named(name.to_owned()), true);
                let read = key.read_for(url);
                assert_eq!(read.is_ok(), has, "{organisation} {name}");
                assert_eq!(keyring.has(name), has);
                if let Err(why) = read {
                    assert_eq!(why, NoSecret::NotDeclared(name.to_owned()));
                }
            }
        }
    }

    #[test]
    fn a_secret_is_handed_out_for_its_hosts_alone() {
        let (_dir, keyring) = keyring("default");
        let key = keyring.of_row(&SecretRef::Named("own".to_owned()), false);
        assert_eq!(key.read_for("https://api.example.com/x").unwrap().expose(), "sk-declared-0001");
        for url in ["https://evil.example/", "https://api.example.com.evil.net/", "", "file:///x"] {
            assert!(matches!(key.read_for(url), Err(NoSecret::NotForHost { .. })), "{url}");
        }
        assert!(key.read().is_ok());
    }

    #[test]
    fn a_variable_or_file_works_in_rows_of_the_operator_alone() {
        let (dir, keyring) = keyring("default");
        let file = SecretRef::File(dir.path().join("key").display().to_string());
        let variable = SecretRef::Env("CARGO_PKG_NAME".to_owned());
        for reference in [file, variable] {
            assert!(keyring.of_row(&reference, true).read_for("https://any.example").is_ok());
            let refused = keyring.of_row(&reference, false).read().unwrap_err();
            assert_eq!(refused, NoSecret::NotOfOperator(reference));
        }
    }

    #[test]
    fn why_a_declared_secret_cannot_be_read_is_for_the_operator() {
        let (_dir, keyring) = keyring("acme");
        let lost = keyring.of_row(&SecretRef::Named("lost".to_owned()), false).read().unwrap_err();
        assert!(!lost.to_string().contains("NOT_SET_9"), "{lost}");
        let found: Vec<String> = keyring
            .check()
            .filter_map(|(one, why)| Some(format!("{}: {}", one.name, why?)))
            .collect();
        assert_eq!(found, ["lost: the variable `NOT_SET_9` is not set"]);
    }
}
