//! `sluice run`: starts a run of a document and does its work in this process.

use super::local_worker::LocalWorker;
use super::run_host::RunHost;
use super::runs::restart::restart;
use super::{print_diagnostics, print_unreadable, registry};
use crate::Exit;
use crate::adapters;
use crate::cli::OutputFormat;
use crate::cli::run::Run;
use crate::config;
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::{Report, Unreadable};
use crate::providers::Tape;
use crate::referenced_documents::{self, Documents};
use crate::registry::stored_rows;
use sluice_core::journal::event::DocumentSource;
use sluice_core::plan::Plan;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::start::{Start, StartedRun};
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::{self, DOCUMENT_CHANGED, Refused};
use sluice_server::service::document::Input;
use sluice_server::service::find;
use sluice_server::service::versions;
use std::collections::BTreeMap;

pub(super) async fn run(args: &Run, out: &mut Out) -> anyhow::Result<Exit> {
    let tape = Tape::new(args.record.as_deref(), args.replay.as_deref())?;
    let exit = work(args, &tape, out).await?;
    tape.end(exit, out)
}

async fn work(args: &Run, tape: &Tape, out: &mut Out) -> anyhow::Result<Exit> {
    let output = args.options.view.output();
    let rows = stored_rows(&args.options.data).await?;
    let Some((documents, source)) = documents(args, &rows, output, out)? else {
        return Ok(Exit::Refused);
    };
    let plan = &documents.main.definition.plan;
    let bindings = bindings(args, plan)?;
    let Some(worker) =
        LocalWorker::open_with(&args.options, tape.kit(&args.options.data)?, out).await?
    else {
        return Ok(Exit::Refused);
    };
    if let Some(source) = &args.of {
        return restarted(args, source, &documents, worker, out).await;
    }
    let Documents { main, children, bring } = documents;
    let mut start = Start::new(main, args.inputs.args());
    start.source = source;
    start.children = children;
    start.bring = bring;
    start.initiator.clone_from(&worker.who);
    start.role_bindings = bindings;
    let scripted = || args.options.mock.is_some().then(|| adapters::MOCK.to_owned());
    start.default_agent = config::agent().or_else(scripted);
    start.default_model = sluice_server::service::start::model(args.model.clone())?;
    start.recursion_depth_max = args.max_depth;
    start.key = match sluice_server::service::start::key(args.idempotency_key.clone())? {
        Some(key) if key == "auto" => Some(start.auto_key()),
        key => key,
    };
    let started = worker.local.engine.start(start).await;
    let StartedRun { run, existed } = started.map_err(refused::start)?;
    if existed {
        return existing(run, worker, out).await;
    }
    out.note(&format!("{run} started"))?;
    worker.follow(run, 0, out).await
}

/// The key names an existing run: it is continued, or its result is printed again.
async fn existing(
    run: sluice_core::id::RunId,
    worker: LocalWorker<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    out.note(&format!("{run} was started before with this key"))?;
    let now = find::load(&worker.local, run).await?;
    if !now.status.is_terminal() || now.recovers_at_ms().is_some() {
        // A run that another process owns is only followed.
        let _ = worker.local.engine.take_up(run).await;
    }
    worker.follow(run, 0, out).await
}

/// `--from-step … --of RUN`: the run must be one of this document.
async fn restarted(
    args: &Run,
    source: &str,
    documents: &Documents,
    worker: LocalWorker<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let source = worker.load(source).await?;
    let id = source.id.to_string();
    if source.definition.hash != documents.main.definition.hash {
        let message = format!("{id} is a run of another document, or of an older state of it");
        let remedy = format!("`sluice runs restart {id}` uses the document it was started with");
        return Err(Refused::new(DOCUMENT_CHANGED, message, remedy).into());
    }
    let host = RunHost::local(worker, args.options.view).await?;
    restart(host, &id, &args.from_step, args.options.yes, out).await
}

/// Reads the document and all it refers to; none if one is refused, which is reported.
fn documents(
    args: &Run,
    rows: &[Row],
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<Option<(Documents, DocumentSource)>> {
    let Some(named) = registry(&args.registry, output, out)? else { return Ok(None) };
    let (input, source) = match input(args, rows)? {
        Ok(found) => found,
        Err(unreadable) => {
            print_unreadable(&unreadable, output, out)?;
            return Ok(None);
        }
    };
    let registry = versions::registry(named, rows)?;
    let (documents, findings) = referenced_documents::gather(input, registry, rows)?;
    let last = findings.len() - 1;
    for (at, found) in findings.iter().enumerate() {
        let refused = documents.is_none() && at == last;
        if refused && output == OutputFormat::Json {
            out.json(Layout::Line, &Report::new(&found.input.name, &found.diagnostics))?;
        } else {
            print_diagnostics(&found.input, &found.diagnostics, out)?;
        }
    }
    Ok(documents.map(|documents| (documents, source)))
}

/// Reads the file; if it does not exist, the registered workflow of that name.
fn input(args: &Run, rows: &[Row]) -> Result<Result<(Input, DocumentSource), Unreadable>, Refused> {
    let missing = |file: &Unreadable| file.cause.kind() == std::io::ErrorKind::NotFound;
    // A workflow name cannot be a path.
    let name = |file: &Unreadable| !file.name.contains(['/', '.', '\\']);
    let registered = rows.iter().any(|row| row.kind == Kind::Workflow);
    match input::read(&args.file) {
        Err(file) if registered && missing(&file) && name(&file) => {
            // With a registry file, library steps and lenses may differ from the registered ones.
            let whole = args.registry.file.is_none();
            let source = if whole { DocumentSource::Registered } else { DocumentSource::File };
            Ok(Ok((versions::input(rows, &file.name)?, source)))
        }
        read => Ok(read.map(|input| (input, DocumentSource::File))),
    }
}

/// The role bindings. A role that the document does not declare is refused.
fn bindings(args: &Run, plan: &Plan) -> Result<BTreeMap<String, String>, Refused> {
    for (role, _) in &args.bind {
        if !plan.roles.contains_key(role) {
            let shown = visible::brief(role);
            let message = format!("the document declares no role `{shown}`");
            let remedy = match suggest(role, plan.roles.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "leave this `--bind` out".to_owned(),
            };
            return Err(Refused::new("unknown_role", message, remedy));
        }
    }
    Ok(args.bind.iter().cloned().collect())
}
