//! The two ways a case is run: by the binary, and by the engine in this process.

use super::case::Case;
use crate::session::Session;
use crate::world::{PATIENCE, World};
use serde_json::{Map, Value, json};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::moderate::word_list::WordList;
use sluice_bridge::shell::{Config as ShellConfig, ShellAdapter, Workspace};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::journal::envelope;
use sluice_core::port::moderator::Moderator;
use sluice_core::run::command::{Command, Decision, Resolve};
use sluice_core::run::projection::project;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::config::Config;
use sluice_engine::definition::Stored;
use sluice_engine::engine::Ground;
use sluice_engine::error::StartError;
use sluice_engine::start::Start;
use sluice_engine::trust::PolicySource;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_store::memory::MemoryStore;
use std::sync::Arc;
use std::time::Duration;

/// What came of a case.
pub(super) struct Seen {
    pub(super) exit: i64,
    /// The projection; none if there was no run.
    pub(super) shown: Option<Value>,
    /// Every envelope, in order.
    pub(super) events: Vec<Value>,
    /// What was found in the document, as `validate --json` tells it.
    pub(super) report: Value,
    /// Why a right document did not become a run: the code.
    pub(super) refused: Option<String>,
}

/// Runs a case as a user would.
pub(super) fn binary(case: &Case) -> Result<Seen, String> {
    let world = World::new().file(&case.called, &case.document).file("mock.yaml", &case.mock);
    let args = Value::Object(case.args.clone()).to_string();
    let mut words = vec![
        "run",
        &case.called,
        "--mock",
        "mock.yaml",
        "--args-json",
        &args,
        "--json",
        "--events",
    ];
    if case.yes {
        words.push("--yes");
    }
    let world = match &case.moderation {
        Some(list) => {
            words.extend(["--moderation", "words.txt"]);
            world.file("words.txt", list)
        }
        None => world,
    };
    let done = world.output(&words);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    let exit = i64::from(done.status.code().unwrap_or(-1));
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    let lines: Result<Vec<Value>, _> = stdout.lines().map(serde_json::from_str).collect();
    let mut lines = lines.map_err(|error| format!("it prints no JSON: {error}\n{stdout}"))?;
    let Some(last) = lines.pop() else {
        let error = told.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let code = error.as_ref().and_then(|error| error["code"].as_str());
        let code = code.ok_or(format!("it prints nothing: {told}"))?;
        let refused = Some(code.to_owned());
        return Ok(Seen { exit, shown: None, events: lines, report: Value::Null, refused });
    };
    if last.get("ok").is_some() {
        return Ok(Seen { exit, shown: None, events: lines, report: last, refused: None });
    }
    let report = match case.expect.get("diagnostics") {
        Some(_) => world.output(&["validate", "--json", &case.called]).stdout,
        None => b"null".to_vec(),
    };
    let report = serde_json::from_slice(&report).map_err(|error| format!("no report: {error}"))?;
    Ok(Seen { exit, shown: Some(last), events: lines, report, refused: None })
}

/// Runs a case as a program would.
pub(super) fn engine(case: &Case) -> Result<Seen, String> {
    let format = if case.called.contains(".lens.") { Format::Lens } else { Format::Lobsterx };
    let checked = doc::check(case.document.as_bytes(), Some(format), &Registry::default());
    let lines = |errors: bool| -> Vec<Value> {
        let of = checked.diagnostics.iter().filter(|one| one.is_error() == errors);
        let line = |one: &sluice_core::diagnostic::Diagnostic| {
            json!({"code": one.code.as_str(), "message": one.message, "path": one.path,
                "line": one.line, "column": one.column, "hint": one.hint})
        };
        of.map(line).collect()
    };
    let report = json!({"errors": lines(true), "warnings": lines(false)});
    let Some(plan) = checked.plan else {
        return Ok(Seen { exit: 2, shown: None, events: Vec::new(), report, refused: None });
    };
    let stored = Stored::new(plan, &case.document);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (run, events) = match runtime.block_on(play(case, stored))? {
        Ok(played) => played,
        Err(code) => {
            let refused = Some(code.to_owned());
            return Ok(Seen { exit: 2, shown: None, events: Vec::new(), report, refused });
        }
    };
    let exit = match run.status {
        RunStatus::Completed => 0,
        RunStatus::Failed => 1,
        RunStatus::Cancelled => 3,
        RunStatus::TimedOut => 5,
        _ => 4,
    };
    let shown = serde_json::to_value(project(&run)).map_err(|error| error.to_string())?;
    Ok(Seen { exit, shown: Some(shown), events, report, refused: None })
}

