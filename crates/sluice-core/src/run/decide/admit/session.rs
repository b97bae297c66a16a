//! Sessions of providers that dispatches continue.
//!
//! An agent with `session: continue` continues its last session in this run at the same
//! gateway. A session contains everything that was said in it, so the dispatch also has
//! the labels of the step that left the session.

use crate::journal::event::StepAt;
use crate::origin::Labels;
use crate::run::decide::draft::Draft;
use sluice_govern::registry::SessionMode;
use sluice_govern::route::Route;

/// A session that a dispatch continues.
pub(super) struct Continued {
    pub(super) session: String,
    /// Labels of the step that left it.
    pub(super) labels: Labels,
}

/// The session that the next dispatch of a step continues; none if it begins one.
pub(super) fn continued(draft: &Draft<'_>, at: StepAt, route: &Route) -> Option<Continued> {
    let run = &*draft.run;
    let agent = run.agent_of(at.step)?;
    let row = draft.given.authority.agent(agent)?;
    if row.session != SessionMode::Continue {
        return None;
    }
    let gateway = route.gateway.as_deref()?;
    let state = run.state(at);
    let here = state.gateway() == Some(gateway);
    // A dispatch that is repeated after a crash is the same one to the provider. A reask
    // continues the session of the refused answer.
    let repeated = state.status().is_dispatched();
    let sent = || state.dispatch.as_ref()?.session.as_ref();
    let own = if repeated { sent() } else { state.session.as_ref() };
    if let Some(session) = own.filter(|_| here) {
        return Some(Continued { session: session.clone(), labels: Labels::default() });
    }
    if repeated {
        return None;
    }
    run.writers.iter().rev().find_map(|step| {
        let state = &run.steps[*step as usize];
        let same = state.agent() == Some(agent) && state.gateway() == Some(gateway);
        let session = state.session.as_ref().filter(|_| same)?.clone();
        let labels = state.outcome().map(|outcome| outcome.labels.clone()).unwrap_or_default();
        Some(Continued { session, labels })
    })
}
