//! `sluice backup`: copies the stores of all organisations, also while they are in use.

use crate::Exit;
use crate::backend;
use crate::cli::Backup;
use crate::data_location::DataLocation;
use crate::key;
use crate::local;
use crate::organisation;
use crate::out::Out;
use crate::refused::by_store;
use sluice_core::visible;
use sluice_server::refused::{DATA_UNUSABLE, FILE_EXISTS, Refused};
use sluice_store::sqlite;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Suffix of the directory with the copies of other organisations.
const OTHERS: &str = ".organisations";

pub(super) fn run(args: &Backup, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`backup`")?;
    if DataLocation::resolve(&args.data)?.database().is_some() {
        let message = "`backup` copies the store of a data directory, and this one is a database";
        let remedy = "use the database's own means, such as `pg_dump` or a replica";
        return Err(Refused::new(DATA_UNUSABLE, message, remedy).into());
    }
    local::existing(&args.data)?;
    let dir = local::directory(&args.data);
    let mut names = organisation::other_directories(&dir);
    names.sort();
    let copies = copies(&dir, &args.file, &names);
    let mut made = Vec::new();
    if let Err(refused) = copies.iter().try_for_each(|copy| copy.make(&mut made)) {
        // An incomplete backup is removed.
        for path in made.iter().rev() {
            let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path));
        }
        return Err(refused.into());
    }
    for copy in &copies {
        let (to, from) = (shown(&copy.to), copy.from.display());
        out.print(&format!("{to} holds all runs, rows and evidence of `{from}`\n"))?;
    }
    let kept = copies.iter().flat_map(Copy::keys).map(|path| format!("  {}", shown(&path)));
    let kept: Vec<String> = kept.collect();
    out.note(&format!(
        "keep these keys too, apart from it: they are not in the copy, which cannot be opened or \
         verified without them\n{}",
        kept.join("\n")
    ))?;
    Ok(Exit::Done)
}

/// One organisation's store, and where it is copied to.
struct Copy {
    from: PathBuf,
    to: PathBuf,
    /// Directories to create, with access for the owner only.
    dirs: Vec<PathBuf>,
}

/// The copies: the first organisation goes to the file, the others next to it, laid out as in a
/// data directory.
fn copies(dir: &Path, file: &Path, names: &[String]) -> Vec<Copy> {
    let mut others = file.as_os_str().to_owned();
    others.push(OTHERS);
    let others = PathBuf::from(others);
    let other = |name: &String| {
        let own = others.join(name);
        let (from, to) = (organisation::other(dir, name), own.join("sluice.db"));
        Copy { from, to, dirs: vec![others.clone(), own] }
    };
    let first = Copy { from: dir.to_owned(), to: file.to_owned(), dirs: Vec::new() };
    [first].into_iter().chain(names.iter().map(other)).collect()
}

impl Copy {
    /// Copies the store. Created paths are added to `made`.
    fn make(&self, made: &mut Vec<PathBuf>) -> Result<(), Refused> {
        for dir in &self.dirs {
            match DirBuilder::new().mode(0o700).create(dir) {
                Ok(()) => made.push(dir.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(dir, &error)),
            }
        }
        // Created first, so that only its owner can read it at any time; SQLite copies into an
        // empty file.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.to);
        file.map_err(|error| unwritable(&self.to, &error))?;
        made.push(self.to.clone());
        sqlite::copy(&self.from, &self.to).map_err(|error| by_store(&self.from, &error))
    }

    /// The existing keys of the organisation.
    fn keys(&self) -> Vec<PathBuf> {
        let names = [key::SECRET, key::PUBLIC, key::DISPATCH].into_iter();
        names.map(|name| self.from.join(name)).filter(|path| path.exists()).collect()
    }
}

fn shown(path: &Path) -> String {
    visible::brief(&path.to_string_lossy()).into_owned()
}

fn unwritable(path: &Path, error: &io::Error) -> Refused {
    let shown = shown(path);
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("`{shown}` is there already");
            Refused::new(FILE_EXISTS, message, "name another file, or move this one away")
        }
        _ => {
            let message = format!("`{shown}` cannot be written: {error}");
            Refused::new(DATA_UNUSABLE, message, "name a file in a directory that can be written")
        }
    }
}
