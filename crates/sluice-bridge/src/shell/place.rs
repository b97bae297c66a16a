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
pub(super) fn directory(workspace: &Path, cwd: Option<&str>) -> Result<PathBuf, CallError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(workspace);
    let root = made.and_then(|()| workspace.canonicalize());
    let root = root.map_err(|error| no_directory(workspace, &error))?;
    let mut place = root.clone();
    let Some(cwd) = cwd else {
        return Ok(place);
    };
    for part in Path::new(cwd).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(name) => place.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refusal(format!("cwd `{cwd}` leads outside the workspace")));
            }
        }
        let made = match std::fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => place.canonicalize(),
        };
        place = made.map_err(|error| no_directory(&place, &error))?;
        if !place.starts_with(&root) {
            return Err(refusal(format!("cwd `{cwd}` leads outside the workspace")));
        }
        if !place.is_dir() {
            return Err(refusal(format!("cwd `{cwd}` is not a directory")));
        }
    }
    Ok(place)
}

fn no_directory(place: &Path, error: &io::Error) -> CallError {
    let message = format!("cannot work in {}: {error}", place.display());
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
    fn directories_inside_are_made_and_links_inside_are_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let workspace = temporary.path().join("not/yet/there");
        let root = directory(&workspace, None).unwrap();
        assert_eq!(directory(&workspace, Some("a/./b/")).unwrap(), root.join("a/b"));
        assert_eq!(directory(&workspace, Some("")).unwrap(), root);
        assert_eq!(directory(&workspace, Some(".")).unwrap(), root);
        symlink(root.join("a"), root.join("link")).unwrap();
        assert_eq!(directory(&workspace, Some("link/c")).unwrap(), root.join("a/c"));
    }

    #[test]
    fn what_leads_out_is_refused_and_nothing_is_made_there() {
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
            let error = directory(&inside, Some(cwd)).unwrap_err();
            assert_eq!(error.code, CallErrorCode::InvalidRequest, "{cwd}: {}", error.message);
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}
