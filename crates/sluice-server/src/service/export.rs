//! Everything about a run in one object.

use super::{Service, runs};
use crate::refused::{Done, RUN_UNREADABLE, Refused};
use serde::Serialize;
use serde_json::value::RawValue;
use sluice_core::journal::envelope::Seen;
use sluice_core::plan::Plan;
use sluice_core::run::state::Run;

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
    projection: Box<RawValue>,
}

#[derive(Serialize)]
struct Definition<'a> {
    hash: &'a str,
    /// As it was written.
    document: &'a str,
    plan: &'a Plan,
}

/// The definition, every event, the decisions and the projection of a run, as it
/// was loaded.
pub async fn export(service: &Service, run: &Run) -> Done<Box<RawValue>> {
    let (mut events, mut elided, mut decisions) = (Vec::new(), Vec::new(), Vec::new());
    let mut broken = None;
    runs::each(service, run, 0, |seen| match seen {
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
        return Err(Refused::new(RUN_UNREADABLE, message, "the journal says more").into());
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
