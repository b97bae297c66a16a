//! Sub-workflows: what travels between a run and its children.

use super::Turn;
use super::fail::Trouble;
use super::origins::transform;
use crate::code::Code;
use crate::id::RunId;
use crate::journal::event::{ChildPace, Completed, LogLine, Path, Provenance, StepAt, StepEvent};
use crate::limits::CHILD_ORIGINS_MAX;
use crate::outputs::coerce::Coercion;
use crate::plan::policy::RetryCause;
use crate::port::adapter::{Answer, Usage};
use crate::port::moderator::Phase;
use crate::run::command::{Command, Refusal};
use crate::status::RunStatus;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How a child run ended.
pub(super) struct Ended {
    pub(super) child: RunId,
    pub(super) status: RunStatus,
    pub(super) outputs: Option<Value>,
    pub(super) error: Option<(String, String)>,
    pub(super) origins: Vec<Provenance>,
}

impl Turn<'_> {
    /// A child run ended.
    pub(super) fn child_ended(&mut self, ended: Ended) -> Result<(), Refusal> {
        let Ended { child, status, outputs, error, origins } = ended;
        let mut in_flight = self.run.index.in_flight.keys().copied();
        let is_its = |at: &StepAt| self.run.state(*at).path() == Some(Path::Child(child));
        let Some(at) = in_flight.find(is_its) else { return Err(Refusal::Late) };
        self.go_on_after_people();
        if self.run.status == RunStatus::Cancelling {
            let reason = self.run.cancel_reason.clone().unwrap_or_default();
            self.cancelled(at, Code::Cancelled, &reason, Usage::default());
            return Ok(());
        }
        match status {
            RunStatus::Completed => self.child_completed(at, child, outputs, origins),
            RunStatus::Cancelled => {
                let (_, why) = error.unwrap_or_default();
                self.child_cancelled(at, child, &why);
            }
            _ => {
                let (code, message) = error.unwrap_or_default();
                self.child_failed(at, child, &code, &message);
            }
        }
        Ok(())
    }

    fn child_completed(
        &mut self,
        at: StepAt,
        child: RunId,
        outputs: Option<Value>,
        origins: Vec<Provenance>,
    ) {
        let outputs = match outputs {
            Some(Value::Object(outputs)) => outputs,
            _ => Map::new(),
        };
        let answer = Answer { outputs: Some(outputs), ..Answer::default() };
        if let Some(verdict) = self.objection(at, &answer) {
            return self.flagged(at, Phase::Output, &verdict, answer.usage);
        }
        let outputs = answer.outputs.unwrap_or_default();
        let settled = self.work_outcome(at, outputs, None);
        let coercions = settled.as_ref().map_or(&[][..], |(_, coercions)| coercions);
        let own = self.run.id;
        for one in from_child(own, child, origins, coercions) {
            self.node(at, StepEvent::Provenance(Box::new(one)));
        }
        match settled {
            Ok((outcome, coercions)) => {
                let state = self.run.state(at);
                let begun = state.attempt_at_ms().unwrap_or(self.given.now_ms);
                let completed = Completed {
                    outcome: Arc::new(outcome),
                    attempts: state.attempt,
                    duration_ms: self.given.now_ms.saturating_sub(begun),
                    usage: Usage::default(),
                    coercions,
                    session: None,
                    conversation: Vec::new(),
                    artefacts: Vec::new(),
                    carried: None,
                };
                self.node(at, StepEvent::Completed(Box::new(completed)));
            }
            Err(failure) => {
                let trouble = Trouble {
                    code: failure.code.to_string(),
                    message: failure.message,
                    violations: failure.violations,
                    cause: Some(RetryCause::ContractViolated),
                    retry_after_ms: None,
                    usage: Usage::default(),
                    answer: None,
                    session: None,
                };
                self.fail_attempt(at, trouble);
            }
        }
    }

    /// Somebody stopped the child: to start another would undo that.
    fn child_cancelled(&mut self, at: StepAt, child: RunId, why: &str) {
        let trouble = Trouble {
            code: Code::ChildFailed.to_string(),
            message: format!("{child} was cancelled: {why}"),
            violations: Vec::new(),
            cause: None,
            retry_after_ms: None,
            usage: Usage::default(),
            answer: None,
            session: None,
        };
        self.give_up(at, trouble);
    }

    fn child_failed(&mut self, at: StepAt, child: RunId, code: &str, message: &str) {
        let permanent = [Code::RecursionTooDeep, Code::InvalidArgs, Code::UnknownAgent];
        let permanent = permanent.iter().any(|one| one.as_str() == code);
        let trouble = Trouble {
            code: if permanent { code.to_owned() } else { Code::ChildFailed.to_string() },
            message: format!("{child}: {message}"),
            violations: Vec::new(),
            cause: (!permanent).then_some(RetryCause::ProviderError),
            retry_after_ms: None,
            usage: Usage::default(),
            answer: None,
            session: None,
        };
        if permanent { self.give_up(at, trouble) } else { self.fail_attempt(at, trouble) }
    }

    /// A child run has begun to wait only for people, or goes on: the time of the
    /// step's attempt stands still meanwhile.
    pub(super) fn child_paced(
        &mut self,
        child: RunId,
        pace: ChildPace,
        at_ms: u64,
    ) -> Result<(), Refusal> {
        let mut in_flight = self.run.index.in_flight.keys().copied();
        let is_its = |at: &StepAt| self.run.state(*at).path() == Some(Path::Child(child));
        let Some(at) = in_flight.find(is_its) else { return Err(Refusal::Late) };
        let paused = self.run.child_is_paused(at);
        let news = match pace {
            // What is being stopped has only so much time for it.
            ChildPace::Paused => !paused && self.run.status != RunStatus::Cancelling,
            ChildPace::Resumed => paused,
        };
        if !news {
            return Ok(());
        }
        if pace == ChildPace::Resumed {
            self.go_on_after_people();
        }
        let dispatch_no = self.run.state(at).dispatch_no;
        // The child's clock may be ahead of this one.
        let at_ms = at_ms.min(self.given.now_ms);
        let line = LogLine::Child { child, pace, at_ms };
        self.node(at, StepEvent::Log { dispatch_no, line });
        self.pause_if_only_people();
        Ok(())
    }

    /// The run has begun to wait only for people, or goes on: the one that started it
    /// is told, in the same append.
    pub(super) fn tell_pace(&mut self) {
        let rests = self.run.rests();
        if rests == self.rested || self.run.status.is_terminal() {
            return;
        }
        let Some(parent) = self.run.started.parent.as_ref().map(|parent| parent.run) else {
            return;
        };
        let pace = if rests { ChildPace::Paused } else { ChildPace::Resumed };
        let child = self.run.id;
        let key = format!("child:{child}:{}:{pace}", self.run.version);
        self.post(parent, key, Command::ChildPaced { child, pace, at_ms: self.given.now_ms });
    }

    /// The run has ended: the one that started it is told, in the same append.
    pub(super) fn tell_parent(&mut self) {
        let Some(parent) = self.run.started.parent.as_ref().map(|parent| parent.run) else {
            return;
        };
        let end = self.run.end.clone().expect("a run that has ended says how");
        let key = format!("child:{}:{}", self.run.id, self.run.version);
        // A parent must not start a cancelled child again, even if the child had failed.
        let cancelled = self.run.cancel_reason.is_some();
        let command = Command::ChildEnded {
            child: self.run.id,
            status: if cancelled { RunStatus::Cancelled } else { self.run.status },
            outputs: end.outputs.map(|outputs| (*outputs).clone()),
            error: end.error,
            origins: if self.run.status == RunStatus::Completed {
                self.result_origins()
            } else {
                Vec::new()
            },
        };
        self.post(parent, key, command);
    }
}

/// Where a child's result came from, as the step that has it now tells it.
fn from_child(
    own: RunId,
    child: RunId,
    origins: Vec<Provenance>,
    coercions: &[Coercion],
) -> Vec<Provenance> {
    if origins.is_empty() {
        // It does not say: it came from the run as a whole.
        return vec![Provenance {
            source_run: Some(child),
            source_node: String::new(),
            source_output_path: "outputs".to_owned(),
            target_input_path: "outputs".to_owned(),
            transform: None,
        }];
    }
    let own = origins.into_iter().take(CHILD_ORIGINS_MAX).map(|one| {
        let field = one.target_input_path.strip_prefix("outputs.").unwrap_or_default();
        let transform = transform(one.transform.clone(), field, coercions);
        // What the child was given and gave back as it was comes from here.
        let source_run = one.source_run.or(Some(child)).filter(|run| *run != own);
        Provenance { source_run, transform, ..one }
    });
    own.collect()
}
