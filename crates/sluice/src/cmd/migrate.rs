//! `sluice migrate`: moves a data directory into a database that nodes share.
//!
//! Every organisation is locked before the first is copied, so that refusals come before any
//! change. The files of the directory are renamed last, after everything was copied, compared
//! and verified. After a crash the command continues with what is left.

mod check;

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::migrate::Migrate;
use crate::config;
use crate::data_location::DataLocation;
use crate::local;
use crate::organisation::{self, DEFAULT};
use crate::out::{Layout, Out};
use crate::refused::{by_database, by_store};
use check::Checked;
use serde_json::{Map, Value, json};
use sluice_core::port::Clock as _;
use sluice_engine::world::SystemClock;
use sluice_server::refused::{DATA_UNUSABLE, Refused};
use sluice_store::transfer::{Carried, Doing, Progress, Transfer, TransferError};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Nothing was moved: the directory is in use, or the database is not empty.
const MIGRATE_REFUSED: &str = "migrate_refused";
/// The copy differs from the original.
pub(super) const MIGRATE_UNVERIFIED: &str = "migrate_unverified";
/// Interval of progress messages.
const REPORT_MS: u64 = 1000;

struct Moving {
    name: String,
    place: DataLocation,
    transfer: Transfer,
}

/// The result for one organisation.
struct Moved {
    name: String,
    carried: Vec<Carried>,
    /// None if it was moved and checked before.
    checked: Option<Checked>,
    /// The new name of its file.
    file: PathBuf,
}

pub(super) fn run(args: &Migrate, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`migrate`")?;
    let url = config::database(&args.to, "--to")?;
    let output = args.json.output();
    let mut held = Vec::new();
    for (name, dir) in sources(&args.from)? {
        held.push(begin(name, dir, &url)?);
    }
    let mut done = Vec::new();
    for mut moving in held {
        let checked =
            if moving.transfer.has_ended() { None } else { Some(carry(&mut moving, output, out)?) };
        done.push((moving, checked));
    }
    let mut all = Vec::new();
    for (Moving { name, place, transfer }, checked) in done {
        let carried = transfer.carried().to_vec();
        let file = transfer.retire().map_err(|error| refused(place.dir(), error))?;
        all.push(Moved { name, carried, checked, file });
    }
    print(&args.from, &all, output, out)?;
    Ok(Exit::Done)
}

/// The organisations that are not moved yet.
fn sources(dir: &Path) -> Result<Vec<(String, PathBuf)>, Refused> {
    let mut names = organisation::other_directories(dir);
    names.retain(|name| organisation::fits(name) && name != DEFAULT);
    names.sort();
    let mut found: Vec<(String, PathBuf)> =
        names.into_iter().map(|name| (name.clone(), organisation::other(dir, &name))).collect();
    if dir.join("sluice.db").exists() {
        found.insert(0, (DEFAULT.to_owned(), dir.to_owned()));
    }
    if found.is_empty() {
        let message = match dir.join("sluice.db.moved").exists() {
            true => format!("everything of `{}` was moved before", dir.display()),
            false => format!("there are no runs in `{}`", dir.display()),
        };
        let remedy = "name a data directory that runs are kept in, as `--from sqlite:DIR`";
        return Err(Refused::new(DATA_UNUSABLE, message, remedy));
    }
    Ok(found)
}

fn begin(name: String, dir: PathBuf, url: &str) -> anyhow::Result<Moving> {
    let organisation = (name != DEFAULT).then(|| name.clone());
    let place = DataLocation::moved(dir, organisation, url);
    let schema = place.schema();
    let begun = Transfer::begin(place.dir(), url, schema.as_deref(), SystemClock.now_ms());
    let transfer = begun.map_err(|error| refused(place.dir(), error))?;
    Ok(Moving { name, place, transfer })
}

