//! What all rows of the registry have in common: listed, shown, set, removed.

mod columns;
mod field;

use crate::Exit;
use crate::cli::Reader;
use crate::cli::rows::{By, List, Remove, Rows, Set, Show};
use crate::cli::run::Data;
use crate::desk;
use crate::local::{self, Local};
use crate::organisation;
use crate::out::{Layout, Out};
use crate::reach;
use crate::table::Table;
use serde_json::{Map, Value, json};
use sluice_core::doc::setup::section;
use sluice_core::rows::{find, kept};
use sluice_core::visible;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::Done;
use sluice_server::refused::Refused;
use sluice_server::service::RowOrigin;
use sluice_server::service::registry;
use sluice_server::service::registry::{Asked, Author, Mode, Outcome, Wish, now_ms};
use sluice_server::service::rows::{at, object, read};

pub(super) async fn run(kind: Kind, command: &Rows, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Rows::List(args) => list(kind, args, out).await,
        Rows::Show(args) => show(kind, args, out).await,
        Rows::Set(args) => set(kind, args, out).await,
        Rows::Remove(args) => remove(kind, args, out).await,
    }
}

/// The rows of a data directory that is there, or of a server.
pub(super) async fn all(data: &Data) -> anyhow::Result<Vec<Row>> {
    if let Some(client) = desk::server()? {
        return crate::registry::there(&client).await;
    }
    let local = Local::read(data).await?;
    let rows = local.store.registry(None).await?.rows;
    local.close().await;
    Ok(rows)
}

/// Changes rows in a data directory, which is made where it is missing, and
/// tells what became of it.
pub(super) async fn change(by: &By, wish: &impl Wish, out: &mut Out) -> anyhow::Result<Exit> {
    change_in(by, Mode::Write, wish, out).await
}

/// The same, perhaps only to look.
pub(super) async fn change_in(
    by: &By,
    mode: Mode,
    wish: &impl Wish,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    if let Some(client) = desk::server_for(&by.data)? {
        desk::by_token(&by.name)?;
        desk::without_glass(&by.glass)?;
        return crate::registry::change_there(&client, mode, wish, by.json.reader(), out).await;
    }
    let (who, reader) = (local::who(&by.name), by.json.reader());
    let author = Author { name: &who, break_glass: by.glass.reason.as_deref() };
    // What is refused or only looked at makes no directory.
    if local::existing(&by.data).is_err() {
        let origin = match organisation::of(&by.data).as_str() {
            organisation::DEFAULT => RowOrigin::Operator,
            _ => RowOrigin::Client,
        };
        let local = Local::imagined(Vec::new(), origin).await?;
        let tried = registry::change(&local, author, Mode::Look, wish).await;
        local.close().await;
        let tried = tried?;
        if mode == Mode::Look || matches!(tried, Outcome::Refused(_)) {
            return crate::registry::tell(&tried, reader, out);
        }
    }
    let local = Local::open(&by.data, Agents::new(), Claims::None).await?;
    let changed = registry::change(&local, author, mode, wish).await;
    local.close().await;
    crate::registry::tell(&changed?, reader, out)
}

/// A change of one row that is there.
pub(super) fn patch<'a>(
    kind: Kind,
    name: &'a str,
    patch: impl Fn(&mut Map<String, Value>) -> Result<(), Refused> + 'a,
) -> impl Wish + 'a {
    move |there: &[Row]| -> Done<Asked> {
        let mut row = registry::row(there, kind, name)?.clone();
        if let Value::Object(body) = &mut row.body {
            patch(body)?;
        }
        Ok(Asked { put: vec![row], remove: Vec::new() })
    }
}

pub(super) async fn list(kind: Kind, args: &List, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.data).await?;
    let now_ms = now_ms();
    let rows = rows.iter().filter(|row| row.kind == kind);
    let mut rows: Vec<Row> = rows.map(|row| at(row, now_ms)).collect();
    if kind == Kind::Gateway {
        reach::note(&mut rows).await?;
    }
    match args.json.reader() {
        Reader::Program => {
            let data: Vec<Value> = rows.iter().map(object).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        Reader::Person if rows.is_empty() => out.note(&format!("no {}", section(kind)))?,
        Reader::Person => out.print(&columns::table(kind, &rows))?,
    }
    Ok(Exit::Done)
}

/// A lens as it is shown: with its head.
pub(super) fn lens_at(row: &Row) -> Row {
    at(row, now_ms())
}

pub(super) async fn show(kind: Kind, args: &Show, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.data).await?;
    let mut row = at(registry::row(&rows, kind, &args.row.name)?, now_ms());
    if kind == Kind::Gateway {
        reach::note(std::slice::from_mut(&mut row)).await?;
    }
    tell(&row, args.json.reader(), out)?;
    Ok(Exit::Done)
}

/// Shows a row; one that is a text as that text.
pub(super) fn tell(row: &Row, reader: Reader, out: &mut Out) -> anyhow::Result<()> {
    if reader == Reader::Program {
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
    out.print(&format!("{} {}\n{}", row.kind.as_str(), visible::brief(&row.name), facts.draw()))
}

pub(super) async fn set(kind: Kind, args: &Set, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    let wish = |there: &[Row]| -> Done<Asked> {
        let before = find(there, kind, name).and_then(|row| row.body.as_object());
        let mut body = before.cloned().unwrap_or_default();
        // What is kept is left as it is unless it is set.
        body.retain(|field, _| !kept(kind).contains(&field.as_str()));
        for (path, text) in &args.fields {
            field::put(&mut body, path, field::value(text));
        }
        Ok(Asked { put: read(kind, name, &body)?, remove: Vec::new() })
    };
    change(&args.by, &wish, out).await
}

pub(super) async fn remove(kind: Kind, args: &Remove, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.row.name.as_str();
    let wish = |there: &[Row]| -> Done<Asked> {
        let row = registry::row(there, kind, name)?;
        Ok(Asked { put: Vec::new(), remove: vec![(kind, row.name.clone())] })
    };
    change(&args.by, &wish, out).await
}
