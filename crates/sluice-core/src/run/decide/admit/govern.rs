//! The decision of the gates about a dispatch, and its record.
//!
//! INVARIANT: every dispatch, the first and every later one, is admitted here, after a
//! recorded allow with the digest of what is sent. An allow is never used again.

use super::Admission;
use super::facts::{DecisionFacts, caps, facts, gather_facts, role, route_of, starts_child};
use super::gate::blocked;
use super::session::continued;
use super::summary::summary;
use crate::journal::event::{Account, Record, StepEvent};
use crate::money::Money;
use crate::origin::Labels;
use crate::run::decide::draft::history::{PastFacts, UsedFacts, now_of_step};
use crate::run::decide::draft::{Draft, PreparedStep};
use crate::status::StepStatus;
use sluice_govern::decision::{Decision, Disposition};
use sluice_govern::evaluate;
use sluice_govern::facts::{CallFacts, Cap, Facts, Verb, Worst};
use sluice_govern::policy::history::History;
use sluice_govern::registry::{Posture, Price, Role};
use sluice_govern::route::Route;
use std::sync::Arc;

/// A decision of the gates, with what the dispatch takes if it is sent.
pub(crate) struct Judged {
    pub(crate) decision: Decision,
    pub(crate) gateway: String,
    pub(crate) caps: Vec<Bound>,
    pub(crate) worst: Worst,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) model: Option<String>,
    pub(crate) price: Option<Price>,
    /// The session of the provider that the dispatch continues.
    pub(crate) session: Option<String>,
    /// Facts about history that the decision relies on.
    pub(crate) used: UsedFacts,
}

/// A cap that the dispatch must comply with.
pub(crate) struct Bound {
    pub(crate) account: Account,
    /// Overruns of the cap that were accepted.
    pub(crate) accepted: Money,
}

/// The gateway of a dispatch, and the bounds of its role.
struct Routed {
    role: Option<Role>,
    route: Option<Route>,
    session: Option<String>,
}

/// Lets the gates decide about a step, and records the decision.
pub(super) fn govern(draft: &mut Draft<'_>, ready: PreparedStep) -> Admission {
    let at = ready.at;
    let role = role(draft, at);
    let route = route_of(draft, at, role.as_ref());
    let continued = route.as_ref().and_then(|route| continued(draft, at, route));
    let ready = match &continued {
        Some(continued) => with_labels(ready, &continued.labels),
        None => ready,
    };
    let session = continued.map(|continued| continued.session);
    let call = call_facts(draft, &ready);
    let (judged, record) = judge(draft, &ready, Routed { role, route, session }, call);
    draft.record(at, StepEvent::GovernanceDecided(record));
    match judged.decision.disposition {
        would if draft.run.started.posture == Posture::Advisory => Admission::DryRun(match would {
            Disposition::Allow => "dry run: this step would be sent",
            Disposition::Block => "dry run: this step would be blocked",
            Disposition::Hold => "dry run: this step would need an approval",
        }),
        Disposition::Block => blocked(draft, at, &judged.gateway, &judged.decision),
        Disposition::Hold => hold(draft, ready, judged.decision),
        Disposition::Allow => Admission::Admitted(ready, judged),
    }
}

/// Adds the labels of values that the step reads besides its inputs.
fn with_labels(mut ready: PreparedStep, labels: &Labels) -> PreparedStep {
    let all = ready.prepared.labels.clone().with(labels);
    if all != ready.prepared.labels {
        Arc::make_mut(&mut ready.prepared).labels = all;
        ready.recorded = false;
    }
    ready
}

/// Where the values that a step is given were seen, if a policy wants to know.
fn call_facts(draft: &mut Draft<'_>, ready: &PreparedStep) -> Option<CallFacts> {
    let child = starts_child(draft.run, ready.at);
    let verb = if child { Verb::StartRun } else { Verb::DispatchStep };
    let wanted = draft.given.authority.policies().reads_values(verb);
    wanted.then(|| draft.run.labelled_inputs(ready.at, &ready.prepared))
}

fn judge(
    draft: &Draft<'_>,
    ready: &PreparedStep,
    routed: Routed,
    call: Option<CallFacts>,
) -> (Judged, Record) {
    let Routed { role, route, session } = routed;
    let gathered = DecisionFacts { session, ..gather_facts(draft, ready, role, route.as_ref()) };
    let caps = caps(draft, ready.at, &gathered);
    let authority = draft.given.authority;
    let agent = draft.run.agent_of(ready.at.step).unwrap_or_default();
    let past = authority.policies().has_history().then(|| {
        let now = now_of_step(draft, ready.at, agent, &gathered.gateway);
        PastFacts::new(draft, now)
    });
    let history = past.as_ref().map(|past| -> &dyn History { past });
    let facts = Facts { call, history, ..facts(draft, ready, &gathered, caps) };
    let evaluated = evaluate(&facts, authority.policies());
    let record = Record::new(evaluated.write(route.as_ref(), authority.fabric().epoch));
    let decision = evaluated.decision;
    let caps = bounds(facts.caps);
    let used = past.map(PastFacts::into_used).unwrap_or_default();
    (Judged { used, ..judged(decision, caps, gathered) }, record)
}

fn hold(draft: &mut Draft<'_>, ready: PreparedStep, decision: Decision) -> Admission {
    // The wait between attempts ends before an approval is requested.
    if draft.run.state(ready.at).status() == StepStatus::Retrying {
        draft.record(ready.at, StepEvent::Queued { items: None });
    }
    match summary(draft.run, ready.at, &ready.prepared) {
        Ok(summary) => Admission::Held(ready, summary, decision),
        Err(failure) => Admission::Refused(failure.into()),
    }
}

fn bounds(caps: Vec<Cap<'_>>) -> Vec<Bound> {
    let bound = |cap: Cap<'_>| Bound {
        account: Account { name: cap.account, cap: cap.amount },
        accepted: cap.accepted,
    };
    caps.into_iter().map(bound).collect()
}

fn judged(decision: Decision, caps: Vec<Bound>, gathered: DecisionFacts) -> Judged {
    Judged {
        decision,
        caps,
        worst: gathered.estimate.worst,
        max_output_tokens: gathered.estimate.max_output_tokens,
        gateway: gathered.gateway,
        price: gathered.price,
        model: gathered.model,
        session: gathered.session,
        used: UsedFacts::new(),
    }
}
