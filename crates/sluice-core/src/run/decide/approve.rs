//! Questions to people, and their answers.

use super::Turn;
use super::fail::Trouble;
use super::govern::{Ready, question};
use super::outcome::{KIND_APPROVAL, KIND_HUMAN_INPUT, in_envelope};
use crate::canonical;
use crate::code::Code;
use crate::failure::Failure;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalRequested, ApprovalResolved, ApprovalSource, ApprovalSubject, ChangedValue, Completed,
    Event, Prepared, Resolution, Skip, SkipCause, StepAt, StepEvent, Tightened,
};
use crate::plan::policy::Family;
use crate::plan::step::Work;
use crate::port::adapter::Usage;
use crate::run::command::{Decision, Refusal, Resolve};
use crate::run::label::SourceClass;
use crate::run::scope::RunScope;
use crate::run::state::{Approval, Pause};
use crate::status::REASON_APPROVAL;
use crate::status::{RunStatus, StepStatus};
use serde_json::{Map, Value};
use sluice_govern::action::diff;
use sluice_govern::decision::{Decision as Judgement, HoldBy};
use sluice_govern::registry::Posture;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Turn<'_> {
    /// Asks a person something that is not followed by any work.
    pub(super) fn ask(&mut self, ready: &Ready) {
        let at = ready.at;
        if self.run.started.posture == Posture::Advisory {
            let reason = "the run only looks: a person would be asked this";
            return self.node(at, StepEvent::Skipped(Skip::new(SkipCause::Advisory, reason)));
        }
        let summary = match self.summary(at, &ready.prepared) {
            Ok(summary) => summary,
            Err(failure) => return self.fail(at, failure),
        };
        let action = question(self.run, at, &ready.prepared, &summary);
        let asked = self.asked(at, action, None, Vec::new());
        let groups = self.run.approval_of(at.step).map(|asked| asked.approvers.clone());
        let groups = groups.into_iter().filter(|group| !group.is_empty()).collect();
        let terms = Agreement { groups, ..Agreement::default() };
        self.request(ready, ApprovalSource::Step, summary, terms, asked);
    }

    /// The gates want a person to agree.
    pub(super) fn hold(&mut self, ready: &Ready, decision: &Judgement) {
        let at = ready.at;
        // Out of the wait between attempts first: a question is no part of that.
        if self.run.state(at).status() == StepStatus::Retrying {
            self.node(at, StepEvent::Queued { items: None });
        }
        let mut summary = match self.summary(at, &ready.prepared) {
            Ok(summary) => summary,
            Err(failure) => return self.fail(at, failure),
        };
        let step_asks = self.run.approval_of(at.step).is_some();
        let reasons: Vec<String> = decision.holds.iter().map(|hold| hold.reason.clone()).collect();
        if !step_asks {
            summary = format!("{summary}\n{}", reasons.join("\n"));
        }
        let terms = Agreement::of(&decision.holds);
        let digest = decision.action_digest.clone();
        let action = decision.action.clone().expect("a hold has the action it is about");
        let asked = self.asked(at, action, Some(digest), reasons);
        let source = if step_asks { ApprovalSource::Step } else { ApprovalSource::Policy };
        self.request(ready, source, summary, terms, asked);
    }

    /// What is agreed to, and what differs from what was agreed to before.
    pub(super) fn asked(
        &self,
        at: StepAt,
        action: Value,
        digest: Option<String>,
        reasons: Vec<String>,
    ) -> ApprovalSubject {
        let digest = digest.unwrap_or_else(|| canonical::sha256_hex(&action, 512));
        let agreed = |one: &&Approval| one.at == at && one.resolution == Some(Resolution::Approved);
        let before = self.run.approvals.values().filter(agreed);
        let before = before.max_by_key(|one| one.resolved_at_ms);
        let before = before.and_then(|one| one.action.as_ref()).map(|asked| &asked.action);
        let before = before.or_else(|| self.run.started.agreed.get(&self.run.name(at)));
        let changes = before.map(|before| diff(before, &action)).unwrap_or_default();
        let changes = changes.into_iter().map(|one| ChangedValue {
            path: one.path,
            before: one.before.unwrap_or_default(),
            after: one.after.unwrap_or_default(),
        });
        let changes = changes.collect();
        ApprovalSubject { action, digest, reasons, changes }
    }

    pub(super) fn request(
        &mut self,
        ready: &Ready,
        source: ApprovalSource,
        summary: String,
        terms: Agreement,
        asked: ApprovalSubject,
    ) -> ApprovalId {
        let Agreement { groups, quorum, not_initiator } = terms;
        let at = ready.at;
        let now_ms = self.given.now_ms;
        let patience = self.given.authority.patience();
        let approval = self.run.approval_of(at.step).filter(|_| source != ApprovalSource::Tool);
        let open_ms = approval.and_then(|asked| asked.expires_in_ms).unwrap_or(patience.expires_ms);
        let mut approvers: Vec<String> = Vec::new();
        for one in groups.iter().flatten() {
            if !approvers.contains(one) {
                approvers.push(one.clone());
            }
        }
        let id = ApprovalId::new(now_ms, &mut *self.given.entropy);
        let requested = ApprovalRequested {
            approval: id,
            source,
            summary,
            approvers,
            expires_at_ms: now_ms.saturating_add(open_ms),
            error: None,
            prepared: (!ready.known).then(|| Arc::clone(&ready.prepared)),
            usage: match source {
                ApprovalSource::Tool => Usage::default(),
                _ => self.given_up(at),
            },
            answer: None,
            groups,
            quorum: quorum.max(approval.map_or(1, |asked| asked.quorum)),
            not_initiator: not_initiator || approval.is_some_and(|asked| asked.not_initiator),
            reminders: self.reminders(),
            action: Some(Arc::new(asked)),
        };
        self.node(at, StepEvent::ApprovalRequested(Box::new(requested)));
        id
    }

    /// When people are reminded of a question that is asked now.
    pub(super) fn reminders(&self) -> Vec<(u64, String)> {
        let now_ms = self.given.now_ms;
        let patience = self.given.authority.patience();
        let remind =
            |(after_ms, level): &(u64, String)| (now_ms.saturating_add(*after_ms), level.clone());
        patience.reminders.iter().map(remind).collect()
    }

    fn summary(&self, at: StepAt, prepared: &Prepared) -> Result<String, Failure> {
        let step = self.run.step(at);
        if let Some(summary) = step.approval.as_ref().and_then(|asked| asked.summary.as_ref()) {
            let scope = RunScope::of_step(self.run, &self.args, at);
            let scope = match self.run.definition.plan.family {
                Family::Lobsterx => scope.with_locals(&prepared.inputs),
                Family::Lens => scope.with_locals(&self.label_names(at)?),
            };
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
        self.may_answer(approval, &resolve)?;
        let tightened = tightened(approval, &resolve)?;
        let resolution = match resolution {
            Resolution::Approved if !self.is_enough(approval, &resolve) => Resolution::Pending,
            resolution => resolution,
        };
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
            roles: resolve.roles,
            tightened,
        };
        self.node(at, StepEvent::ApprovalResolved(Box::new(resolved)));
        if resolution == Resolution::Pending {
            return Ok(());
        }
        if source == ApprovalSource::Tool {
            self.rule_on_held(at, resolve.approval);
            return Ok(());
        }
        let why = comment.map_or(rejected.clone(), |text| format!("{rejected}: {text}"));
        self.answered(at, resolution, result, why);
        Ok(())
    }

    /// What follows for a step from an answer about it.
    fn answered(
        &mut self,
        at: StepAt,
        resolution: Resolution,
        result: Option<Completed>,
        why: String,
    ) {
        self.go_on_after_people();
        match resolution {
            Resolution::Approved | Resolution::Retry => {
                if let Some(completed) = result {
                    self.node(at, StepEvent::Completed(Box::new(completed)));
                }
            }
            Resolution::Rejected => self.fail(at, Failure::new(Code::ApprovalRejected, why)),
            Resolution::Skip => {
                let error = self.run.state(at).failure.as_ref();
                let error = error.map(|ending| (ending.code.clone(), ending.message.clone()));
                let reason = "a person chose to go on without it";
                let skip = Skip { error, ..Skip::new(SkipCause::Decision, reason) };
                self.node(at, StepEvent::Skipped(skip));
            }
            Resolution::Abort => self.abort(at),
            Resolution::Pending | Resolution::Expired | Resolution::Cancelled => {}
        }
    }

    /// Whether somebody may answer a question, and has not yet.
    fn may_answer(&self, approval: &Approval, resolve: &Resolve) -> Result<(), Refusal> {
        let by = &resolve.by;
        if approval.not_initiator && self.run.started.is_initiator(by) {
            return Err(Refusal::SelfApproval(by.clone()));
        }
        let known = &self.given.authority.fabric().groups;
        let member = approval.groups.iter().any(|group| is_in(group, by, &resolve.roles, known));
        if !approval.groups.is_empty() && !member {
            let for_whom = approval.approvers.join(", ");
            return Err(Refusal::NotApprover { by: by.clone(), for_whom });
        }
        // A rejection ends it, whoever has agreed before.
        let agrees = resolve.decision == Decision::Approve;
        if agrees && approval.votes.iter().any(|(voter, _)| voter == by) {
            return Err(Refusal::AnsweredAlready(by.clone()));
        }
        Ok(())
    }

    /// Whether with this answer enough people have agreed: as many as were asked
    /// for, and one of each group.
    fn is_enough(&self, approval: &Approval, resolve: &Resolve) -> bool {
        let known = &self.given.authority.fabric().groups;
        let new = (resolve.by.clone(), resolve.roles.clone());
        let votes: Vec<&(String, Vec<String>)> = approval.votes.iter().chain([&new]).collect();
        let agrees =
            |group: &Vec<String>| votes.iter().any(|(by, roles)| is_in(group, by, roles, known));
        votes.len() >= approval.quorum as usize && approval.groups.iter().all(agrees)
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
        let grant = grant(&resolve.by, resolve.comment.as_ref(), self.given.now_ms);
        if self.run.definition.plan.family == Family::Lens {
            let asked = !self.run.step(at).outputs.is_empty();
            let kind = if asked { KIND_HUMAN_INPUT } else { KIND_APPROVAL };
            outcome = in_envelope(kind, outcome, grant);
        } else if let Value::Object(outputs) = &mut outcome.outputs {
            outputs.extend(grant);
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
            conversation: Vec::new(),
            artefacts: Vec::new(),
            carried: None,
        })
    }

    /// Who agreed to work that is then done; nothing if the step needs no approval. Later
    /// steps read it as of any approval step.
    pub(super) fn grant_of(&self, at: StepAt) -> Map<String, Value> {
        if self.run.step(at).approval.is_none() {
            return Map::new();
        }
        let of_step = |one: &&Approval| {
            one.at == at
                && one.source == ApprovalSource::Step
                && one.resolution == Some(Resolution::Approved)
        };
        let granted = self.run.approvals.values().filter(of_step);
        let granted = granted.max_by_key(|one| one.resolved_at_ms);
        let Some(granted) = granted else { return Map::new() };
        let by = granted.by.as_deref().unwrap_or_default();
        grant(by, granted.comment.as_ref(), granted.resolved_at_ms.unwrap_or_default())
    }

    /// An escalation was answered with "give up", or by nobody.
    pub(super) fn abort(&mut self, at: StepAt) {
        let ending = self.run.state(at).failure.clone();
        let trouble = Trouble {
            code: ending.as_ref().map_or_else(String::new, |ending| ending.code.clone()),
            message: ending.as_ref().map_or_else(String::new, |ending| ending.message.clone()),
            violations: Vec::new(),
            cause: None,
            retry_after_ms: None,
            usage: Usage::default(),
            answer: None,
            session: None,
        };
        self.give_up(at, trouble);
    }
}

