//! `list`, `show`, `set` and `remove` for all kinds of rows.

mod columns;
mod field;

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::rows::{ChangeArgs, RemoveRow, RowCommand, RowsList, RowsShow, SetRow};
use crate::cli::run::Data;
use crate::out::{Layout, Out};
use crate::reach;
use crate::registry::load;
use crate::table::Table;
use serde_json::{Map, Value, json};
use sluice_core::doc::setup::section;
use sluice_core::rows::{find, kept};
use sluice_core::visible;
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::Refused;
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry;
use sluice_server::service::registry::{Mode, RowChange, RowEdit, now_ms};
use sluice_server::service::rows::{at, object, read};

pub(super) async fn run(kind: Kind, command: &RowCommand, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        RowCommand::List(args) => list(kind, args, out).await,
        RowCommand::Show(args) => show(kind, args, out).await,
        RowCommand::Set(args) => set(kind, args, out).await,
        RowCommand::Remove(args) => remove(kind, args, out).await,
    }
}

/// All rows, through the API.
pub(super) async fn all(data: &Data) -> anyhow::Result<Vec<Row>> {
    let client = backend::read(data).await?;
    let rows = load(&client).await?.rows;
    client.close().await;
    Ok(rows)
}

pub(super) async fn change(
    by: &ChangeArgs,
    edit: &impl RowEdit,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    crate::registry::change(by, Mode::Write, edit, out).await
}

/// A change of an existing row.
pub(super) fn patch<'a>(
    kind: Kind,
    name: &'a str,
    patch: impl Fn(&mut Map<String, Value>) -> Result<(), Refused> + 'a,
) -> impl RowEdit + 'a {
    move |stored: &[Row]| -> ServiceResult<RowChange> {
        let mut row = registry::row(stored, kind, name)?.clone();
        if let Value::Object(body) = &mut row.body {
            patch(body)?;
        }
        Ok(RowChange { put: vec![row], remove: Vec::new() })
    }
}

pub(super) async fn list(kind: Kind, args: &RowsList, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.target.data).await?;
    let now_ms = now_ms();
    let rows = rows.iter().filter(|row| row.kind == kind);
    let mut rows: Vec<Row> = rows.map(|row| at(row, now_ms)).collect();
    if kind == Kind::Gateway {
        reach::add_health(&mut rows).await?;
    }
    match args.target.output() {
        OutputFormat::Json => {
            let data: Vec<Value> = rows.iter().map(object).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        OutputFormat::Text if rows.is_empty() => out.note(&format!("no {}", section(kind)))?,
        OutputFormat::Text => out.print(&columns::table(kind, &rows))?,
    }
    Ok(Exit::Done)
}

/// A lens with its head.
pub(super) fn lens_at(row: &Row) -> Row {
    at(row, now_ms())
}

pub(super) async fn show(kind: Kind, args: &RowsShow, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.target.data).await?;
    let mut row = at(registry::row(&rows, kind, &args.row.name)?, now_ms());
    if kind == Kind::Gateway {
        reach::add_health(std::slice::from_mut(&mut row)).await?;
    }
    print(&row, args.target.output(), out)?;
    Ok(Exit::Done)
}

/// Prints a row; a row with a text as that text.
pub(super) fn print(row: &Row, output: OutputFormat, out: &mut Out) -> anyhow::Result<()> {
    if output == OutputFormat::Json {
        return out.json(Layout::Line, &object(row));
    }
    if let Some(text) = row.body.get("text").and_then(Value::as_str) {
        for line in text.lines() {
            out.print(&format!("{}\n", visible::line(line)))?;
        }
        return Ok(());
    }
    let mut facts = Table::plain();
    for (field, value) in row.body.as_object().into_iter().flatten() {
        facts.row([field.clone(), columns::cell(field, value)]);
    }
    out.print(&format!("{} {}\n{}", row.kind.noun(), visible::brief(&row.name), facts.draw()))
}

pub(super) async fn set(kind: Kind, args: &SetRow, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let before = find(stored, kind, name).and_then(|row| row.body.as_object());
        let mut body = before.cloned().unwrap_or_default();
        // Fields that commands and the engine maintain are left alone unless set.
        body.retain(|field, _| !kept(kind).any(|one| one == field));
        for (path, text) in &args.fields {
            field::put(&mut body, path, field::value(text));
        }
        Ok(RowChange { put: read(kind, name, &body)?, remove: Vec::new() })
    };
    change(&args.by, &edit, out).await
}

pub(super) async fn remove(kind: Kind, args: &RemoveRow, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let row = registry::row(stored, kind, name)?;
        Ok(RowChange { put: Vec::new(), remove: vec![(kind, row.name.clone())] })
    };
    change(&args.by, &edit, out).await
}
