//! Invariants of approvals, and of dispatches that rest on them.

use crate::tally::Tally;
use sluice_core::id::ApprovalId;
use sluice_core::journal::event::{
    ApprovalResolved, ApprovalSource, Dispatch, Event, Path, Resolution, StepAt, StepEvent,
};
use sluice_core::run::state::Run;
use sluice_govern::decision::Known;
use std::collections::BTreeMap;

/// Approvals and votes of one run.
#[derive(Default)]
pub(super) struct Grants {
    given: BTreeMap<StepAt, Vec<ApprovedAction>>,
    votes: BTreeMap<ApprovalId, Vec<(String, Vec<String>)>>,
}

/// An approved action.
struct ApprovedAction {
    digest: String,
    covers_retries: bool,
    /// The attempt it was used for.
    used: Option<u32>,
}

impl Grants {
    /// Checks an event before it is folded. `before` is the previous event.
    pub(super) fn event(
        &mut self,
        run: &Run,
        event: &Event,
        before: Option<&Event>,
        asks: bool,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Event::Step(at, node) = event else { return Ok(()) };
        match node {
            StepEvent::ApprovalResolved(resolved) => self.resolved(run, *at, resolved, tally),
            StepEvent::Invalidated => {
                self.given.retain(|one, _| one.step != at.step);
                Ok(())
            }
            StepEvent::Started(dispatch) if dispatch.path == Path::Edge => {
                self.started(run, *at, dispatch, before, asks, tally)
            }
            _ => Ok(()),
        }
    }

    fn resolved(
        &mut self,
        run: &Run,
        at: StepAt,
        resolved: &ApprovalResolved,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Some(asked) = run.approvals.get(&resolved.approval) else {
            return Err("a vote is on an open approval".into());
        };
        let agrees = matches!(resolved.resolution, Resolution::Pending | Resolution::Approved);
        let votes = self.votes.entry(resolved.approval).or_default();
        if let Some(by) = resolved.by.as_ref().filter(|_| agrees) {
            if votes.iter().any(|(voter, _)| voter == by) {
                return Err(format!("an approver votes once: {by}"));
            }
            if asked.not_initiator && *by == run.started.initiator {
                return Err(format!("an initiator does not approve: {by}"));
            }
            votes.push((by.clone(), resolved.roles.clone()));
        }
        if resolved.resolution != Resolution::Approved {
            return Ok(());
        }
        let speaks = |group: &Vec<String>| {
            let in_group = |(by, roles): &(String, Vec<String>)| {
                group.is_empty() || group.iter().any(|one| one == by || roles.contains(one))
            };
            votes.iter().any(in_group)
        };
        if votes.len() < asked.quorum as usize || !asked.groups.iter().all(speaks) {
            return Err(format!("an approval needs {} of {:?}", asked.quorum, asked.groups));
        }
        if votes.len() > 1 {
            tally.reach("quorum");
        }
        if asked.source == ApprovalSource::Policy {
            tally.reach("policy approved");
        }
        let digest = match &resolved.tightened {
            Some(tightened) => Some(tightened.digest.clone()),
            None => asked.action.as_ref().map(|asked| asked.digest.clone()),
        };
        let covers = run.step(at).approval.as_ref().is_some_and(|asked| asked.covers_retries);
        let digest = digest.ok_or("a grant is for an action")?;
        let given = ApprovedAction { digest, covers_retries: covers, used: None };
        self.given.entry(at).or_default().push(given);
        Ok(())
    }

    fn started(
        &mut self,
        run: &Run,
        at: StepAt,
        dispatch: &Dispatch,
        before: Option<&Event>,
        asks: bool,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let step_asks = run.step(at).approval.is_some();
        let policy_asks = asks && dispatch.agent.as_deref() == Some("async");
        let grant = before.and_then(granted);
        if !step_asks && !policy_asks {
            return Ok(());
        }
        let Some(grant) = grant else {
            return Err("a step that needs approval has one: there is none".into());
        };
        if dispatch.digest.as_deref() != Some(grant.as_str()) {
            return Err("an approval is for one action: another is dispatched".into());
        }
        let given = self.given.entry(at).or_default();
        let mut same = given.iter_mut().rev().filter(|one| one.digest == grant);
        let Some(found) = same.next() else {
            return Err("an approval is for one action: this one is not approved".into());
        };
        let again = found.used == Some(dispatch.attempt);
        if found.used.is_some() && !again && !found.covers_retries {
            return Err(format!("an approval is for one attempt: {} follows", dispatch.attempt));
        }
        tally.reach(if policy_asks { "grant by policy" } else { "grant by step" });
        found.used = Some(dispatch.attempt);
        Ok(())
    }
}

/// The approval that a decision rests on.
fn granted(before: &Event) -> Option<String> {
    let Event::Step(_, StepEvent::GovernanceDecided(record)) = before else { return None };
    let known =
        Known { at_ms: 0, run: "", workflow: "", step: "", registered: false, definition: "" };
    let record = record.whole(&known);
    let gates = record["gates"].as_array()?;
    let gate = gates.iter().find(|gate| gate["gate"] == "approval_required")?;
    gate["figures"]["grant"].as_str().map(str::to_owned)
}
