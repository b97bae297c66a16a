//! Sessions of providers that dispatches continue.
//!
//! An agent whose row says `session: continue` goes on with the last session that it
//! had in this run at the same gateway. A session holds everything that was said in
//! it, so a dispatch that continues one has the labels of the step it was left by.

use super::Turn;
use crate::journal::event::StepAt;
use crate::run::label::Labels;
use sluice_govern::registry::SessionMode;
use sluice_govern::route::Route;

/// A session that a dispatch continues.
pub(super) struct Continued {
    pub(super) session: String,
    /// What is known of what was said in it.
    pub(super) labels: Labels,
}

impl Turn<'_> {
    /// The session that the next dispatch of a step continues; none if it begins one.
    pub(super) fn continued(&self, at: StepAt, route: &Route) -> Option<Continued> {
        let run = &*self.run;
        let agent = run.agent_of(at.step)?;
        let row = self.given.authority.agent(agent)?;
        if row.session != SessionMode::Continue {
            return None;
        }
        let gateway = route.gateway.as_deref()?;
        let state = run.state(at);
        let here = state.gateway() == Some(gateway);
        // Sent again after a crash, it is the same dispatch to the provider. Asked again
        // with what was wrong, it continues the session of the refused answer.
        let sent = || state.dispatch.as_ref()?.session.as_ref();
        let own = if self.flies(at) { sent() } else { state.session.as_ref() };
        if let Some(session) = own.filter(|_| here) {
            return Some(Continued { session: session.clone(), labels: Labels::default() });
        }
        if self.flies(at) {
            return None;
        }
        run.writers.iter().rev().find_map(|step| {
            let state = &run.steps[*step as usize];
            let same = state.agent() == Some(agent) && state.gateway() == Some(gateway);
            let session = state.session.as_ref().filter(|_| same)?.clone();
            let labels = state.outcome().map(|outcome| outcome.labels).unwrap_or_default();
            Some(Continued { session, labels })
        })
    }
}
