//! Rows of the registry of a data directory: at rest, and what people are told of
//! changes.

use crate::Exit;
use crate::cli::Reader;
use crate::cli::run::Data;
use crate::client::Client;
use crate::cmd::{tell_people, tell_report};
use crate::desk;
use crate::local::{self, Local};
use crate::out::{Layout, Out};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sluice_core::rows::{Difference, FieldChange};
use sluice_core::visible;
use sluice_govern::registry::{Kind, Row, WorkflowVersion};
use sluice_server::service::RowOrigin;
use sluice_server::service::registry::{self, Mode, Outcome, Warnings, Wish};

/// The rows of a data directory that nobody may have made yet.
pub(crate) async fn at_rest(data: &Data) -> anyhow::Result<Vec<Row>> {
    if local::existing(data).is_err() {
        return Ok(Vec::new());
    }
    Ok(local::store(data)?.registry(None).await?.rows)
}

/// The same, or the rows of the server that is asked.
pub(crate) async fn known(data: &Data) -> anyhow::Result<Vec<Row>> {
    match desk::server()? {
        Some(client) => there(&client).await,
        None => at_rest(data).await,
    }
}

/// The rows of a server. Secrets are not among what it says of them.
pub(crate) async fn there(client: &Client) -> anyhow::Result<Vec<Row>> {
    #[derive(Deserialize)]
    struct Kept {
        kind: String,
        name: String,
        body: Map<String, Value>,
    }
    #[derive(Deserialize)]
    struct All {
        rows: Vec<Kept>,
    }
    let all: All = client.get(&["registry"], &[]).await?.read()?;
    // Kinds that only a newer server has are nothing to this one.
    let rows = all.rows.into_iter().filter_map(|Kept { kind, name, body }| {
        Some(Row { kind: Kind::parse(&kind)?, name, body: Value::Object(body) })
    });
    Ok(rows.collect())
}

/// Changes rows of a server. Everything is worked out and checked here first, so
/// that problems are placed in the files they come from; the server checks again.
pub(crate) async fn change_there(
    client: &Client,
    mode: Mode,
    wish: &impl Wish,
    reader: Reader,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let rows = there(client).await?;
    let session = client.get(&["session"], &[]).await?.data;
    let who = session["principal"].as_str().unwrap_or_default();
    let local = Local::imagined(rows, RowOrigin::Client).await?;
    let tried = registry::change(&local, who, Mode::Look, wish).await;
    local.close().await;
    let tried = tried?;
    let Outcome::Done { differences, warnings, .. } = &tried else {
        return tell(&tried, reader, out);
    };
    let (workflows, rest): (Vec<_>, Vec<_>) =
        differences.iter().partition(|one| one.kind == Kind::Workflow);
    let mut told: Vec<Value> = Vec::new();
    // Versions of workflows go where workflows are.
    let gone = workflows.iter().filter(|one| one.after.is_none() && mode == Mode::Write);
    for one in gone {
        let Some((name, version)) = WorkflowVersion::split(&one.name) else { continue };
        let path = ["workflows", name, "versions", &version.to_string()];
        let done = client.send(Method::DELETE, &path, &json!({})).await?.data;
        told.extend(done["changes"].as_array().cloned().unwrap_or_default());
    }
    let documents: Vec<Value> = workflows.iter().filter_map(|one| document(one)).collect();
    let put = rest.iter().filter_map(|one| {
        Some(json!({"kind": one.kind.as_str(), "name": one.name, "body": one.after.as_ref()?}))
    });
    let remove = rest.iter().filter(|one| one.after.is_none());
    let remove = remove.map(|one| json!({"kind": one.kind.as_str(), "name": one.name}));
    let body = json!({
        "rows": put.collect::<Vec<_>>(),
        "documents": documents,
        "remove": remove.collect::<Vec<_>>(),
        "dry_run": mode == Mode::Look,
    });
    let done = client.post(&["apply"], &body).await?.data;
    told.extend(done["changes"].as_array().cloned().unwrap_or_default());
    if mode == Mode::Look {
        // What a server would remove of workflows is known from here.
        let gone = workflows.iter().filter(|one| one.after.is_none());
        told.extend(gone.map(|one| object(one)));
    }
    warn(warnings, reader, out)?;
    let epoch = &done["epoch"];
    say(&Said { changes: &told, epoch, mode, warnings: warnings.shown() }, reader, out)
}

