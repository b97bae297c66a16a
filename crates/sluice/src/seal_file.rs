//! The file that every seal is appended to, and its comparison with the store.
//!
//! Each organisation has a file of its own. Before a process writes to a store, the
//! newest seal in the file must be in the store: else an older copy of the store was put
//! in its place, and new seals would make two histories.

use serde_json::json;
use sluice_core::evidence::kept::{self, Rollback};
use sluice_core::evidence::key::PublicKey;
use sluice_core::evidence::seal::Seal;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::Store;
use sluice_engine::sealer::Witness;
use sluice_server::refused::{Refused, SEAL_UNUSABLE, STORE_ROLLED_BACK};
use sluice_server::service::audit::packet;
use sluice_server::service::registry::now_ms;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes read at once from the end of the file; longer than any seal.
const BLOCK_BYTES: u64 = 64 * 1024;
/// Newest seals of the file that are compared.
const SEALS_MAX: usize = 16;

/// The seal file of one organisation.
#[derive(Debug, Clone)]
pub(crate) struct SealFile(PathBuf);

/// A store that lacks the newest seal of its file.
#[derive(Debug)]
pub(crate) struct RolledBack {
    how: Rollback,
    /// Number of the seal that the file ends with.
    kept: u64,
    /// Number of the store's newest seal; 0 means none.
    newest: u64,
    file: PathBuf,
    /// Data directory of the store.
    dir: PathBuf,
}

/// A rollback that the operator accepts.
#[derive(Debug)]
pub(crate) struct AcceptedRollback {
    rolled_back: RolledBack,
    reason: String,
}

impl SealFile {
    /// The file itself for the first organisation, `FILE.NAME` for another.
    pub(crate) fn for_organisation(file: &Path, other: Option<&str>) -> SealFile {
        let mut path = file.as_os_str().to_owned();
        if let Some(name) = other {
            path.push(".");
            path.push(name);
        }
        SealFile(path.into())
    }

    /// Appends each seal to the file as a line.
    pub(crate) fn witness(&self) -> Result<Witness, Refused> {
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.0);
        let file = opened.map_err(|error| self.unusable("cannot be copied to", &error))?;
        let is_torn = ends_in_mid_line(&self.0);
        let is_torn = is_torn.map_err(|error| self.unusable("cannot be read from", &error))?;
        let is_torn = AtomicBool::new(is_torn);
        Ok(Arc::new(move |text: &str| {
            // A seal that cannot be appended is still in the store, and the next one proves it:
            // seals are chained.
            let written = append_line(&file, text, is_torn.load(Ordering::Relaxed));
            is_torn.store(written.is_err(), Ordering::Relaxed);
        }))
    }

    fn unusable(&self, what: &str, error: &io::Error) -> Refused {
        let message = format!("seals {what} `{}`: {error}", self.0.display());
        let remedy =
            "name a file that can be read and written with `--seal-file FILE` or SLUICE_SEAL_FILE";
        Refused::new(SEAL_UNUSABLE, message, remedy)
    }

    /// Compares the newest seal in the file by one of `keys` with the store of `dir`.
    /// The file is read first: a process that seals meanwhile writes to the store first.
    pub(crate) async fn compare(
        &self,
        store: &dyn Store,
        keys: &[PublicKey],
        dir: &Path,
    ) -> anyhow::Result<Option<RolledBack>> {
        let tail = tail(&self.0, keys);
        let tail = tail.map_err(|error| self.unusable("cannot be read from", &error))?;
        let Some(newest) = kept::newest(&tail) else { return Ok(None) };
        let found = store.seals(newest.number, 1).await?;
        let Err(how) = kept::compare(newest, found.first()) else { return Ok(None) };
        let kept = newest.number;
        let newest = packet::newest(store).await?.map_or(0, |row| row.number);
        let (file, dir) = (self.0.clone(), dir.to_owned());
        Ok(Some(RolledBack { how, kept, newest, file, dir }))
    }
}

impl RolledBack {
    /// Accepts the rollback if the operator gives a reason.
    pub(crate) fn accept(self, reason: Option<&str>) -> Result<AcceptedRollback, Refused> {
        match reason {
            Some(reason) => Ok(AcceptedRollback { reason: reason.to_owned(), rolled_back: self }),
            None => Err(self.refused()),
        }
    }

    fn refused(&self) -> Refused {
        let (dir, file) = (self.dir.display(), self.file.display());
        let (kept, newest) = (self.kept, self.newest);
        let message = match self.how {
            Rollback::Older => format!(
                "the store of `{dir}` was rolled back: its newest seal is {newest}, and `{file}` \
                 has seal {kept}"
            ),
            Rollback::Other => format!(
                "the store of `{dir}` was rolled back: its seal {kept} is not the one that \
                 `{file}` has"
            ),
        };
        let remedy = "put the newest copy of the store back; to go on from this one, start with \
                      `--accept-rollback REASON`, which is recorded in the audit";
        Refused::new(STORE_ROLLED_BACK, message, remedy)
    }
}

