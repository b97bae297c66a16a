//! Keeps a directory with keys, tokens or journals out of Git repositories.
//!
//! INVARIANT: a `.gitignore` that exists is never changed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Name of the file that Git reads.
pub const FILE: &str = ".gitignore";
/// Ignores every file, this one included.
const EVERYTHING: &str = "*\n";
/// Ignores only what Sluice writes: used at the top of a working tree, where `*`
/// would hide the user's own files.
const OWN: &str = "/admin.token\n/dispatch.key\n/nodes/\n/organisations/\n/seal.key\n/seal.pub\n\
                   /seal.stores\n/sluice.db*\n/workspaces/\n";

/// Writes a `.gitignore` into a directory that has none.
pub fn write(dir: &Path) -> io::Result<()> {
    let path = dir.join(FILE);
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(());
    }
    let text = if dir.join(".git").exists() { OWN } else { EVERYTHING };
    // A crash must not leave an empty file, which would never be completed: the file gets
    // its name only when it is complete.
    let unfinished = dir.join(format!("{FILE}.{}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&unfinished)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::hard_link(&unfinished, &path));
    fs::remove_file(&unfinished)?;
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dir: &Path) -> String {
        fs::read_to_string(dir.join(FILE)).unwrap()
    }

    #[test]
    fn a_directory_gets_a_file_that_ignores_everything() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path()).unwrap();
        assert_eq!(read(dir.path()), "*\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn an_existing_file_is_never_changed() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "!seal.pub\n"] {
            fs::write(dir.path().join(FILE), text).unwrap();
            write(dir.path()).unwrap();
            assert_eq!(read(dir.path()), text);
        }
    }

    #[test]
    fn the_top_of_a_working_tree_keeps_its_own_files_visible() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        write(dir.path()).unwrap();
        let ignored = read(dir.path());
        assert!(!ignored.lines().any(|line| line == "*"), "{ignored}");
        for name in ["/seal.key", "/dispatch.key", "/admin.token", "/sluice.db*"] {
            assert!(ignored.lines().any(|line| line == name), "{name}: {ignored}");
        }
    }
}
