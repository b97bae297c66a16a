//! Exports everything about a run as one object.

use super::{Service, runs};
use crate::refused::{RUN_UNREADABLE, Refused, ServiceResult};
use serde::Serialize;
use serde_json::value::RawValue;
use sluice_core::journal::envelope::Seen;
use sluice_core::plan::Plan;
use sluice_core::run::state::Run;

#[derive(Serialize)]
struct Exported<'a> {
    definition: Definition<'a>,
    /// In journal order.
    events: Vec<Box<RawValue>>,
    /// Ranges of events that were removed: streamed parts of answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elided: Vec<(u64, u64)>,
    /// Decisions of the gates, in journal order.
    decisions: Vec<Box<RawValue>>,
    projection: Box<RawValue>,
}

#[derive(Serialize)]
struct Definition<'a> {
    hash: &'a str,
    /// The source text.
    document: &'a str,
    plan: &'a Plan,
}

/// The definition, every event, the decisions and the projection of a run, up to the
/// version that was loaded.
pub async fn export(service: &Service, run: &Run) -> ServiceResult<Box<RawValue>> {
    let (mut events, mut elided, mut decisions) = (Vec::new(), Vec::new(), Vec::new());
    let mut broken = None;
    runs::for_each_event(service, run, 0, |seen| match seen {
        Seen::Elided { first, last } => elided.push((first, last)),
        Seen::Event(event) => match RawValue::from_string(event.json) {
            Ok(envelope) => {
                if event.kind == "governance.decided" {
                    decisions.push(envelope.clone());
                }
                events.push(envelope);
            }
            Err(error) => broken = Some(error),
        },
    })
    .await?;
    if let Some(error) = broken {
        let message = format!("an event of {} cannot be read: {error}", run.id);
        return Err(Refused::new(
            RUN_UNREADABLE,
            message,
            "`sluice audit verify` checks the journal",
        )
        .into());
    }
    let definition = Definition {
        hash: &run.definition.hash,
        document: &run.definition.document,
        plan: &run.definition.plan,
    };
    let projection = runs::state(service, run).await?;
    let exported = Exported { definition, events, elided, decisions, projection };
    Ok(serde_json::value::to_raw_value(&exported).expect("an export is plain JSON"))
}
