//! Rows of the registry: read through the API, and changed through `POST /apply`.

use crate::Exit;
use crate::backend::{self, Identity};
use crate::cli::OutputFormat;
use crate::cli::rows::ChangeArgs;
use crate::cli::run::Data;
use crate::client::{ApiProblem, Client};
use crate::cmd::{print_diagnostics, print_report};
use crate::local::{self, Local};
use crate::organisation;
use crate::out::{Layout, Out};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sluice_core::rows::{Difference, FieldChange};
use sluice_core::visible;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_govern::registry::{Kind, Row, WorkflowVersion};
use sluice_server::refused::REGISTRY_BUSY;
use sluice_server::service::RowOrigin;
use sluice_server::service::document::Findings;
use sluice_server::service::registry::{ChangeOutcome, Mode, RowEdit, Warnings, preview};

/// How often a change is tried while other clients change the registry.
const TRIES: usize = 16;

/// The rows of a data directory, without an engine on it; none where there is no
/// directory yet.
pub(crate) async fn stored_rows(data: &Data) -> anyhow::Result<Vec<Row>> {
    if local::existing(data).is_err() {
        return Ok(Vec::new());
    }
    Ok(local::store(data)?.registry(None).await?.rows)
}

/// The rows of the configured server, else of a data directory, also where stored
/// policies keep an engine from opening it.
pub(crate) async fn load_rows(data: &Data) -> anyhow::Result<Vec<Row>> {
    match backend::server()? {
        Some(client) => Ok(load(&client).await?.rows),
        None => stored_rows(data).await,
    }
}

/// The rows, and the epoch of the registry that they belong to.
pub(crate) struct RegistryRows {
    epoch: u64,
    pub(crate) rows: Vec<Row>,
}

/// All rows but tokens. A server replaces secrets by `[redacted]`.
pub(crate) async fn load(client: &Client) -> anyhow::Result<RegistryRows> {
    #[derive(Deserialize)]
    struct RowAnswer {
        kind: String,
        name: String,
        body: Map<String, Value>,
    }
    #[derive(Deserialize)]
    struct RegistryAnswer {
        epoch: u64,
        rows: Vec<RowAnswer>,
    }
    let all: RegistryAnswer = client.get(&["registry"], &[]).await?.read()?;
    // A newer server may have kinds that this client does not know.
    let rows = all.rows.into_iter().filter_map(|RowAnswer { kind, name, body }| {
        Some(Row { kind: Kind::parse(&kind)?, name, body: Value::Object(body) })
    });
    Ok(RegistryRows { epoch: all.epoch, rows: rows.collect() })
}

/// Changes rows, and prints the changes. A missing data directory is created, unless the
/// change is refused or a dry run.
pub(crate) async fn change(
    by: &ChangeArgs,
    mode: Mode,
    edit: &impl RowEdit,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let (identity, output) = (Identity::from(by), by.json.output());
    let (client, author) = match backend::server_for(&by.data, &identity)? {
        Some(client) => {
            let session = client.get(&["session"], &[]).await?.data;
            let name = session["principal"].as_str().unwrap_or_default().to_owned();
            (client, (RowOrigin::Client, name))
        }
        None => {
            let origin = match organisation::name_of(&by.data).as_str() {
                organisation::DEFAULT => RowOrigin::Operator,
                _ => RowOrigin::Client,
            };
            let author = (origin, identity.principal());
            if local::existing(&by.data).is_err() {
                let tried = preview(&[], author.0, &author.1, edit)?;
                if mode == Mode::Look || matches!(tried, ChangeOutcome::Refused(_)) {
                    return report_preview(&tried, output, out);
                }
            }
            let local = Local::open(&by.data, Agents::new(), Claims::None).await?;
            (backend::in_process(&local, &by.data, &identity).await?, author)
        }
    };
    let changed = apply(&client, author, mode, edit).await;
    client.close().await;
    match changed? {
        AppliedChange::Refused(findings) => refuse(&findings, output, out),
        AppliedChange::Done { answer, warnings } => {
            print_warnings(&warnings, output, out)?;
            let answer = ChangeAnswer { warnings: warnings.shown(), ..answer };
            print(&answer, mode, output, out)
        }
    }
}

/// The outcome of a change.
enum AppliedChange {
    Refused(Vec<Findings>),
    Done { answer: ChangeAnswer, warnings: Warnings },
}

