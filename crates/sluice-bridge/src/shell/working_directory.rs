//! Working directory of a command.

use super::outcome::{crash, refusal};
use rustix::io::Errno;
use sluice_core::port::adapter::CallError;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

/// The directory `cwd` of the workspace, created if it is missing.
///
/// Each component is resolved before the next one, so that nothing is created behind a symbolic
/// link that leaves the workspace.
pub(super) fn resolve(workspace: &Path, cwd: Option<&str>) -> Result<PathBuf, CallError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(workspace);
    let root = made.and_then(|()| workspace.canonicalize());
    let root = root.map_err(|error| no_directory(workspace, &error))?;
    let mut directory = root.clone();
    let Some(cwd) = cwd else {
        return Ok(directory);
    };
    for part in Path::new(cwd).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(name) => directory.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refusal(format!("cwd `{cwd}` leads outside the workspace")));
            }
        }
        let made = match std::fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => directory.canonicalize(),
        };
        directory = made.map_err(|error| no_directory(&directory, &error))?;
        if !directory.starts_with(&root) {
            return Err(refusal(format!("cwd `{cwd}` leads outside the workspace")));
        }
        if !directory.is_dir() {
            return Err(refusal(format!("cwd `{cwd}` is not a directory")));
        }
    }
    Ok(directory)
}

fn no_directory(directory: &Path, error: &io::Error) -> CallError {
    let message = format!("cannot work in {}: {error}", directory.display());
    let named_wrong = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput);
    match Errno::from_io_error(error) {
        Some(Errno::LOOP | Errno::NAMETOOLONG | Errno::NOTDIR) => refusal(message),
        _ if named_wrong => refusal(message),
        _ => crash(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::port::adapter::CallErrorCode;
    use std::os::unix::fs::symlink;

    #[test]
    fn directories_inside_are_created_and_links_inside_are_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let workspace = temporary.path().join("not/yet/there");
        let root = resolve(&workspace, None).unwrap();
        assert_eq!(resolve(&workspace, Some("a/./b/")).unwrap(), root.join("a/b"));
        assert_eq!(resolve(&workspace, Some("")).unwrap(), root);
        assert_eq!(resolve(&workspace, Some(".")).unwrap(), root);
        symlink(root.join("a"), root.join("link")).unwrap();
        assert_eq!(resolve(&workspace, Some("link/c")).unwrap(), root.join("a/c"));
    }

    #[test]
    fn paths_that_leave_the_workspace_are_rejected_and_nothing_is_created() {
        let temporary = tempfile::tempdir().unwrap();
        let (inside, outside) = (temporary.path().join("in"), temporary.path().join("out"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        symlink(inside.join("loop"), inside.join("loop")).unwrap();
        symlink(outside.join("nowhere"), inside.join("dangling")).unwrap();
        std::fs::write(inside.join("file"), "").unwrap();
        for cwd in
            ["..", "a/../..", "/", "/tmp", "link", "link/new", "loop", "dangling", "file", "a\0b"]
        {
            let error = resolve(&inside, Some(cwd)).unwrap_err();
            assert_eq!(error.code, CallErrorCode::InvalidRequest, "{cwd}: {}", error.message);
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}
