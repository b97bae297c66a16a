//! Organisations of a data directory, or of a database.
//!
//! The first one is the directory itself; each other has a directory of its own
//! inside, with its own store, keys and tokens; in a database each other has a
//! schema of its own. So nothing of one can be reached from another, whatever is
//! asked.

use crate::cli::run::Data;
use crate::config;
use crate::local::{self, Local};
use crate::place;
use sluice_bridge::gitignore;
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
use sluice_server::service::registry::{self, Asked, Author, Mode, Outcome};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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
    if name == DEFAULT { dir } else { other(&dir, name) }
}

/// The directory of another organisation, given that of the first.
pub(crate) fn other(dir: &Path, name: &str) -> PathBuf {
    dir.join(OTHERS).join(name)
}

/// Where the runs of an organisation are kept.
pub(crate) fn data(data: &Data, name: &str) -> Data {
    let organisation = (name != DEFAULT).then(|| name.to_owned());
    let (seal_file, database_url) = (data.seal_file.clone(), data.database_url.clone());
    let accept_rollback = data.accept_rollback.clone();
    let dir = Some(directory(data, name));
    Data { dir, seal_file, database_url, organisation, accept_rollback }
}

/// The organisation whose runs are in a place, by its directory where nothing else says it.
pub(crate) fn of(data: &Data) -> String {
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

/// The directory of the first organisation, given that of another.
pub(crate) fn first(dir: &Path) -> PathBuf {
    dir.ancestors().nth(2).unwrap_or(dir).to_owned()
}

/// The organisations there are, the first one first.
pub(crate) async fn all(data: &Data) -> anyhow::Result<Vec<String>> {
    let others = match config::get().database()? {
        Some(url) => tokio::task::spawn_blocking(move || place::others(&url)).await??,
        None => beside(&local::directory(data)),
    };
    let fitting = others.into_iter().filter(|name| fits(name) && name != DEFAULT);
    let mut names: Vec<String> = fitting.collect();
    names.sort();
    names.truncate(ORGANISATIONS_MAX - 1);
    names.insert(0, DEFAULT.to_owned());
    Ok(names)
}

/// Those that have a directory in this one.
pub(crate) fn beside(dir: &Path) -> Vec<String> {
    let others = std::fs::read_dir(dir.join(OTHERS)).into_iter().flatten().flatten();
    let names = others.filter(|entry| entry.path().join("sluice.db").exists());
    names.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// An organisation that is there, opened to look and to change rows.
pub(crate) async fn open(base: &Data, name: &str) -> anyhow::Result<Local> {
    Local::open(&known(base, name).await?, Agents::new(), Claims::None).await
}

/// The same, only to look.
pub(crate) async fn read(base: &Data, name: &str) -> anyhow::Result<Local> {
    Local::read(&known(base, name).await?).await
}

async fn known(base: &Data, name: &str) -> anyhow::Result<Data> {
    let there = name == DEFAULT || all(base).await?.iter().any(|one| one == name);
    if !fits(name) || !there {
        let shown = sluice_core::visible::brief(name);
        let message = format!("there is no organisation `{shown}`");
        let remedy = "`sluice organisations list` shows those there are";
        return Err(Refused::new(ORGANISATION_UNKNOWN, message, remedy).into());
    }
    Ok(data(base, name))
}

/// Makes a token of somebody.
pub(crate) async fn make_token(
    service: &Service,
    by: Author<'_>,
    about: Token,
) -> anyhow::Result<(String, String)> {
    let always = |_: &[Row]| true;
    let made = make_token_where(service, by, about, &always).await?;
    Ok(made.expect("nothing was asked before"))
}

/// The same, if the rows are so when it is made.
async fn make_token_where(
    service: &Service,
    by: Author<'_>,
    about: Token,
    so: &(dyn Fn(&[Row]) -> bool + Sync),
) -> anyhow::Result<Option<(String, String)>> {
    let mut entropy = SystemEntropy;
    let (secret, id) = (secret::make(&mut entropy), secret::id(&mut entropy));
    let token = Token { sha256: hash(&secret), ..about };
    let wish = |there: &[Row]| -> Done<Asked> {
        let put = if so(there) { vec![row(&id, &token)] } else { Vec::new() };
        Ok(Asked { put, remove: Vec::new() })
    };
    let outcome = registry::change(service, by, Mode::Write, &wish).await?;
    let made = matches!(outcome, Outcome::Done { differences, .. } if !differences.is_empty());
    Ok(made.then_some((id, secret)))
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
    // Of several nodes that come first, one makes it.
    let none = |there: &[Row]| there.iter().all(|row| row.kind != Kind::Token);
    if !none(&service.store.registry(None).await?.rows) {
        return Ok(None);
    }
    let path = dir.join(ADMIN_FILE);
    let unusable = |error: std::io::Error| {
        let message = format!("the first token cannot be written to `{}`: {error}", path.display());
        Refused::new(DATA_UNUSABLE, message, "put the permissions of the directory right")
    };
    // A store in a database makes no directory.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.and_then(|()| gitignore::write(dir)).map_err(unusable)?;
    let Some((_, secret)) = make_token_where(service, ADMIN.into(), admin(), &none).await? else {
        return Ok(None);
    };
    // One that is there is of a store that is gone.
    let _ = std::fs::remove_file(&path);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = opened.map_err(unusable)?;
    file.write_all(format!("{secret}\n").as_bytes()).map_err(unusable)?;
    Ok(Some(path))
}
