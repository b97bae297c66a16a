//! The data directory: can it be used, is there room, is the store whole.

use super::Check;
use crate::place::Place;
use crate::{key, refused};
use rustix::fs::{StatVfsMountFlags, statvfs};
use sluice_core::port::Clock as _;
use sluice_core::port::store::{Filter, Store};
use sluice_engine::world::SystemClock;
use sluice_store::postgres::outside::{self, Found};
use sluice_store::sqlite;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MIB: u64 = 1024 * 1024;
/// Less room than this is worth a word.
const ROOM_WARN: u64 = 1024 * MIB;
/// With less room than this, writing soon stops.
const ROOM_MIN: u64 = 100 * MIB;
/// How far a journal may be ahead of the clock: clocks are set back a little.
const AHEAD_MS_MAX: u64 = 60_000;
/// No Sluice ran before this: 2024-01-01.
const EPOCH_MS: u64 = 1_704_067_200_000;
/// Newest runs that are compared with the clock.
const NEWEST: usize = 100;

/// Everything that can be seen without opening the store.
pub(super) fn checks(place: &Place) -> Vec<Check> {
    let dir = place.dir();
    let mut checks = vec![directory(dir), room(dir)];
    if let Some(url) = place.database() {
        checks.push(database(url, place));
    } else if has_store(dir) {
        checks.push(store(dir));
        checks.push(seals(place));
    }
    checks
}

/// The store, if it is whole and of this version: opening it would change an
/// older one.
pub(super) fn readable(place: &Place) -> Option<Arc<dyn Store>> {
    let current = match place.database() {
        Some(url) => {
            let found = outside::inspect(url, place.schema().as_deref()).ok()?;
            found.schema == found.known
        }
        None if has_store(place.dir()) => {
            let found = sqlite::inspect(place.dir()).ok()?;
            found.schema == found.known && found.faults.is_empty()
        }
        None => false,
    };
    if current { place.store().ok() } else { None }
}

fn database(url: &str, place: &Place) -> Check {
    const NAME: &str = "database";
    match outside::inspect(url, place.schema().as_deref()) {
        Err(error) => Check::refused(NAME, &refused::by_database(&error)),
        Ok(Found { schema: 0, .. }) => {
            Check::warn(NAME, "it is reached and empty", "`sluice serve` makes the tables in it")
        }
        Ok(Found { schema, known }) => judge_schema(NAME, schema, known),
    }
}

fn has_store(dir: &Path) -> bool {
    dir.join("sluice.db").exists()
}

fn directory(dir: &Path) -> Check {
    const NAME: &str = "data directory";
    let shown = dir.display();
    let remedy = "name another directory with `--data DIR`, or put its permissions right";
    if !dir.exists() {
        let message = format!("`{shown}` is not there; nothing was run in it yet");
        return Check::warn(NAME, message, "`sluice run` makes it, or name another with `--data`");
    }
    // What can be made can be written to.
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    let gone = made.and_then(|_| std::fs::remove_file(&probe));
    match gone {
        Ok(()) => Check::ok(NAME, format!("`{shown}` can be written")),
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => {
            let message = format!("`{shown}` is on a read-only file system");
            let remedy = "look and verify; to run something, name another directory with `--data`";
            Check::warn(NAME, message, remedy)
        }
        Err(error) => Check::fail(NAME, format!("`{shown}` cannot be written: {error}"), remedy),
    }
}

/// The nearest directory that is there.
fn nearest(dir: &Path) -> PathBuf {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let found = whole.ancestors().find(|path| path.exists());
    found.unwrap_or(Path::new("/")).to_owned()
}

fn room(dir: &Path) -> Check {
    const NAME: &str = "disk space";
    let place = nearest(dir);
    let remedy = "make room: `sluice runs elide --older-than 30d` drops what steps said on the way";
    match statvfs(&place) {
        Err(error) => Check::warn(NAME, format!("cannot be told: {error}"), "look with `df`"),
        Ok(found) if found.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            Check::ok(NAME, "none is needed: the file system is read-only")
        }
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            judge(NAME, free, remedy)
        }
    }
}

