//! Calls of tools inside a step: each is decided, recorded, and allowed once.
//!
//! A call must be of a tool that the step names and that what was allowed with
//! its dispatch lets through; then the gates are asked, with the policies in force
//! now. Where they want a person to agree, the step goes on waiting for its tool
//! while somebody decides; the answer is followed by asking the gates again.
//!
//! Each call is judged with the labels of everything the attempt has read by then:
//! once a tool was called, that is untrusted data too.
//!
//! INVARIANT: a call is allowed by a decision of its own, for one tool and one
//! input. Consent counts for one call, within the attempt it was asked in.

use super::Turn;
use super::approve::Agreement;
use super::govern::Ready;
use crate::canonical;
use crate::id::ApprovalId;
use crate::journal::event::{
    ApprovalResolved, ApprovalSource, LogLine, Record, Resolution, Ruling, StepAt, StepEvent,
    ToolRequest,
};
use crate::limits::{TOOL_CALLS_MAX, TOOL_INPUT_BYTES_MAX};
use crate::money::Money;
use crate::port::adapter::{ToolEnded, ToolUse};
use crate::run::command::Refusal;
use crate::run::evolve::money::Landing;
use crate::run::evolve::tool::KEPT;
use crate::tools::names;
use serde_json::{Map, Value};
use sluice_govern::action::Action;
use sluice_govern::decision::{Decision, Disposition};
use sluice_govern::evaluate;
use sluice_govern::facts::{Facts, Verb, Worst};
use sluice_govern::registry::Posture;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Turn<'_> {
    /// A step wants to call a tool.
    pub(super) fn use_tool(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        wanted: ToolUse,
    ) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        // Asked again, it was decided already.
        if self.run.state(at).calls.contains_key(&wanted.id) {
            return Ok(());
        }
        let digest = digest(&wanted);
        let ruling = match self.out_of_bounds(at, &wanted) {
            Some(why) => Ruling::Denied(why),
            None => self.rule(at, &wanted, &digest),
        };
        self.ruled(at, dispatch_no, wanted, digest, ruling);
        Ok(())
    }

    /// A tool that was allowed has answered.
    pub(super) fn tool_ended(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        ended: ToolEnded,
    ) -> Result<(), Refusal> {
        self.in_flight(at, dispatch_no)?;
        self.node(at, StepEvent::Log { dispatch_no, line: LogLine::ToolEnded(ended) });
        Ok(())
    }

    fn ruled(
        &mut self,
        at: StepAt,
        dispatch_no: u32,
        wanted: ToolUse,
        digest: String,
        ruling: Ruling,
    ) {
        let too_long = canonical::to_string(&wanted.input).len() > TOOL_INPUT_BYTES_MAX;
        let input = if too_long { Value::Null } else { wanted.input };
        let asked = ToolRequest { id: wanted.id, tool: wanted.tool, input, digest, ruling };
        self.node(at, StepEvent::Log { dispatch_no, line: LogLine::Tool(Box::new(asked)) });
    }

    /// Why a call is out of the question, whatever the rules say.
    fn out_of_bounds(&self, at: StepAt, wanted: &ToolUse) -> Option<String> {
        let tool = &wanted.tool;
        let state = self.run.state(at);
        if state.calls.len() >= TOOL_CALLS_MAX {
            return Some(format!("the attempt has asked for {TOOL_CALLS_MAX} tools already"));
        }
        if canonical::to_string(&wanted.input).len() > TOOL_INPUT_BYTES_MAX {
            return Some(format!("its input is over {TOOL_INPUT_BYTES_MAX} bytes"));
        }
        if !names(&self.run.tools_of(at.step), tool) {
            return Some(format!("the step does not name tool {tool}"));
        }
        let bounds = state.terms().map(|terms| &terms.constraints);
        let allow = bounds.and_then(|bounds| bounds.tools_allow.as_ref());
        let denied = bounds.is_some_and(|bounds| names(&bounds.tools_deny, tool));
        if denied || allow.is_some_and(|allow| !names(allow, tool)) {
            return Some(format!("what was allowed with the step does not cover tool {tool}"));
        }
        None
    }

    /// Asks the gates, and people where they want it.
    fn rule(&mut self, at: StepAt, wanted: &ToolUse, digest: &str) -> Ruling {
        let (decision, record) = self.judge_tool(at, wanted);
        self.require_rows_to_wait();
        self.node(at, StepEvent::GovernanceDecided(record));
        match decision.disposition {
            Disposition::Allow => {
                // Under the rows that are in force when it becomes durable.
                self.guards.require_rows();
                Ruling::Allowed(None)
            }
            Disposition::Block => Ruling::Denied(why(&decision)),
            Disposition::Hold => self.consent(at, wanted, digest, &decision),
        }
    }

    /// What people have said of this very call, or a question to them.
    fn consent(
        &mut self,
        at: StepAt,
        wanted: &ToolUse,
        digest: &str,
        decision: &Decision,
    ) -> Ruling {
        let state = self.run.state(at);
        let mut same = state.calls.values().filter(|call| call.digest == digest);
        let asked = same.find_map(|call| match call.ruling {
            Ruling::Held(approval) => Some(approval),
            Ruling::Allowed(_) | Ruling::Denied(_) => None,
        });
        let known = asked.and_then(|id| Some((id, self.run.approvals.get(&id)?)));
        if let Some((id, approval)) = known {
            let agreed = approval.digest() == Some(&decision.action_digest);
            match approval.resolution {
                None if agreed => return Ruling::Held(id),
                Some(Resolution::Approved) if agreed => {
                    self.guards.require_rows();
                    return Ruling::Allowed(Some(id));
                }
                Some(Resolution::Rejected) => {
                    let by = approval.by.as_deref().unwrap_or("somebody");
                    let why = approval.comment.as_deref().unwrap_or_default();
                    return Ruling::Denied(format!("rejected by {by}: {why}"));
                }
                Some(Resolution::Expired) => {
                    return Ruling::Denied("no approver answered in time".to_owned());
                }
                // What was agreed to is no longer what would be done.
                _ => {}
            }
        }
        self.ask_about(at, wanted, decision)
    }

    fn ask_about(&mut self, at: StepAt, wanted: &ToolUse, decision: &Decision) -> Ruling {
        let reasons: Vec<String> = decision.holds.iter().map(|hold| hold.reason.clone()).collect();
        let name = self.run.name(at);
        let input = canonical::to_string(&wanted.input);
        let tool = &wanted.tool;
        let summary = format!("Let `{name}` call {tool}?\n{input}\n{}", reasons.join("\n"));
        let digest = decision.action_digest.clone();
        let action = decision.action.clone().expect("a hold has the action it is about");
        let asked = self.asked(at, action, Some(digest), reasons);
        let ready = self.in_hand(at);
        let source = ApprovalSource::Tool;
        Ruling::Held(self.request(&ready, source, summary, Agreement::of(&decision.holds), asked))
    }

    /// Somebody has answered, or nobody has in time: the gates are asked again.
    pub(super) fn rule_on_held(&mut self, at: StepAt, approval: ApprovalId) {
        let state = self.run.state(at);
        let held = state.calls.iter().filter(|(_, call)| call.ruling == Ruling::Held(approval));
        // One that an earlier dispatch asked for waits until it is asked for again.
        let held = held.filter(|(id, _)| !id.starts_with(KEPT));
        let held: Vec<ToolUse> = held
            .map(|(id, call)| ToolUse {
                id: id.clone(),
                tool: call.tool.clone(),
                input: call.input.clone().unwrap_or_default(),
            })
            .collect();
        let Some(dispatch_no) = self.run.index.in_flight.get(&at).copied() else { return };
        for (number, wanted) in held.into_iter().enumerate() {
            let digest = digest(&wanted);
            let mut ruling = self.rule(at, &wanted, &digest);
            // One consent is for one call: whoever else waited for it asks anew.
            if number > 0 && ruling == Ruling::Allowed(Some(approval)) {
                let (decision, _) = self.judge_tool(at, &wanted);
                ruling = self.ask_about(at, &wanted, &decision);
            }
            self.ruled(at, dispatch_no, wanted, digest, ruling);
        }
    }

    /// An attempt is about to end: nobody needs to decide about its calls any more.
    pub(super) fn drop_tool_questions(
        &mut self,
        at: StepAt,
        event: &StepEvent,
        landings: &[Landing],
    ) {
        // What is wrong with an answer is told, and then the attempt ends.
        if matches!(event, StepEvent::ContractViolated { .. } | StepEvent::ModerationFlagged { .. })
        {
            self.drop_questions_of(at);
        }
        for landing in landings {
            self.drop_questions_of(landing.at);
        }
    }

    fn drop_questions_of(&mut self, at: StepAt) {
        let calls = self.run.get(at).map(|state| &state.calls).filter(|calls| !calls.is_empty());
        let held = calls.into_iter().flatten().filter_map(|(_, call)| match call.ruling {
            Ruling::Held(approval) => Some(approval),
            Ruling::Allowed(_) | Ruling::Denied(_) => None,
        });
        let open = |id: &ApprovalId| {
            self.run.approvals.get(id).is_some_and(|one| one.resolution.is_none())
        };
        let open: BTreeSet<ApprovalId> = held.filter(open).collect();
        for id in open {
            let resolved = ApprovalResolved::new(id, Resolution::Cancelled);
            self.node(at, StepEvent::ApprovalResolved(Box::new(resolved)));
        }
    }

    /// The attempt in flight, as it was sent.
    fn in_hand(&self, at: StepAt) -> Ready {
        let state = self.run.state(at);
        let prepared = state.prepared.as_ref().map(Arc::clone).unwrap_or_default();
        Ready { at, attempt: state.attempt, prepared, known: true }
    }

    fn judge_tool(&self, at: StepAt, wanted: &ToolUse) -> (Decision, Record) {
        let ready = self.in_hand(at);
        let mut dossier = self.dossier(&ready, self.role(ready.at), None, false);
        dossier.grant = None;
        dossier.gateway = self.run.state(at).gateway().unwrap_or_default().to_owned();
        let inputs = match &wanted.input {
            Value::Object(input) => input.clone(),
            other => Map::from_iter([("input".to_owned(), other.clone())]),
        };
        let tools = [wanted.tool.clone()];
        let facts = self.facts(&ready, &dossier, Vec::new(), false);
        let facts = Facts {
            verb: Verb::UseTool,
            // With what the tools before it answered.
            inputs: self.inputs(self.run.labels_read(at)),
            object: Some(&wanted.tool),
            // It has its slot, and its money is reserved.
            running: 0,
            in_window: 0,
            worst: Worst::Known(Money::ZERO),
            asks: None,
            posture: match facts.posture {
                // The step was agreed to, and this is part of it.
                Posture::ApprovalRequired => Posture::BoundedAutonomous,
                posture => posture,
            },
            action: Action {
                command: "",
                stdin: None,
                env: &[],
                inputs: &inputs,
                memory: None,
                session: None,
                system_prompt: None,
                tools: &tools,
                ..facts.action
            },
            ..facts
        };
        let authority = self.given.authority;
        let evaluated = evaluate(&facts, authority.policies());
        let record = Record::new(evaluated.write(None, authority.fabric().epoch));
        (evaluated.decision, record)
    }
}

/// SHA-256 of tool and input.
fn digest(wanted: &ToolUse) -> String {
    canonical::sha256_hex(&(&wanted.tool, &wanted.input), 256)
}

/// Why the gates said no.
fn why(decision: &Decision) -> String {
    let said = decision.gates.iter().rev().find_map(|verdict| verdict.message.as_deref());
    said.unwrap_or("the gates said no").to_owned()
}
