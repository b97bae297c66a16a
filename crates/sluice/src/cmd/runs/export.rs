//! `sluice runs export`: everything about a run in one object.

use crate::Exit;
use crate::cli::Reader;
use crate::cli::runs::Export;
use crate::local::Local;
use crate::out::{Layout, Out};
use serde::Serialize;
use serde_json::value::RawValue;
use sluice_core::journal::envelope::Seen;
use sluice_core::plan::Plan;
use sluice_core::run::projection::{Projection, project};
use sluice_server::refused;
use sluice_server::service::find;

/// Everything about a run.
#[derive(Serialize)]
struct Exported<'a> {
    definition: Definition<'a>,
    /// Envelopes, in order.
    events: Vec<Box<RawValue>>,
    /// Ranges of events that are not there any more: parts of answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elided: Vec<(u64, u64)>,
    /// What governance decided, in order.
    decisions: Vec<Box<RawValue>>,
    projection: Projection<'a>,
}

#[derive(Serialize)]
struct Definition<'a> {
    hash: &'a str,
    /// As it was written.
    document: &'a str,
    plan: &'a Plan,
}

pub(super) async fn run(args: &Export, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let row = find::run(&local, &args.run.id).await?;
    let run = find::load(&local, row.run).await?;
    let (mut events, mut elided, mut decisions) = (Vec::new(), Vec::new(), Vec::new());
    let mut after = 0;
    while after < run.version {
        let page = local.engine.events(&run, after).await.map_err(refused::load)?;
        let Some(last) = page.last() else { break };
        after = last.id();
        // The run may have gone on since it was read.
        for seen in page.into_iter().filter(|seen| seen.id() <= run.version) {
            let event = match seen {
                Seen::Event(event) => event,
                Seen::Elided { first, last } => {
                    elided.push((first, last));
                    continue;
                }
            };
            let envelope = RawValue::from_string(event.json)?;
            if event.kind == "governance.decided" {
                decisions.push(envelope.clone());
            }
            events.push(envelope);
        }
    }
    let definition = Definition {
        hash: &run.definition.hash,
        document: &run.definition.document,
        plan: &run.definition.plan,
    };
    let projection = project(&run).with_taken(local.store.taken(run.id).await?);
    let exported = Exported { definition, events, elided, decisions, projection };
    let layout = match args.json.reader() {
        Reader::Person => Layout::Pretty,
        Reader::Program => Layout::Line,
    };
    out.json(layout, &exported)?;
    local.close().await;
    Ok(Exit::Done)
}