fn judge(name: &'static str, free: u64, remedy: &str) -> Check {
    let message = format!("{} MiB free", free / MIB);
    match free {
        ..ROOM_MIN => Check::fail(name, message, remedy),
        ROOM_MIN..ROOM_WARN => Check::warn(name, message, remedy),
        _ => Check::ok(name, message),
    }
}

fn store(dir: &Path) -> Check {
    const NAME: &str = "store";
    let found = match sqlite::inspect(dir) {
        Ok(found) => found,
        Err(error) => return Check::refused(NAME, &refused::by_store(dir, &error)),
    };
    let (schema, known) = (found.schema, found.known);
    if !found.faults.is_empty() {
        let message = format!("the database is damaged: {}", found.faults.join("; "));
        return Check::fail(NAME, message, "put a backup in its place");
    }
    judge_schema(NAME, schema, known)
}

fn judge_schema(name: &'static str, schema: usize, known: usize) -> Check {
    if schema > known {
        let message = format!("its schema is {schema}, this Sluice knows {known}");
        return Check::fail(name, message, "use the newer Sluice");
    }
    if schema < known {
        let message = format!("its schema is {schema}; {known} is current");
        return Check::warn(name, message, "the next command that opens it brings it up to date");
    }
    Check::ok(name, format!("whole, with schema {schema}"))
}

fn seals(place: &Place) -> Check {
    const NAME: &str = "seals";
    let dir = place.dir();
    if !dir.join(key::SECRET).exists() {
        let remedy = "the next run makes one; if there was one before, put it back";
        return Check::warn(NAME, "there is no key to sign seals with", remedy);
    }
    match key::sealer(dir, place.seal_file()) {
        Ok(_) => Check::ok(NAME, "the key can be used"),
        Err(refused) => Check::refused(NAME, &refused),
    }
}

/// Whether the store is as new as the file that its seals are copied to, if there is one.
pub(super) async fn seal_file(place: &Place, store: &dyn Store) -> Option<Check> {
    const NAME: &str = "seal file";
    place.seal_file()?;
    let compared = place.refuse_rollback(store).await;
    Some(match compared.as_ref().map_err(|error| (refused::in_error(error), error)) {
        Ok(()) => Check::ok(NAME, "the store has the newest seal of the file"),
        Err((Some(refused), _)) => Check::refused(NAME, refused),
        Err((None, error)) => Check::fail(NAME, error.to_string(), "check the store"),
    })
}

/// Whether time has gone back: schedules and waits would stand still.
pub(super) async fn clock(store: &dyn Store) -> Check {
    const NAME: &str = "clock";
    let now_ms = SystemClock.now_ms();
    if now_ms < EPOCH_MS {
        return Check::fail(NAME, "it is set to long ago", "set the clock");
    }
    let filter = Filter { limit: NEWEST, ..Filter::default() };
    let newest_ms = match store.list(filter).await {
        Ok(rows) => {
            let times = rows.iter().map(|row| row.ended_at_ms.unwrap_or(row.started_at_ms));
            times.max().unwrap_or(0)
        }
        Err(error) => return Check::fail(NAME, error.to_string(), "check the store"),
    };
    let ahead_ms = newest_ms.saturating_sub(now_ms);
    if ahead_ms > AHEAD_MS_MAX {
        let message = format!("the newest run is {} s in the future", ahead_ms / 1000);
        return Check::fail(NAME, message, "set the clock; it was ahead, or has gone back");
    }
    Check::ok(NAME, "no run is in the future")
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn too_little_room_is_told_before_it_is_none() {
        let health = |free| judge("disk space", free, "make room").health;
        assert_eq!(health(99 * MIB), Health::Fail);
        assert_eq!(health(100 * MIB), Health::Warn);
        assert_eq!(health(1023 * MIB), Health::Warn);
        assert_eq!(health(1024 * MIB), Health::Ok);
    }
}
