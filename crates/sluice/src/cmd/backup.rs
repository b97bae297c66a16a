//! `sluice backup`: a copy of the store, while others work on it.

use crate::Exit;
use crate::cli::Backup;
use crate::desk;
use crate::key;
use crate::local;
use crate::out::Out;
use crate::place::Place;
use crate::refused::by_store;
use sluice_core::visible;
use sluice_server::refused::{DATA_UNUSABLE, FILE_EXISTS, Refused};
use sluice_store::sqlite;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

pub(super) fn run(args: &Backup, out: &mut Out) -> anyhow::Result<Exit> {
    desk::here("`backup`")?;
    if Place::of(&args.data)?.database().is_some() {
        let message = "`backup` copies the store of a data directory, and this one is a database";
        let remedy = "use the database's own means, such as `pg_dump` or a replica";
        return Err(Refused::new(DATA_UNUSABLE, message, remedy).into());
    }
    local::existing(&args.data)?;
    let dir = local::directory(&args.data);
    let file = &args.file;
    let shown = visible::brief(&file.to_string_lossy()).into_owned();
    // Made first, so that nobody else can ever read it; an empty file may be copied to.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("`{shown}` is there already");
            Refused::new(FILE_EXISTS, message, "name another file, or move this one away")
        }
        _ => {
            let message = format!("`{shown}` cannot be written: {error}");
            Refused::new(DATA_UNUSABLE, message, "name a file in a directory that can be written")
        }
    })?;
    if let Err(error) = sqlite::copy(&dir, file) {
        // What is half a copy helps nobody.
        let _ = std::fs::remove_file(file);
        return Err(by_store(&dir, &error).into());
    }
    out.print(&format!("{shown} holds all runs, rows and evidence of `{}`\n", dir.display()))?;
    out.note(&format!(
        "keep `{}` too, apart from it: the key that seals are signed with is not in the copy",
        dir.join(key::SECRET).display()
    ))?;
    Ok(Exit::Done)
}
