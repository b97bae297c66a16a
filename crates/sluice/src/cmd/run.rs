//! `sluice run`: a document becomes a run, here.

use super::runs::restart;
use super::work::Bench;
use super::{registry, tell_people, tell_unreadable};
use crate::Exit;
use crate::beside::{self, Documents};
use crate::cli::Reader;
use crate::cli::run::Run;
use crate::config;
use crate::hands;
use crate::input;
use crate::kit::Tape;
use crate::out::{Layout, Out};
use crate::problem::{Report, Unreadable};
use crate::registry::at_rest;
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
    let reader = args.here.view.reader();
    let rows = at_rest(&args.here.data).await?;
    let Some((documents, source)) = documents(args, &rows, reader, out)? else {
        return Ok(Exit::Refused);
    };
    let plan = &documents.main.definition.plan;
    let bindings = bindings(args, plan)?;
    let Some(bench) = Bench::equipped(&args.here, tape.kit(&args.here.data)?, out).await? else {
        return Ok(Exit::Refused);
    };
    if let Some(source) = &args.of {
        return again(args, source, &documents, bench, out).await;
    }
    let Documents { main, children, bring } = documents;
    let mut start = Start::new(main, args.given.args());
    start.source = source;
    start.children = children;
    start.bring = bring;
    start.initiator.clone_from(&bench.who);
    start.role_bindings = bindings;
    let scripted = || args.here.mock.is_some().then(|| hands::MOCK.to_owned());
    start.default_agent = config::agent().or_else(scripted);
    start.default_model = sluice_server::service::start::model(args.model.clone())?;
    start.recursion_depth_max = args.max_depth;
    start.key = match sluice_server::service::start::key(args.idempotency_key.clone())? {
        Some(key) if key == "auto" => Some(start.auto_key()),
        key => key,
    };
    let started = bench.local.engine.start(start).await;
    let StartedRun { run, existed } = started.map_err(refused::start)?;
    if existed {
        return known(run, bench, out).await;
    }
    out.note(&format!("{run} started"))?;
    bench.follow(run, 0, out).await
}

/// The run was there before, by its key: its end is told, or it is gone on with.
async fn known(
    run: sluice_core::run::id::RunId,
    bench: Bench<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    out.note(&format!("{run} was started before with this key"))?;
    let now = find::load(&bench.local, run).await?;
    if !now.status.is_terminal() || now.recovers_at_ms().is_some() {
        // Whoever has it goes on with it; here it is then only followed.
        let _ = bench.local.engine.take_up(run).await;
    }
    bench.follow(run, 0, out).await
}

/// `--from-step … --of RUN`: the run's own document must be the one that is named.
async fn again(
    args: &Run,
    source: &str,
    documents: &Documents,
    bench: Bench<'_>,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let row = find::run(&bench.local, source).await?;
    let source = find::load(&bench.local, row.run).await?;
    if source.definition.hash != documents.main.definition.hash {
        let message =
            format!("{} is a run of another document, or of an older state of it", row.run);
        let remedy =
            format!("`sluice runs restart {}` uses the document it was started with", row.run);
        return Err(Refused::new(DOCUMENT_CHANGED, message, remedy).into());
    }
    restart::again(&source, &args.from_step, bench, args.here.yes, out).await
}

/// The document and all it refers to; nothing if one is refused, which is told.
fn documents(
    args: &Run,
    rows: &[Row],
    reader: Reader,
    out: &mut Out,
) -> anyhow::Result<Option<(Documents, DocumentSource)>> {
    let Some(named) = registry(&args.registry, reader, out)? else { return Ok(None) };
    let (input, source) = match input(args, rows)? {
        Ok(found) => found,
        Err(unreadable) => {
            tell_unreadable(&unreadable, reader, out)?;
            return Ok(None);
        }
    };
    let registry = versions::registry(named, rows)?;
    let (documents, findings) = beside::gather(input, registry, rows)?;
    let last = findings.len() - 1;
    for (at, found) in findings.iter().enumerate() {
        let refused = documents.is_none() && at == last;
        if refused && reader == Reader::Program {
            out.json(Layout::Line, &Report::new(&found.input.name, &found.diagnostics))?;
        } else {
            tell_people(&found.input, &found.diagnostics, out)?;
        }
    }
    Ok(documents.map(|documents| (documents, source)))
}

/// The file that is named; if there is none, the registered workflow of that name.
fn input(args: &Run, rows: &[Row]) -> Result<Result<(Input, DocumentSource), Unreadable>, Refused> {
    let missing = |file: &Unreadable| file.cause.kind() == std::io::ErrorKind::NotFound;
    // No workflow has a name like a path.
    let name = |file: &Unreadable| !file.name.contains(['/', '.', '\\']);
    let registered = rows.iter().any(|row| row.kind == Kind::Workflow);
    match input::read(&args.file) {
        Err(file) if registered && missing(&file) && name(&file) => {
            // A registry file may say what its library steps and lenses are.
            let whole = args.registry.file.is_none();
            let source = if whole { DocumentSource::Registered } else { DocumentSource::File };
            Ok(Ok((versions::input(rows, &file.name)?, source)))
        }
        read => Ok(read.map(|input| (input, DocumentSource::File))),
    }
}

/// Who stands for which role. A role that no step can have is a slip.
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