/// A version that is new, as it is handed over.
fn document(one: &Difference) -> Option<Value> {
    let after = one.after.as_ref()?;
    let (name, _) = WorkflowVersion::split(&one.name)?;
    let ending = match after["format"].as_str() {
        Some("lobsterx") => ".lobsterx.yaml",
        Some("lens") => ".lens.yaml",
        _ => "",
    };
    Some(json!({"name": format!("{name}{ending}"), "text": after["text"]}))
}

/// Tells what became of a change.
pub(crate) fn tell(outcome: &Outcome, reader: Reader, out: &mut Out) -> anyhow::Result<Exit> {
    let (differences, epoch, mode, warnings) = match outcome {
        Outcome::Done { differences, epoch, mode, warnings } => {
            (differences, epoch, mode, warnings)
        }
        Outcome::Refused(findings) => {
            for found in findings {
                match reader {
                    Reader::Person => tell_people(&found.input, &found.diagnostics, out)?,
                    Reader::Program => tell_report(&found.input, &found.diagnostics, out)?,
                }
            }
            return Ok(Exit::Refused);
        }
    };
    warn(warnings, reader, out)?;
    let changes: Vec<Value> = differences.iter().map(object).collect();
    let epoch = json!(epoch);
    let warnings = warnings.shown();
    say(&Said { changes: &changes, epoch: &epoch, mode: *mode, warnings }, reader, out)
}

/// Tells what a server says became of a change.
pub(crate) fn tell_there(done: &Value, reader: Reader, out: &mut Out) -> anyhow::Result<Exit> {
    let changes = done["changes"].as_array().cloned().unwrap_or_default();
    let warnings = done["warnings"].as_array().cloned().unwrap_or_default();
    let (epoch, mode) = (&done["epoch"], Mode::Write);
    say(&Said { changes: &changes, epoch, mode, warnings }, reader, out)
}

/// Tells people what is allowed and seldom meant. Programs find it in the answer.
fn warn(warnings: &Warnings, reader: Reader, out: &mut Out) -> anyhow::Result<()> {
    if reader == Reader::Program {
        return Ok(());
    }
    for found in &warnings.placed {
        tell_people(&found.input, &found.diagnostics, out)?;
    }
    for one in &warnings.others {
        let hint = one.hint.as_deref().unwrap_or_default();
        out.note(&visible::line(&format!("warning[{}]: {} ({hint})", one.code, one.message)))?;
    }
    Ok(())
}

/// What became of a change.
struct Said<'a> {
    changes: &'a [Value],
    epoch: &'a Value,
    mode: Mode,
    warnings: Vec<Value>,
}

/// Says what changed, or would.
fn say(said: &Said<'_>, reader: Reader, out: &mut Out) -> anyhow::Result<Exit> {
    let Said { changes, epoch, mode, warnings } = said;
    if reader == Reader::Program {
        let dry_run = *mode == Mode::Look;
        let answer = json!({
            "changes": changes, "epoch": epoch, "dry_run": dry_run, "warnings": warnings,
        });
        out.json(Layout::Line, &answer)?;
        return Ok(Exit::Done);
    }
    for one in *changes {
        out.print(&format!("{}\n", visible::line(&line(one))))?;
    }
    match (changes.is_empty(), mode) {
        (true, _) => out.print("nothing to change\n")?,
        (false, Mode::Look) => out.note("nothing was written")?,
        (false, Mode::Write) => {}
    }
    Ok(Exit::Done)
}

/// A change for people: `~ agent scribe: trust_level 5 -> 6`.
fn line(change: &Value) -> String {
    let word = |name: &str| change[name].as_str().unwrap_or_default();
    let sign = match word("change") {
        "added" => '+',
        "removed" => '-',
        _ => '~',
    };
    let fields = change["fields"].as_array().into_iter().flatten().map(|field| {
        let path = field["path"].as_str().unwrap_or_default().to_owned();
        let (before, after) = (field["before"].clone(), field["after"].clone());
        FieldChange { path, before, after }.to_string()
    });
    let fields = fields.collect::<Vec<_>>().join(", ");
    let colon = if sign == '~' { ": " } else { "" };
    format!("{sign} {} {}{colon}{fields}", word("kind"), word("name"))
}

fn object(one: &Difference) -> Value {
    json!({
        "change": one.word(),
        "kind": one.kind.as_str(),
        "name": one.name,
        "fields": one.fields(),
    })
}
