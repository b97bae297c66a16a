//! `sluice schema`: the JSON Schema of a document format, or the OpenAPI description of the server.

use crate::Exit;
use crate::cli::{self, OutputFormat, Schema};
use crate::out::{Layout, Out};
use sluice_core::doc::Format;
use sluice_core::doc::setup::Setup;
use sluice_server::api;

pub(super) fn run(args: &Schema, out: &mut Out) -> anyhow::Result<Exit> {
    let schema = match args.format {
        cli::SchemaFormat::Lobsterx => Format::Lobsterx.json_schema(),
        cli::SchemaFormat::Lens => Format::Lens.json_schema(),
        cli::SchemaFormat::Setup => Setup::json_schema(),
        cli::SchemaFormat::Openapi => api::openapi::document(&api::routes()),
    };
    let layout = match args.json.output() {
        OutputFormat::Text => Layout::Pretty,
        OutputFormat::Json => Layout::Line,
    };
    out.json(layout, &schema)?;
    Ok(Exit::Done)
}
