//! Organisations of a data directory, or of a database.
//!
//! The first one is the directory itself. Every other one has a directory inside it, with its
//! own store, keys and tokens, or its own schema in a database. No request can reach the data
//! of another organisation.

use crate::cli::run::Data;
use crate::config;
use crate::data_location;
use crate::local::{self, Local};
use sluice_bridge::gitignore;
use sluice_core::port::Clock as _;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_govern::registry::{Kind, Row, Token};
use sluice_server::auth::identities::{hash, row};
use sluice_server::auth::secret;
use sluice_server::limits::ORGANISATIONS_MAX;
use sluice_server::refused::{DATA_UNUSABLE, Refused, ServiceResult};
use sluice_server::service::Service;
use sluice_server::service::registry::{self, ChangeOutcome, Mode, RowChange};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The first organisation.
pub(crate) const DEFAULT: &str = "default";
/// The directory of all other organisations.
const OTHERS: &str = "organisations";
/// The file of the first admin token.
pub(crate) const ADMIN_FILE: &str = "admin.token";
/// The principal of the first token.
const ADMIN: &str = "admin";

pub(crate) const ORGANISATION_UNKNOWN: &str = "organisation_unknown";

/// Whether a name is valid for an organisation.
pub(crate) fn fits(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-')
}

pub(crate) fn directory(data: &Data, name: &str) -> PathBuf {
    let dir = local::directory(data);
    if name == DEFAULT { dir } else { other(&dir, name) }
}

pub(crate) fn other(dir: &Path, name: &str) -> PathBuf {
    dir.join(OTHERS).join(name)
}

/// The location of an organisation.
pub(crate) fn data(data: &Data, name: &str) -> Data {
    let organisation = (name != DEFAULT).then(|| name.to_owned());
    let (seal_file, database_url) = (data.seal_file.clone(), data.database_url.clone());
    let accept_rollback = data.accept_rollback.clone();
    let dir = Some(directory(data, name));
    Data { dir, seal_file, database_url, organisation, accept_rollback }
}

/// The organisation of a location, by its directory if it is not named.
pub(crate) fn name_of(data: &Data) -> String {
    if let Some(name) = &data.organisation {
        return name.clone();
    }
    let dir = local::directory(data);
    let dir = std::fs::canonicalize(&dir).unwrap_or(dir);
    let among = dir.parent().filter(|among| among.file_name().is_some_and(|name| name == OTHERS));
    let is_other =
        among.and_then(Path::parent).is_some_and(|first| first.join("sluice.db").exists());
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|name| is_other && fits(name));
    name.unwrap_or(DEFAULT).to_owned()
}

pub(crate) fn first(dir: &Path) -> PathBuf {
    dir.ancestors().nth(2).unwrap_or(dir).to_owned()
}

/// All organisations, the first one first.
pub(crate) async fn all(data: &Data) -> anyhow::Result<Vec<String>> {
    let others = match config::get().database()? {
        Some(url) => {
            tokio::task::spawn_blocking(move || data_location::other_organisations(&url)).await??
        }
        None => other_directories(&local::directory(data)),
    };
    let fitting = others.into_iter().filter(|name| fits(name) && name != DEFAULT);
    let mut names: Vec<String> = fitting.collect();
    names.sort();
    names.truncate(ORGANISATIONS_MAX - 1);
    names.insert(0, DEFAULT.to_owned());
    Ok(names)
}

/// The other organisations that have a store in a data directory.
pub(crate) fn other_directories(dir: &Path) -> Vec<String> {
    let others = std::fs::read_dir(dir.join(OTHERS)).into_iter().flatten().flatten();
    let names = others.filter(|entry| entry.path().join("sluice.db").exists());
    names.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Opens an existing organisation for writing.
pub(crate) async fn open(base: &Data, name: &str) -> anyhow::Result<Local> {
    Local::open(&existing(base, name).await?, Agents::new(), Claims::None).await
}

/// Opens an existing organisation for reading.
pub(crate) async fn read(base: &Data, name: &str) -> anyhow::Result<Local> {
    Local::read(&existing(base, name).await?).await
}

async fn existing(base: &Data, name: &str) -> anyhow::Result<Data> {
    let there = name == DEFAULT || all(base).await?.iter().any(|one| one == name);
    if !fits(name) || !there {
        let shown = sluice_core::visible::brief(name);
        let message = format!("there is no organisation `{shown}`");
        let remedy = "`sluice organisations list` shows the existing ones";
        return Err(Refused::new(ORGANISATION_UNKNOWN, message, remedy).into());
    }
    Ok(data(base, name))
}

/// Makes the first token of an organisation that has none, and writes it to a file that
/// only the owner of the directory can read. Returns that file.
pub(crate) async fn first_token(service: &Service, dir: &Path) -> anyhow::Result<Option<PathBuf>> {
    // Checked again when the row is written: of several nodes that start, one makes it.
    let none = |stored: &[Row]| stored.iter().all(|row| row.kind != Kind::Token);
    if !none(&service.store.registry(None).await?.rows) {
        return Ok(None);
    }
    let path = dir.join(ADMIN_FILE);
    let unusable = |error: std::io::Error| {
        let message = format!("the first token cannot be written to `{}`: {error}", path.display());
        Refused::new(DATA_UNUSABLE, message, "correct the permissions of the directory")
    };
    // Opening a database creates no directory.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.and_then(|()| gitignore::write(dir)).map_err(unusable)?;
    let mut entropy = SystemEntropy;
    let (secret, id) = (secret::make(&mut entropy), secret::id(&mut entropy));
    let admin = row(&id, &admin(&secret));
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let put = if none(stored) { vec![admin.clone()] } else { Vec::new() };
        Ok(RowChange { put, remove: Vec::new() })
    };
    let outcome = registry::change(service, ADMIN, Mode::Write, &edit).await?;
    if !matches!(outcome, ChangeOutcome::Done { differences, .. } if !differences.is_empty()) {
        return Ok(None);
    }
    // An existing file belongs to an earlier store.
    let _ = std::fs::remove_file(&path);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = opened.map_err(unusable)?;
    file.write_all(format!("{secret}\n").as_bytes()).map_err(unusable)?;
    Ok(Some(path))
}

fn admin(secret: &str) -> Token {
    Token {
        principal: ADMIN.to_owned(),
        sha256: hash(secret),
        roles: vec![ADMIN.to_owned()],
        scopes: None,
        groups: Vec::new(),
        parent: None,
        session: false,
        created_at_ms: SystemClock.now_ms(),
        expires_at_ms: None,
    }
}
