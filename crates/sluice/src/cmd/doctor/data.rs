//! Checks the data directory: whether it is usable, has free space, and its store is intact.

use super::DoctorCheck;
use crate::data_location::DataLocation;
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
/// Free space below this is a warning.
const ROOM_WARN: u64 = 1024 * MIB;
/// Free space below this is a failure.
const ROOM_MIN: u64 = 100 * MIB;
/// How far a journal may be ahead of the clock, which may be adjusted slightly.
const AHEAD_MS_MAX: u64 = 60_000;
/// 2024-01-01, before the first version of Sluice.
const EPOCH_MS: u64 = 1_704_067_200_000;
/// Newest runs that are compared with the clock.
const NEWEST: usize = 100;

/// Checks that do not open the store.
pub(super) fn checks(place: &DataLocation) -> Vec<DoctorCheck> {
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

/// Opens the store, if it is intact and of this version: opening migrates an older one.
pub(super) fn readable(place: &DataLocation) -> Option<Arc<dyn Store>> {
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

fn database(url: &str, place: &DataLocation) -> DoctorCheck {
    const NAME: &str = "database";
    match outside::inspect(url, place.schema().as_deref()) {
        Err(error) => DoctorCheck::refused(NAME, &refused::by_database(&error)),
        Ok(Found { schema: 0, .. }) => {
            DoctorCheck::warn(NAME, "it is reached and empty", "`sluice serve` creates its tables")
        }
        Ok(Found { schema, known }) => check_schema(NAME, schema, known),
    }
}

fn has_store(dir: &Path) -> bool {
    dir.join("sluice.db").exists()
}

fn directory(dir: &Path) -> DoctorCheck {
    const NAME: &str = "data directory";
    let shown = dir.display();
    let remedy = "name another directory with `--data DIR`, or correct its permissions";
    if !dir.exists() {
        let message = format!("`{shown}` is not there; nothing was run in it yet");
        return DoctorCheck::warn(
            NAME,
            message,
            "`sluice run` makes it, or name another with `--data`",
        );
    }
    // A directory that can be created is writable.
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    let gone = made.and_then(|_| std::fs::remove_file(&probe));
    match gone {
        Ok(()) => DoctorCheck::ok(NAME, format!("`{shown}` can be written")),
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => {
            let message = format!("`{shown}` is on a read-only file system");
            let remedy = "look and verify; to run something, name another directory with `--data`";
            DoctorCheck::warn(NAME, message, remedy)
        }
        Err(error) => {
            DoctorCheck::fail(NAME, format!("`{shown}` cannot be written: {error}"), remedy)
        }
    }
}

/// The nearest existing ancestor.
fn nearest(dir: &Path) -> PathBuf {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let found = whole.ancestors().find(|path| path.exists());
    found.unwrap_or(Path::new("/")).to_owned()
}

fn room(dir: &Path) -> DoctorCheck {
    const NAME: &str = "disk space";
    let place = nearest(dir);
    let remedy = "make room: `sluice runs elide --older-than 30d` drops streamed partial answers";
    match statvfs(&place) {
        Err(error) => {
            DoctorCheck::warn(NAME, format!("cannot be measured: {error}"), "check with `df`")
        }
        Ok(found) if found.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            DoctorCheck::ok(NAME, "none is needed: the file system is read-only")
        }
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            check_free_space(NAME, free, remedy)
        }
    }
}

fn check_free_space(name: &'static str, free: u64, remedy: &str) -> DoctorCheck {
    let message = format!("{} MiB free", free / MIB);
    match free {
        ..ROOM_MIN => DoctorCheck::fail(name, message, remedy),
        ROOM_MIN..ROOM_WARN => DoctorCheck::warn(name, message, remedy),
        _ => DoctorCheck::ok(name, message),
    }
}

fn store(dir: &Path) -> DoctorCheck {
    const NAME: &str = "store";
    let found = match sqlite::inspect(dir) {
        Ok(found) => found,
        Err(error) => return DoctorCheck::refused(NAME, &refused::by_store(dir, &error)),
    };
    let (schema, known) = (found.schema, found.known);
    if !found.faults.is_empty() {
        let message = format!("the database is damaged: {}", found.faults.join("; "));
        return DoctorCheck::fail(NAME, message, "put a backup in its place");
    }
    check_schema(NAME, schema, known)
}

fn check_schema(name: &'static str, schema: usize, known: usize) -> DoctorCheck {
    if schema > known {
        let message = format!("its schema is {schema}, this Sluice knows {known}");
        return DoctorCheck::fail(name, message, "use the newer Sluice");
    }
    if schema < known {
        let message = format!("its schema is {schema}; {known} is current");
        return DoctorCheck::warn(
            name,
            message,
            "the next command that opens it brings it up to date",
        );
    }
    DoctorCheck::ok(name, format!("whole, with schema {schema}"))
}

fn seals(place: &DataLocation) -> DoctorCheck {
    const NAME: &str = "seals";
    let dir = place.dir();
    if !dir.join(key::SECRET).exists() {
        let remedy = "the next run makes one; if there was one before, put it back";
        return DoctorCheck::warn(NAME, "there is no key to sign seals with", remedy);
    }
    match key::sealer(dir, place.seal_file()) {
        Ok(_) => DoctorCheck::ok(NAME, "the key can be used"),
        Err(refused) => DoctorCheck::refused(NAME, &refused),
    }
}

/// Whether the store is as new as its seal file, if there is one.
pub(super) async fn seal_file(place: &DataLocation, store: &dyn Store) -> Option<DoctorCheck> {
    const NAME: &str = "seal file";
    place.seal_file()?;
    let compared = place.refuse_rollback(store).await;
    Some(match compared.as_ref().map_err(|error| (refused::in_error(error), error)) {
        Ok(()) => DoctorCheck::ok(NAME, "the store has the newest seal of the file"),
        Err((Some(refused), _)) => DoctorCheck::refused(NAME, refused),
        Err((None, error)) => DoctorCheck::fail(NAME, error.to_string(), "check the store"),
    })
}

/// Whether the clock was set back, which would stop schedules and waits.
pub(super) async fn clock(store: &dyn Store) -> DoctorCheck {
    const NAME: &str = "clock";
    let now_ms = SystemClock.now_ms();
    if now_ms < EPOCH_MS {
        return DoctorCheck::fail(NAME, "it is set to long ago", "set the clock");
    }
    let filter = Filter { limit: NEWEST, ..Filter::default() };
    let newest_ms = match store.list(filter).await {
        Ok(rows) => {
            let times = rows.iter().map(|row| row.ended_at_ms.unwrap_or(row.started_at_ms));
            times.max().unwrap_or(0)
        }
        Err(error) => return DoctorCheck::fail(NAME, error.to_string(), "check the store"),
    };
    let ahead_ms = newest_ms.saturating_sub(now_ms);
    if ahead_ms > AHEAD_MS_MAX {
        let message = format!("the newest run is {} s in the future", ahead_ms / 1000);
        return DoctorCheck::fail(NAME, message, "set the clock; it was ahead, or has gone back");
    }
    DoctorCheck::ok(NAME, "no run is in the future")
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn too_little_room_is_told_before_it_is_none() {
        let health = |free| check_free_space("disk space", free, "make room").health;
        assert_eq!(health(99 * MIB), Health::Fail);
        assert_eq!(health(100 * MIB), Health::Warn);
        assert_eq!(health(1023 * MIB), Health::Warn);
        assert_eq!(health(1024 * MIB), Health::Ok);
    }
}
