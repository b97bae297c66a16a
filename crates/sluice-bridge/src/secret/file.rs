//! Reads secrets from files.
//!
//! INVARIANT: no file in a closed directory is read, whatever path leads to it: the file that
//! was checked is the file that is read.

use super::NoSecret;
use crate::limits::SECRET_BYTES_MAX;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Directories of the kernel: they expose the variables and open files of this process.
const SYSTEM: [&str; 2] = ["/proc", "/sys"];

/// Reads a file, up to the limit of a secret.
pub(super) fn read(path: &str, closed: &[PathBuf]) -> Result<Vec<u8>, NoSecret> {
    let unreadable = |error: io::Error| NoSecret::Unreadable(path.to_owned(), error.kind());
    // Opening a pipe would block until it has a writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::ErrorKind::InvalidInput.into()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let opened = file.metadata().map_err(unreadable)?;
    let real = std::fs::canonicalize(path).map_err(unreadable)?;
    let judged = std::fs::metadata(&real).map_err(unreadable)?;
    // The path may refer to another file by now.
    if !opened.is_file() || identity(&opened) != identity(&judged) {
        return Err(unreadable(io::ErrorKind::InvalidInput.into()));
    }
    if is_closed(&real, closed).map_err(unreadable)? {
        return Err(NoSecret::Closed(path.to_owned()));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(SECRET_BYTES_MAX + 1).expect("the bound is small");
    file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Whether a resolved path leads through a closed directory. Directories are compared by
/// identity, because a mount may give them another name.
fn is_closed(real: &Path, closed: &[PathBuf]) -> io::Result<bool> {
    if SYSTEM.iter().any(|system| real.starts_with(system)) {
        return Ok(true);
    }
    let mut ids = Vec::new();
    for dir in closed {
        match std::fs::metadata(dir) {
            Ok(found) => ids.push(identity(&found)),
            // A missing directory contains nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if ids.is_empty() {
        return Ok(false);
    }
    for above in real.ancestors().skip(1) {
        if ids.contains(&identity(&std::fs::metadata(above)?)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn identity(of: &Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_closed_directory_is_not_read_by_any_path() {
        let dir = tempfile::tempdir().unwrap();
        let (data, other) = (dir.path().join("data"), dir.path().join("other"));
        std::fs::create_dir_all(data.join("organisations/acme")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(data.join("admin.token"), "slk_1").unwrap();
        std::fs::write(data.join("organisations/acme/seal.key"), "k").unwrap();
        std::fs::write(other.join("key"), "fine").unwrap();
        symlink(&data, other.join("link")).unwrap();
        symlink(data.join("admin.token"), other.join("token")).unwrap();
        symlink(other.join("token"), other.join("twice")).unwrap();
        let closed = [data.clone(), dir.path().join("gone")];
        let at = |path: PathBuf| read(path.to_str().unwrap(), &closed);
        assert_eq!(at(other.join("key")).unwrap(), b"fine");
        let root = format!("/proc/self/root{}", data.join("admin.token").display());
        for path in [
            data.join("admin.token"),
            data.join("organisations/acme/seal.key"),
            other.join("../data/admin.token"),
            other.join("../data/organisations/../admin.token"),
            other.join("link/admin.token"),
            other.join("link/organisations/acme/seal.key"),
            other.join("token"),
            other.join("twice"),
            PathBuf::from(root),
        ] {
            let refused = at(path.clone()).unwrap_err();
            assert_eq!(refused, NoSecret::Closed(path.to_str().unwrap().to_owned()));
        }
        // An open file of this process, by its descriptor.
        let open = File::open(data.join("admin.token")).unwrap();
        let by_number = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        assert!(matches!(read(&by_number, &closed), Err(NoSecret::Closed(_))));
        assert!(matches!(read("/proc/self/environ", &[]), Err(NoSecret::Closed(_))));
        assert!(matches!(read("/proc/sys/kernel/random/uuid", &[]), Err(NoSecret::Closed(_))));
    }
}
