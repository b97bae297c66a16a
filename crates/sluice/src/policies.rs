//! Reads policy sets from files.

use crate::cli::run::Data;
use crate::cmd;
use crate::config::{self, setting::Name};
use crate::input;
use crate::problem::Unreadable;
use crate::providers;
use crate::refused::unreadable;
use sluice_core::limits::DOCUMENT_BYTES_MAX;
use sluice_engine::trust::PolicySource;
use sluice_govern::catalog::Catalog;
use sluice_server::refused::{POLICIES_REFUSED, Refused};
use sluice_server::service::policies::{Files, load_for_force, refused};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Extension of a policy file.
const ENDING: &str = "cedar";
/// Most policy files of a directory.
const FILES_MAX: usize = 1000;

/// The policies of runs in this process: the files that `--policies` or the setting names, else
/// the registry.
pub(crate) fn source() -> Result<PolicySource, Refused> {
    let paths = config::get().paths(Name::Policies);
    if paths.is_empty() {
        return Ok(PolicySource::default());
    }
    let paths: Vec<OsString> = paths.iter().map(OsString::from).collect();
    let catalog = providers::catalog().map(|source| source.catalog()).unwrap_or_default();
    let set = load_for_force(&read(&paths)?, Some(&catalog), []);
    let set = set.map_err(|errors| refused(&errors))?;
    Ok(PolicySource::Fixed(Arc::new(set)))
}

/// The tools that policies may name; `None` if only the configured server knows them.
pub(crate) fn catalog(data: &Data) -> Result<Option<Catalog>, Refused> {
    match config::get().server() {
        Some(_) => Ok(None),
        None => cmd::tools::catalog(data).map(Some),
    }
}

/// Reads the policies in files and directories.
pub(crate) fn read(paths: &[OsString]) -> Result<Files, Refused> {
    let mut files = Files::new();
    for path in paths {
        let path = Path::new(path);
        if path.is_dir() {
            for file in directory(path)? {
                files.push(read_file(&file)?);
            }
        } else {
            files.push(read_file(path)?);
        }
    }
    Ok(files)
}

/// The policy files of a directory, by name.
pub(crate) fn directory(dir: &Path) -> Result<Vec<PathBuf>, Refused> {
    let listed = std::fs::read_dir(dir)
        .map_err(|cause| unreadable(&Unreadable { name: dir.display().to_string(), cause }))?;
    let paths = listed.flatten().map(|file| file.path());
    let policy = |path: &PathBuf| path.extension() == Some(OsStr::new(ENDING));
    let mut paths: Vec<PathBuf> = paths.filter(policy).take(FILES_MAX + 1).collect();
    if paths.is_empty() || paths.len() > FILES_MAX {
        let (dir, found) = (dir.display(), if paths.is_empty() { "no" } else { "too many" });
        let message = format!("there are {found} `.{ENDING}` files in `{dir}`");
        let remedy = format!("name a directory with 1 to {FILES_MAX} of them");
        return Err(Refused::new(POLICIES_REFUSED, message, remedy));
    }
    paths.sort();
    Ok(paths)
}

/// The file name and the text of a policy file.
pub(crate) fn read_file(path: &Path) -> Result<(String, String), Refused> {
    let input = input::read(path.as_os_str()).map_err(|file| unreadable(&file))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let refused = |why: &str| {
        let message = format!("`{}` {why}", input.name);
        Refused::new(POLICIES_REFUSED, message, "name a file with policies")
    };
    if input.bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(refused(&format!("has more than {DOCUMENT_BYTES_MAX} bytes")));
    }
    let text = input.text().map_err(|_| refused("is not UTF-8"))?.to_owned();
    Ok((name, text))
}
