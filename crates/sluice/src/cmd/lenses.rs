//! `sluice lenses`.

use super::rows::{all, list};
use crate::Exit;
use crate::cli::OutputFormat;
use crate::cli::rows::RowsShow;
use crate::cli::schedules::Lenses;
use crate::out::{Layout, Out};
use serde_json::Value;
use sluice_core::visible;
use sluice_govern::registry::Kind;
use sluice_server::service::registry;
use sluice_server::service::rows::object;

pub(super) async fn run(command: &Lenses, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Lenses::List(args) => list(Kind::Lens, args, out).await,
        Lenses::Show(args) => show(args, out).await,
    }
}

async fn show(args: &RowsShow, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.target.data).await?;
    let row = super::rows::lens_at(registry::row(&rows, Kind::Lens, &args.row.name)?);
    if args.target.output() == OutputFormat::Json {
        out.json(Layout::Line, &object(&row))?;
        return Ok(Exit::Done);
    }
    let head = row.body["head"].as_str().unwrap_or_default().to_owned();
    out.print(&format!("lens {}\n", visible::brief(&row.name)))?;
    for (id, version) in row.body["versions"].as_object().into_iter().flatten() {
        let mark = if *id == head { " (head)" } else { "" };
        out.print(&format!("\nversion {}{mark}\n", visible::brief(id)))?;
        for (field, value) in version.as_object().into_iter().flatten() {
            match value {
                Value::String(text) if field == "template" => {
                    for line in text.lines() {
                        out.print(&format!("  {}\n", visible::line(line)))?;
                    }
                }
                value => {
                    let text = value.to_string();
                    out.print(&format!(
                        "  {}: {}\n",
                        visible::brief(field),
                        visible::brief(&text)
                    ))?;
                }
            }
        }
    }
    Ok(Exit::Done)
}