/// How people agree to something.
pub(super) struct Agreement {
    /// Of each group at least one person must agree.
    groups: Vec<Vec<String>>,
    /// So many people must agree.
    quorum: u32,
    /// The initiator may not.
    not_initiator: bool,
}

impl Default for Agreement {
    fn default() -> Agreement {
        Agreement { groups: Vec::new(), quorum: 1, not_initiator: false }
    }
}

impl Agreement {
    /// What everything that holds a dispatch demands, together.
    pub(super) fn of(holds: &[HoldBy]) -> Agreement {
        let mut all = Agreement::default();
        for hold in holds {
            if !all.groups.contains(&hold.approvers) {
                all.groups.push(hold.approvers.clone());
            }
            all.quorum = all.quorum.max(hold.quorum);
            all.not_initiator |= hold.not_initiator;
        }
        // One that names no person is a group that every person is in: what another
        // names must not keep a quorum of any people from being reached.
        if all.groups.iter().all(Vec::is_empty) {
            all.groups.clear();
        }
        all
    }
}

/// Whether a person is in a group of approvers. In one without names everyone is.
///
/// A name that tokens have as a group or role (`known`) stands for that group alone: a
/// person of the same name does not answer for it. `group:NAME` is always a group,
/// `user:NAME` always a person.
fn is_in(group: &[String], by: &str, roles: &[String], known: &BTreeSet<String>) -> bool {
    let has = |name: &str| roles.iter().any(|role| role == name);
    let names = |one: &String| match one.split_once(':') {
        Some(("group", name)) => has(name),
        Some(("user", name)) => name == by,
        _ => has(one) || (one == by && !known.contains(one)),
    };
    group.is_empty() || group.iter().any(names)
}

