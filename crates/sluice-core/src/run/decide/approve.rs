//! Questions to people, and their answers.

use super::Turn;
use super::fail::Trouble;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{
    ApprovalRequested, ApprovalResolved, ApprovalSource, Completed, Event, NodeEvent, Outcome,
    Prepared, Resolution, Skip, SkipCause, StepAt,
};
use crate::limits::APPROVAL_MS_DEFAULT;
use crate::plan::step::Work;
use crate::port::adapter::Usage;
use crate::run::command::{Decision, Refusal, Resolve};
use crate::run::evolve::REASON_APPROVAL;
use crate::run::id::ApprovalId;
use crate::run::label::SourceClass;
use crate::run::scope::RunScope;
use crate::run::state::{Approval, Pause};
use crate::run::status::RunStatus;
use serde_json::{Map, Value};
use std::sync::Arc;

impl Turn<'_> {
    /// Asks a person before a step is done.
    pub(super) fn ask(&mut self, at: StepAt) {
        // What is granted is what is sent: with what was wrong, if it is asked again.
        let state = self.run.state(at);
        let reask = state.reask;
        let kept = state.prepared.clone().filter(|_| !reask);
        let known = kept.is_some();
        let (prepared, provenance) = match kept {
            Some(prepared) => (prepared, Vec::new()),
            None => match self.prepare(at) {
                Ok((prepared, provenance)) => (Arc::new(prepared), provenance),
                Err(unfit) => return self.unfit(at, unfit),
            },
        };
        let summary = match self.summary(at, &prepared) {
            Ok(summary) => summary,
            Err(failure) => return self.fail(at, failure),
        };
        let news = if reask { Vec::new() } else { provenance };
        for one in news {
            self.node(at, NodeEvent::Provenance(Box::new(one)));
        }
        let approval = self.run.step(at).approval.as_deref();
        let open_ms = approval.and_then(|asked| asked.expires_in_ms);
        let asked = ApprovalRequested {
            approval: ApprovalId::new(self.given.now_ms, &mut *self.given.entropy),
            source: ApprovalSource::Step,
            summary,
            approvers: approval.map(|asked| asked.approvers.clone()).unwrap_or_default(),
            expires_at_ms: self.given.now_ms.saturating_add(open_ms.unwrap_or(APPROVAL_MS_DEFAULT)),
            error: None,
            prepared: (!known).then_some(prepared),
            usage: Usage::default(),
        };
        self.node(at, NodeEvent::ApprovalRequested(Box::new(asked)));
    }

    fn summary(&self, at: StepAt, prepared: &Prepared) -> Result<String, Failure> {
        let step = self.run.step(at);
        if let Some(summary) = step.approval.as_ref().and_then(|asked| asked.summary.as_ref()) {
            let scope = RunScope::of_step(self.run, &self.args, at).with_locals(&prepared.inputs);
            return Ok(summary.render(&scope)?);
        }
        let name = self.run.name(at);
        Ok(match step.work {
            Work::Approval => format!("Approve `{name}`?"),
            _ => format!("Let `{name}` do this?\n{}", prepared.prompt),
        })
    }

    pub(super) fn resolve(&mut self, resolve: Resolve) -> Result<(), Refusal> {
        let Some(approval) = self.run.approvals.get(&resolve.approval) else {
            return Err(Refusal::NoApproval(resolve.approval));
        };
        if let Some(resolution) = approval.resolution {
            return Err(Refusal::Resolved(resolution.as_str()));
        }
        if self.run.status.is_terminal() {
            return Err(Refusal::Ended(self.run.status));
        }
        // Nobody looked after the run when the time was over: that follows now.
        if approval.expires_at_ms <= self.given.now_ms {
            return Err(Refusal::Resolved(Resolution::Expired.as_str()));
        }
        let (at, source) = (approval.at, approval.source);
        let resolution = resolution(source, resolve.decision)?;
        let commented = resolve.comment.as_ref().is_some_and(|text| !text.trim().is_empty());
        if resolution == Resolution::Rejected && !commented {
            return Err(Refusal::CommentMissing);
        }
        let result = match (resolution, &self.run.step(at).work) {
            (Resolution::Approved, Work::Approval) => Some(self.granted(at, &resolve)?),
            _ => None,
        };
        let rejected = format!("rejected by {}", resolve.by);
        let comment = resolve.comment.clone();
        let resolved = ApprovalResolved {
            approval: resolve.approval,
            resolution,
            by: Some(resolve.by),
            comment: resolve.comment,
        };
        self.node(at, NodeEvent::ApprovalResolved(Box::new(resolved)));
        self.go_on_after_people();
        match resolution {
            Resolution::Approved | Resolution::Retry => {
                if let Some(completed) = result {
                    self.node(at, NodeEvent::Completed(Box::new(completed)));
                }
            }
            Resolution::Rejected => {
                let why = comment.map_or(rejected.clone(), |text| format!("{rejected}: {text}"));
                self.fail(at, Failure::new(Code::ApprovalRejected, why));
            }
            Resolution::Skip => {
                let error = self.run.state(at).ending.as_ref();
                let error = error.map(|ending| (ending.code.clone(), ending.message.clone()));
                let reason = "a person chose to go on without it";
                let skip = Skip { error, ..Skip::new(SkipCause::Decision, reason) };
                self.node(at, NodeEvent::Skipped(skip));
            }
            Resolution::Abort => self.abort(at),
            Resolution::Expired | Resolution::Cancelled => {}
        }
        Ok(())
    }

    /// The run was waiting for people only, and goes on.
    pub(super) fn go_on_after_people(&mut self) {
        if self.run.pause == Some(Pause::Approval) {
            self.emit(Event::RunStatusChanged {
                status: RunStatus::Running,
                reason: REASON_APPROVAL.to_owned(),
                by: None,
            });
        }
    }

    /// What an approval step comes to when a person agrees.
    fn granted(&self, at: StepAt, resolve: &Resolve) -> Result<Completed, Refusal> {
        let unfit = |failure: Failure| {
            let told = crate::violation::Violation::new(
                "values",
                crate::violation::Reason::SchemaViolation,
                failure.message.clone(),
            );
            let found = failure.violations;
            Refusal::BadValues(if found.is_empty() { vec![told] } else { found })
        };
        let values = resolve.values.clone();
        let (mut outcome, coercions) =
            self.step_outcome(at, values, None, SourceClass::Human).map_err(unfit)?;
        if let Value::Object(outputs) = &mut outcome.outputs {
            outputs.extend(grant(&resolve.by, resolve.comment.as_ref(), self.given.now_ms));
        }
        let asked_at = self.run.approvals.get(&resolve.approval).map(|one| one.requested_at_ms);
        let asked_at = asked_at.unwrap_or(self.given.now_ms);
        Ok(Completed {
            outcome: Arc::new(outcome),
            attempts: self.run.state(at).attempt,
            duration_ms: self.given.now_ms.saturating_sub(asked_at),
            usage: Usage::default(),
            coercions,
            session: None,
            carried: None,
        })
    }

    /// Who agreed to work that was then done, beside what came of it: later
    /// steps read it as of any approval step.
    pub(super) fn add_grant(&self, at: StepAt, outcome: &mut Outcome) {
        let of_step = |one: &&Approval| {
            one.at == at
                && one.source == ApprovalSource::Step
                && one.resolution == Some(Resolution::Approved)
        };
        let granted = self.run.approvals.values().filter(of_step);
        let granted = granted.max_by_key(|one| one.resolved_at_ms);
        let (Some(granted), Value::Object(outputs)) = (granted, &mut outcome.outputs) else {
            return;
        };
        let by = granted.by.as_deref().unwrap_or_default();
        let at_ms = granted.resolved_at_ms.unwrap_or_default();
        for (name, value) in grant(by, granted.comment.as_ref(), at_ms) {
            outputs.entry(name).or_insert(value);
        }
    }

    /// An escalation was answered with "give up", or by nobody.
    pub(super) fn abort(&mut self, at: StepAt) {
        let ending = self.run.state(at).ending.clone();
        let trouble = Trouble {
            code: ending.as_ref().map_or_else(String::new, |ending| ending.code.clone()),
            message: ending.as_ref().map_or_else(String::new, |ending| ending.message.clone()),
            violations: Vec::new(),
            cause: None,
            retry_after_ms: None,
            usage: Usage::default(),
        };
        self.give_up(at, trouble);
    }
}