/// Copies, compares and verifies one organisation, and registers it as a store.
fn carry(moving: &mut Moving, output: OutputFormat, out: &mut Out) -> anyhow::Result<Checked> {
    let Moving { name, place, transfer } = moving;
    let mut reported = Instant::now();
    let mut failed = Ok(());
    let mut tell = |progress: Progress| {
        let is_time = reported.elapsed() >= Duration::from_millis(REPORT_MS);
        if output == OutputFormat::Text && (is_time || is_worth_telling(&progress)) {
            reported = Instant::now();
            failed = out.note(&line(name, &progress));
        }
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let carried = transfer.carry(&mut tell);
    failed?;
    carried.map_err(|error| refused(place.dir(), error))?;
    if output == OutputFormat::Text {
        out.note(&format!("{name}: verifying the audit and every run"))?;
    }
    let checked = local::wait(check::check(place, transfer))?;
    transfer.end().map_err(|error| refused(place.dir(), error))?;
    Ok(checked)
}

fn is_worth_telling(progress: &Progress) -> bool {
    progress.doing == Doing::Copying && progress.rows == progress.of && progress.of > 1
}

fn line(name: &str, progress: &Progress) -> String {
    let doing = match progress.doing {
        Doing::Copying => "copied",
        Doing::Comparing => "compared",
    };
    format!("{name}: {doing} {} of {} rows of `{}`", progress.rows, progress.of, progress.table)
}

fn print(dir: &Path, all: &[Moved], output: OutputFormat, out: &mut Out) -> anyhow::Result<()> {
    if output == OutputFormat::Json {
        let organisations: Vec<Value> = all.iter().map(object).collect();
        return out.json(Layout::Line, &json!({"organisations": organisations}));
    }
    for moved in all {
        let rows: u64 = moved.carried.iter().map(|carried| carried.rows).sum();
        let frames = moved.carried.iter().find(|carried| carried.table == "frame");
        let frames = frames.map_or(0, |carried| carried.rows);
        let said =
            moved.checked.as_ref().map_or("they were moved before".to_owned(), Checked::summary);
        out.print(&format!("{}: {rows} rows, {frames} of them frames; {said}\n", moved.name))?;
        out.note(&format!("its store is put away as `{}`", moved.file.display()))?;
    }
    out.note(&format!(
        "keys and workspaces stay in `{0}`: start nodes with `sluice serve --database-url URL \
         --data {0}`, or with copies of its `seal.key` and `dispatch.key` elsewhere",
        dir.display()
    ))
}

fn object(moved: &Moved) -> Value {
    let rows: Map<String, Value> = moved
        .carried
        .iter()
        .map(|carried| (carried.table.to_owned(), carried.rows.into()))
        .collect();
    let digests: Map<String, Value> = moved
        .carried
        .iter()
        .map(|carried| (carried.table.to_owned(), carried.digest.to_string().into()))
        .collect();
    json!({
        "name": moved.name,
        "rows": rows,
        "digests": digests,
        "moved_before": moved.checked.is_none(),
        "audit": moved.checked.as_ref().map(|checked| &checked.audit),
        "runs_folded": moved.checked.as_ref().map(|checked| checked.runs),
        "runs_unreadable": moved.checked.as_ref().map(|checked| checked.unreadable),
        "put_away_as": moved.file.display().to_string(),
    })
}

/// Converts the error of a transfer.
fn refused(dir: &Path, error: TransferError) -> anyhow::Error {
    let said = error.to_string();
    let remedy = match error {
        TransferError::NoSource { .. } => {
            let remedy = "name a data directory that runs are kept in, as `--from sqlite:DIR`";
            return Refused::new(DATA_UNUSABLE, said, remedy).into();
        }
        TransferError::Source(error) => return by_store(dir, &error).into(),
        TransferError::Target(error) => return by_database(&error).into(),
        TransferError::Busy | TransferError::InUse { .. } => {
            "stop `sluice serve` and every command that works on the directory, then run it again"
        }
        TransferError::TakenOver => "let the other one end, then run it again",
        TransferError::NotEmpty { .. } => "name a database without tables of Sluice",
        TransferError::Foreign => {
            "name a database without tables of Sluice, or drop what was moved to this one"
        }
        TransferError::Differs { .. } => {
            let remedy = "drop what was moved to the database and run it again; the directory is \
                          as it was";
            return Refused::new(MIGRATE_UNVERIFIED, said, remedy).into();
        }
        TransferError::Read(_) | TransferError::Write(_) | TransferError::Stopped => {
            let again = "not everything was moved; repeat the command to continue";
            return anyhow::Error::new(error).context(again);
        }
    };
    Refused::new(MIGRATE_REFUSED, said, remedy).into()
}
