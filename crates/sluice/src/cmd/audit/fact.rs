//! What the audit shows, for people.

use crate::amount;
use sluice_server::service::audit::fact::Fact;

/// For people: the cells of a table.
pub(super) fn cells(fact: &Fact) -> [String; 6] {
    let (kind, id) = &fact.resource;
    let resource = if kind == "run" { id.clone() } else { format!("{kind} {id}") };
    let event = fact.event.map(|(event, _)| format!(" event {event}")).unwrap_or_default();
    [
        amount::moment(fact.at_ms),
        fact.category.clone(),
        fact.what.clone(),
        fact.step.clone().unwrap_or_default(),
        format!("{resource}{event}"),
        fact.actor.clone().unwrap_or_default(),
    ]
}
