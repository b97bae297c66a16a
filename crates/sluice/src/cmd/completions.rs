//! `sluice completions`.

use crate::Exit;
use crate::cli::{self, Completions};
use crate::out::Out;
use anyhow::Context as _;

pub(super) fn run(args: &Completions, out: &mut Out) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "sluice", &mut script);
    out.print(&String::from_utf8(script).context("the script is not UTF-8")?)?;
    Ok(Exit::Done)
}
