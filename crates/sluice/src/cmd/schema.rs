//! `sluice schema`: the JSON Schema of a format.

use crate::Exit;
use crate::cli::{self, Reader, Schema};
use crate::out::{Layout, Out};
use sluice_core::doc::Format;

pub(super) fn run(args: &Schema, out: &mut Out) -> anyhow::Result<Exit> {
    let format = match args.format {
        cli::Format::Lobsterx => Format::Lobsterx,
        cli::Format::Lens => Format::Lens,
    };
    let layout = match args.json.reader() {
        Reader::Person => Layout::Pretty,
        Reader::Program => Layout::Line,
    };
    out.json(layout, &format.json_schema())?;
    Ok(Exit::Done)
}