/// Works a change out against the rows there are, so that problems are placed in the files
/// they come from, and sends it. The server checks it again, and refuses it if the registry
/// has changed meanwhile.
async fn apply(
    client: &Client,
    (origin, name): (RowOrigin, String),
    mode: Mode,
    edit: &impl RowEdit,
) -> anyhow::Result<AppliedChange> {
    let mut tries = 0;
    loop {
        let stored = load(client).await?;
        let (differences, warnings) = match preview(&stored.rows, origin, &name, edit)? {
            ChangeOutcome::Done { differences, warnings, .. } => (differences, warnings),
            ChangeOutcome::Refused(findings) => return Ok(AppliedChange::Refused(findings)),
        };
        tries += 1;
        match send(client, stored.epoch, mode, &differences).await {
            Ok(answer) => return Ok(AppliedChange::Done { answer, warnings }),
            Err(error) if tries < TRIES && is_busy(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_busy(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ApiProblem>().is_some_and(|problem| problem.code == REGISTRY_BUSY)
}

async fn send(
    client: &Client,
    epoch: u64,
    mode: Mode,
    differences: &[Difference],
) -> anyhow::Result<ChangeAnswer> {
    let (workflows, rows): (Vec<_>, Vec<_>) =
        differences.iter().partition(|one| one.kind == Kind::Workflow);
    // A version is removed by its own route, and by a command that changes nothing else.
    if let Some(gone) = workflows.iter().find(|one| one.after.is_none()) {
        let (name, version) = WorkflowVersion::split(&gone.name).unwrap_or((&gone.name, 0));
        let path = ["workflows", name, "versions", &version.to_string()];
        return client.delete(&path).await?.read();
    }
    let documents: Vec<Value> = workflows.iter().filter_map(|one| document(one)).collect();
    let put = rows.iter().filter_map(|one| {
        Some(json!({"kind": one.kind.as_str(), "name": one.name, "body": one.after.as_ref()?}))
    });
    let remove = rows.iter().filter(|one| one.after.is_none());
    let remove = remove.map(|one| json!({"kind": one.kind.as_str(), "name": one.name}));
    let body = json!({
        "rows": put.collect::<Vec<_>>(),
        "documents": documents,
        "remove": remove.collect::<Vec<_>>(),
        "dry_run": mode == Mode::Look,
        "epoch": epoch,
    });
    client.post(&["apply"], &body).await?.read()
}

/// A new version of a workflow, as `apply` takes it.
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

/// What the API answers to a change.
#[derive(Deserialize)]
pub(crate) struct ChangeAnswer {
    changes: Vec<Value>,
    epoch: u64,
    #[serde(default)]
    warnings: Vec<Value>,
}

/// Prints what a change would do, which was not sent.
fn report_preview(
    tried: &ChangeOutcome,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let (differences, warnings) = match tried {
        ChangeOutcome::Done { differences, warnings, .. } => (differences, warnings),
        ChangeOutcome::Refused(findings) => return refuse(findings, output, out),
    };
    print_warnings(warnings, output, out)?;
    let changes = differences.iter().map(object).collect();
    let answer = ChangeAnswer { changes, epoch: 0, warnings: warnings.shown() };
    print(&answer, Mode::Look, output, out)
}

fn refuse(findings: &[Findings], output: OutputFormat, out: &mut Out) -> anyhow::Result<Exit> {
    for found in findings {
        match output {
            OutputFormat::Text => print_diagnostics(&found.input, &found.diagnostics, out)?,
            OutputFormat::Json => print_report(&found.input, &found.diagnostics, out)?,
        }
    }
    Ok(Exit::Refused)
}

/// Prints warnings for people. Programs find them in the answer.
fn print_warnings(warnings: &Warnings, output: OutputFormat, out: &mut Out) -> anyhow::Result<()> {
    if output == OutputFormat::Json {
        return Ok(());
    }
    for found in &warnings.placed {
        print_diagnostics(&found.input, &found.diagnostics, out)?;
    }
    for one in &warnings.others {
        let hint = one.hint.as_deref().unwrap_or_default();
        out.note(&visible::line(&format!("warning[{}]: {} ({hint})", one.code, one.message)))?;
    }
    Ok(())
}

/// Prints the changes that were made, or would be.
pub(crate) fn print(
    answer: &ChangeAnswer,
    mode: Mode,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let ChangeAnswer { changes, epoch, warnings } = answer;
    if output == OutputFormat::Json {
        let dry_run = mode == Mode::Look;
        let answer = json!({
            "changes": changes, "epoch": epoch, "dry_run": dry_run, "warnings": warnings,
        });
        out.json(Layout::Line, &answer)?;
        return Ok(Exit::Done);
    }
    for one in changes {
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
    // A newer server may have kinds that this command does not know.
    let known = Kind::parse(word("kind")).map(Kind::noun);
    let kind = known.unwrap_or_else(|| word("kind"));
    format!("{sign} {kind} {}{colon}{fields}", word("name"))
}

fn object(one: &Difference) -> Value {
    json!({
        "change": one.word(),
        "kind": one.kind.as_str(),
        "name": one.name,
        "fields": one.fields(),
    })
}