/// A run that came to rest, with its events; or the code it was refused with.
type Played = Result<(Run, Vec<Value>), &'static str>;

/// Starts a run on an engine of its own, and waits until nothing happens any more.
async fn play(case: &Case, stored: Stored) -> Result<Played, String> {
    let script = Script::parse(&case.mock).map_err(|faults| format!("the script: {faults:?}"))?;
    let mock = Arc::new(MockAdapter::new(script));
    let session = Session::new();
    let shell = ShellConfig::new(Workspace::Shared(session.path().to_owned()));
    let agents = Agents::new()
        .with("shell", Arc::new(ShellAdapter::new(shell)))
        .with("mock", Arc::clone(&mock) as Arc<_>)
        .with_fallback(mock);
    let ground = Ground {
        store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        agents,
        policies: PolicySource::default(),
        catalog: None,
        sealer: None,
        moderator: moderator(case)?,
        observer: None,
    };
    let engine =
        Engine::open(ground, Config::default()).await.map_err(|error| error.to_string())?;
    let mut start = Start::new(stored, case.args.clone());
    start.default_agent = Some("mock".to_owned());
    let run = match engine.start(start).await {
        Ok(started) => started.run,
        Err(StartError::Args(_)) => return Ok(Err("invalid_args")),
        Err(StartError::Agent(_)) => return Ok(Err("unknown_agent")),
        Err(StartError::Unresolved(_)) => return Ok(Err("unresolved_reference")),
        Err(error) => return Err(format!("not started: {error}")),
    };
    let mut tips = engine.follow(run);
    let settled = async {
        loop {
            let now = engine.load(run).await.map_err(|error| error.to_string())?;
            if now.status.is_terminal() || (now.status == RunStatus::Paused && !case.yes) {
                return Ok(now);
            }
            agree(&engine, &now, case).await;
            // A look now and then, lest a change before the first wait be missed.
            let _ = tokio::time::timeout(Duration::from_millis(20), tips.changed()).await;
        }
    };
    let settled = tokio::time::timeout(PATIENCE, settled).await;
    let run = settled.map_err(|_| "it does not end".to_owned()).and_then(|run| run)?;
    let mut events = Vec::new();
    loop {
        let page =
            engine.events(&run, events.len() as u64).await.map_err(|error| error.to_string())?;
        if page.is_empty() {
            break;
        }
        let shown = page.into_iter().filter_map(envelope::Seen::event);
        let read = shown.map(|one| serde_json::from_str(&one.json));
        events.extend(read.collect::<Result<Vec<Value>, _>>().map_err(|error| error.to_string())?);
    }
    engine.shutdown().await;
    Ok(Ok((run, events)))
}

/// A moderator that knows the phrases of the case.
fn moderator(case: &Case) -> Result<Option<Arc<dyn Moderator>>, String> {
    let Some(list) = &case.moderation else { return Ok(None) };
    let list = WordList::parse(list.as_bytes()).map_err(|error| error.to_string())?;
    Ok(Some(Arc::new(list)))
}

/// Agrees to whatever is asked, where the case says so.
async fn agree(engine: &Engine, run: &Run, case: &Case) {
    let open = run.approvals.iter().filter(|(_, one)| one.resolution.is_none());
    for approval in open.map(|(id, _)| *id).filter(|_| case.yes) {
        let resolve = Resolve {
            approval,
            decision: Decision::Approve,
            by: "local".to_owned(),
            comment: None,
            values: Map::new(),
            roles: vec!["approver".to_owned(), "admin".to_owned()],
            constraints: None,
        };
        let command = Command::Resolve(Box::new(resolve));
        // One that was answered meanwhile needs no answer.
        let _ = engine.command(run.id, command, &approval.to_string()).await;
    }
}