/// Who agreed, and when.
fn grant(by: &str, comment: Option<&String>, at_ms: u64) -> Map<String, Value> {
    let mut grant = Map::new();
    grant.insert("approved".to_owned(), true.into());
    grant.insert("by".to_owned(), by.into());
    grant.insert("at".to_owned(), crate::journal::envelope::timestamp(at_ms).into());
    let comment = comment.cloned().map_or(Value::Null, Value::from);
    grant.insert("comment".to_owned(), comment);
    grant
}

fn resolution(source: ApprovalSource, decision: Decision) -> Result<Resolution, Refusal> {
    match (source, decision) {
        (ApprovalSource::Step | ApprovalSource::Policy, Decision::Approve) => {
            Ok(Resolution::Approved)
        }
        (ApprovalSource::Step | ApprovalSource::Policy, Decision::Reject) => {
            Ok(Resolution::Rejected)
        }
        (ApprovalSource::Step | ApprovalSource::Policy, _) => {
            Err(Refusal::WrongDecision("approve or reject"))
        }
        (ApprovalSource::Escalation, Decision::Retry) => Ok(Resolution::Retry),
        (ApprovalSource::Escalation, Decision::Skip) => Ok(Resolution::Skip),
        (ApprovalSource::Escalation, Decision::Abort) => Ok(Resolution::Abort),
        (ApprovalSource::Escalation, _) => Err(Refusal::WrongDecision("retry, skip or abort")),
    }
}
