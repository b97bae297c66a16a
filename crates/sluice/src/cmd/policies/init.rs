//! `sluice policies init`.

use crate::Exit;
use crate::cli::registry::Init;
use crate::out::Out;
use anyhow::Context as _;
use sluice_core::visible;
use sluice_govern::policy::DEFAULT;
use sluice_server::refused::{FILE_EXISTS, Refused};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

pub(super) fn run(args: &Init, out: &mut Out) -> anyhow::Result<Exit> {
    let (name, text) = DEFAULT;
    let path = args.dir.join(name);
    let shown = visible::line(&path.to_string_lossy()).into_owned();
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make `{shown}`"))?;
    match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            written.with_context(|| format!("cannot write `{shown}`"))?;
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message = format!("`{shown}` is there already");
            let remedy = "name another directory, or move the file away first";
            return Err(Refused::new(FILE_EXISTS, message, remedy).into());
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write `{shown}`")),
    }
    out.print(&format!("{shown}\n"))?;
    Ok(Exit::Done)
}