/// What is agreed to with what an answer tightens, on top of what others have.
fn tightened(approval: &Approval, resolve: &Resolve) -> Result<Option<Tightened>, Refusal> {
    let Some(by) = &resolve.constraints else { return Ok(approval.tightened.clone()) };
    if approval.source == ApprovalSource::Tool {
        return Err(Refusal::Widens("a call of a tool is allowed as it is, or not".to_owned()));
    }
    let Some(asked) = &approval.action else {
        return Err(Refusal::Widens("there is nothing to tighten".to_owned()));
    };
    let Some(written) = asked.action.get("constraints") else {
        return Err(Refusal::Widens("a question without work has no constraints".to_owned()));
    };
    let base = match &approval.tightened {
        Some(tightened) => tightened.constraints.clone(),
        None => serde_json::from_value(written.clone()).unwrap_or_default(),
    };
    let constraints = base.tighten(by).map_err(Refusal::Widens)?;
    let mut action = asked.action.clone();
    action["constraints"] = serde_json::to_value(&constraints).unwrap_or_default();
    if let Some(most) = constraints.max_cost {
        action["cost_ceiling"] = serde_json::to_value(most).unwrap_or_default();
    }
    let digest = canonical::sha256_hex(&action, 512);
    Ok(Some(Tightened { constraints, digest }))
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
        (
            ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool,
            Decision::Approve,
        ) => Ok(Resolution::Approved),
        (
            ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool,
            Decision::Reject,
        ) => Ok(Resolution::Rejected),
        (ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool, _) => {
            Err(Refusal::WrongDecision("approve or reject"))
        }
        (ApprovalSource::Escalation, Decision::Retry) => Ok(Resolution::Retry),
        (ApprovalSource::Escalation, Decision::Skip) => Ok(Resolution::Skip),
        (ApprovalSource::Escalation, Decision::Abort) => Ok(Resolution::Abort),
        (ApprovalSource::Escalation, _) => Err(Refusal::WrongDecision("retry, skip or abort")),
    }
}

#[cfg(test)]
mod tests;