impl AcceptedRollback {
    pub(crate) fn entry(&self, actor: String) -> Entry {
        let RolledBack { kept, newest, file, dir, .. } = &self.rolled_back;
        Entry {
            at_ms: now_ms(),
            category: "security",
            what: "rollback_accepted".to_owned(),
            actor,
            resource_type: "store".to_owned(),
            resource_id: dir.display().to_string(),
            event: None,
            detail: json!({
                "reason": self.reason,
                "kept_seal": kept,
                "store_seal": newest,
                "seal_file": file.display().to_string(),
            }),
        }
    }
}

/// Appends a line. If the file ends in the middle of a line, that line is ended first, so
/// that only the torn line is lost.
pub(crate) fn append_line(mut file: &File, text: &str, is_torn: bool) -> io::Result<()> {
    let start = if is_torn { "\n" } else { "" };
    file.write_all(format!("{start}{text}\n").as_bytes())
}

/// Whether a process ended while it appended to this file. A file that is not regular, such
/// as a pipe, cannot be read.
pub(crate) fn ends_in_mid_line(path: &Path) -> io::Result<bool> {
    let is_regular = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    if !is_regular {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The last seals in a file that are signed by one of `keys`, in order. Other lines are
/// ignored. A file that is not regular, such as a pipe, has none.
fn tail(path: &Path, keys: &[PublicKey]) -> io::Result<Vec<Seal>> {
    // Opening a pipe would wait for its writer.
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    }
    let mut file = File::open(path)?;
    let mut found = Vec::new();
    let mut end = file.metadata()?.len();
    // The beginning of a line that ends in the block read before.
    let mut rest = Vec::new();
    while end > 0 && found.len() < SEALS_MAX {
        let start = end.saturating_sub(BLOCK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        (&file).take(end - start).read_to_end(&mut block)?;
        block.append(&mut rest);
        let mut lines: Vec<&[u8]> = block.split(|byte| *byte == b'\n').collect();
        let first = if start == 0 { None } else { Some(lines.remove(0)) };
        let seals = lines.iter().rev().filter_map(|line| std::str::from_utf8(line).ok());
        found.extend(seals.filter_map(|line| kept::read(line, keys)).take(SEALS_MAX));
        rest = first.filter(|line| line.len() as u64 <= BLOCK_BYTES).unwrap_or_default().to_vec();
        end = start;
    }
    found.truncate(SEALS_MAX);
    found.reverse();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::evidence::key::Signer;
    use sluice_core::hash::Hash;

    fn seal(signer: &Signer, number: u64) -> Seal {
        Seal::new(number, number, Hash([0; 32]), &[], signer)
    }

    fn numbers(path: &Path, keys: &[PublicKey]) -> Vec<u64> {
        tail(path, keys).unwrap().iter().map(|seal| seal.number).collect()
    }

    #[test]
    fn the_last_seals_of_a_key_are_found_whatever_is_around_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seals");
        let (own, other) = (Signer::new(&[1; 32]), Signer::new(&[2; 32]));
        let keys = [own.public()];
        assert_eq!(numbers(&path, &keys), Vec::<u64>::new(), "there is no file");
        // Many lines of another key follow a few of this one.
        let mut text = String::new();
        for number in 1..=3 {
            text.push_str(&format!("{}\n", seal(&own, number).text()));
        }
        text.push_str(&format!("{}\n", "x".repeat(200_000)));
        let line = seal(&other, 9).text();
        for _ in 0..600 {
            text.push_str(&format!("{line}\n"));
        }
        text.push_str("half a li");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(numbers(&path, &keys), [1, 2, 3]);
        assert_eq!(numbers(&path, &[other.public()]), [9; SEALS_MAX]);
        let long: String =
            (1..=40).map(|number| format!("{}\n", seal(&own, number).text())).collect();
        std::fs::write(&path, long).unwrap();
        let last: Vec<u64> = (25..=40).collect();
        assert_eq!(numbers(&path, &keys), last);
    }

    #[test]
    fn a_seal_after_a_torn_line_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seals");
        let own = Signer::new(&[1; 32]);
        let line = |number| seal(&own, number).text();
        // The process ended while it wrote seal 2.
        std::fs::write(&path, format!("{}\n{}", line(1), &line(2)[..40])).unwrap();
        for number in [3, 4] {
            let witness = SealFile(path.clone()).witness().unwrap();
            witness(&line(number));
        }
        assert_eq!(numbers(&path, &[own.public()]), [1, 3, 4]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| Seal::is_torn(line)).count(), 1);
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn another_organisation_has_a_file_of_its_own() {
        let of = |other| SealFile::for_organisation(Path::new("/mnt/seals.txt"), other).0;
        assert_eq!(of(None), Path::new("/mnt/seals.txt"));
        assert_eq!(of(Some("acme")), Path::new("/mnt/seals.txt.acme"));
    }
}
