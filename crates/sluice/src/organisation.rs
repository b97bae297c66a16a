//! Organisations of a data directory.
//!
//! The first one is the directory itself; each other has a directory of its own
//! inside, with its own store, keys and tokens. So nothing of one can be reached
//! from another, whatever is asked.

use crate::cli::run::Data;
use crate::local::{self, Local};
use sluice_core::port::Clock as _;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::{Kind, Row, Token};
use sluice_server::auth::identities::{hash, row};
use sluice_server::auth::secret;
use sluice_server::limits::ORGANISATIONS_MAX;
use sluice_server::refused::{DATA_UNUSABLE, Done, Refused};
use sluice_server::service::Service;
use sluice_server::service::registry::{self, Asked, Mode};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The organisation that a data directory is by itself.
pub(crate) const DEFAULT: &str = "default";
/// Where the others are.
const OTHERS: &str = "organisations";
/// Where the first token of an admin is written to.
pub(crate) const ADMIN_FILE: &str = "admin.token";
/// In whose name the first token acts.
const ADMIN: &str = "admin";

/// There is no such organisation, or its name cannot be one.
pub(crate) const ORGANISATION_UNKNOWN: &str = "organisation_unknown";

/// Names that organisations may have.
pub(crate) fn fits(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-')
}

/// The directory of an organisation.
pub(crate) fn directory(data: &Data, name: &str) -> PathBuf {
    let dir = local::directory(data);
    if name == DEFAULT { dir } else { dir.join(OTHERS).join(name) }
}

/// Where the runs of an organisation are kept.
pub(crate) fn data(data: &Data, name: &str) -> Data {
    Data { dir: Some(directory(data, name)), seal_file: data.seal_file.clone() }
}

/// The organisations there are, the first one first.
pub(crate) fn all(data: &Data) -> Vec<String> {
    let others = std::fs::read_dir(local::directory(data).join(OTHERS)).into_iter().flatten();
    let names = others.flatten().filter(|entry| entry.path().join("sluice.db").exists());
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| fits(name) && name != DEFAULT)
        .collect();
    names.sort();
    names.truncate(ORGANISATIONS_MAX - 1);
    names.insert(0, DEFAULT.to_owned());
    names
}

/// An organisation that is there, opened to look and to change rows.
pub(crate) async fn open(base: &Data, name: &str) -> anyhow::Result<Local> {
    if !fits(name) || (name != DEFAULT && !all(base).iter().any(|one| one == name)) {
        let shown = sluice_core::visible::brief(name);
        let message = format!("there is no organisation `{shown}`");
        let remedy = "`sluice organisations list` shows those there are";
        return Err(Refused::new(ORGANISATION_UNKNOWN, message, remedy).into());
    }
    Local::open(&data(base, name), Agents::new(), Claims::None).await
}

/// Makes a token of somebody.
pub(crate) async fn make_token(
    service: &Service,
    by: &str,
    about: Token,
) -> anyhow::Result<(String, String)> {
    let mut entropy = SystemEntropy;
    let (secret, id) = (secret::make(&mut entropy), secret::id(&mut entropy));
    let token = Token { sha256: hash(&secret), ..about };
    let wish = |_: &[Row]| -> Done<Asked> {
        Ok(Asked { put: vec![row(&id, &token)], remove: Vec::new() })
    };
    registry::change(service, by, Mode::Write, &wish).await?;
    Ok((id, secret))
}

/// A token of an admin, as yet without a secret.
pub(crate) fn admin() -> Token {
    Token {
        principal: ADMIN.to_owned(),
        sha256: String::new(),
        roles: vec![ADMIN.to_owned()],
        scopes: None,
        groups: Vec::new(),
        parent: None,
        session: false,
        created_at_ms: SystemClock.now_ms(),
        expires_at_ms: None,
    }
}

/// Makes the first token where there is none, and writes it where only the owner
/// of the directory can read it. Answers the file.
pub(crate) async fn first_token(service: &Service, dir: &Path) -> anyhow::Result<Option<PathBuf>> {
    let rows = service.store.registry(None).await?.rows;
    if rows.iter().any(|row| row.kind == Kind::Token) {
        return Ok(None);
    }
    let (_, secret) = make_token(service, ADMIN, admin()).await?;
    let path = dir.join(ADMIN_FILE);
    let unusable = |error: std::io::Error| {
        let message = format!("the first token cannot be written to `{}`: {error}", path.display());
        Refused::new(DATA_UNUSABLE, message, "put the permissions of the directory right")
    };
    // One that is there is of a store that is gone.
    let _ = std::fs::remove_file(&path);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = opened.map_err(unusable)?;
    file.write_all(format!("{secret}\n").as_bytes()).map_err(unusable)?;
    Ok(Some(path))
}
