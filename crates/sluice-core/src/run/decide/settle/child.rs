//! Sub-workflows: what the messages of a child run mean for its step.

use super::Next;
use super::cancel::cancelled;
use super::fail::{FailedAttempt, fail_attempt, give_up};
use super::labels::Producer;
use super::moderate::{fail_flagged, objection};
use super::outcome::{complete_step, work_outcome};
use crate::code::Code;
use crate::id::RunId;
use crate::journal::event::{ChildPace, LogLine, Path, Provenance, StepAt, StepEvent};
use crate::limits::CHILD_ORIGINS_MAX;
use crate::origin::PassedLabels;
use crate::outputs::coerce::Coercion;
use crate::plan::policy::ModerationPhase;
use crate::plan::policy::RetryCause;
use crate::port::adapter::{Answer, Usage};
use crate::port::moderator::Verdict;
use crate::run::command::Refusal;
use crate::run::decide::draft::Draft;
use crate::run::decide::draft::pause::{pause_if_only_people, resume_after_people};
use crate::run::decide::origins::transform;
use crate::run::state::Run;
use crate::status::RunStatus;
use serde_json::{Map, Value};

/// How a child run ended.
pub(crate) struct ChildEnd {
    pub(crate) child: RunId,
    pub(crate) status: RunStatus,
    pub(crate) outputs: Option<Value>,
    /// Code and message.
    pub(crate) error: Option<(String, String)>,
    pub(crate) origins: Vec<Provenance>,
    pub(crate) labels: Option<PassedLabels>,
}

/// A child run has ended, with the moderator's verdict about its result.
pub(crate) fn child_ended(
    draft: &mut Draft<'_>,
    end: ChildEnd,
    verdict: Option<Verdict>,
) -> Result<Next, Refusal> {
    let ChildEnd { child, status, outputs, error, origins, labels } = end;
    let at = step_of(draft.run, child)?;
    resume_after_people(draft);
    if draft.run.status == RunStatus::Cancelling {
        let reason = draft.run.cancel_reason.clone().unwrap_or_default();
        cancelled(draft, at, Code::Cancelled, &reason, Usage::default());
        return Ok(Next::Nothing);
    }
    let (code, message) = error.unwrap_or_default();
    match status {
        RunStatus::Completed => {
            let outputs = match outputs {
                Some(Value::Object(outputs)) => outputs,
                _ => Map::new(),
            };
            let answer = Answer { outputs: Some(outputs), ..Answer::default() };
            if let Some(verdict) = objection(draft, at, &answer, verdict) {
                fail_flagged(draft, at, ModerationPhase::Output, &verdict, answer.usage);
                return Ok(Next::Nothing);
            }
            let result = ChildResult { child, answer, origins, labels };
            Ok(child_completed(draft, at, result))
        }
        // A person stopped the child: another one would undo that.
        RunStatus::Cancelled => {
            let message = format!("{child} was cancelled: {message}");
            let failed = FailedAttempt::new(Code::ChildFailed, message, Usage::default());
            give_up(draft, at, failed);
            Ok(Next::Nothing)
        }
        _ => Ok(child_failed(draft, at, &code, format!("{child}: {message}"))),
    }
}

/// The step in flight that a child run executes.
fn step_of(run: &Run, child: RunId) -> Result<StepAt, Refusal> {
    let mut in_flight = run.index.in_flight.keys().copied();
    let executes = |at: &StepAt| run.state(*at).path() == Some(Path::Child(child));
    in_flight.find(executes).ok_or(Refusal::Late)
}

/// The result of a child run that completed.
struct ChildResult {
    child: RunId,
    answer: Answer,
    origins: Vec<Provenance>,
    labels: Option<PassedLabels>,
}

fn child_completed(draft: &mut Draft<'_>, at: StepAt, result: ChildResult) -> Next {
    let ChildResult { child, mut answer, origins, labels } = result;
    let outputs = answer.outputs.take().unwrap_or_default();
    let settled = work_outcome(draft, at, outputs, Producer::Child(labels.as_ref()));
    let coercions = settled.as_ref().map_or(&[][..], |settled| &settled.coercions);
    for one in from_child(draft.run.id, child, origins, coercions) {
        draft.record(at, StepEvent::Provenance(Box::new(one)));
    }
    match settled {
        Ok(settled) => {
            complete_step(draft, at, settled, answer);
            Next::Nothing
        }
        Err(failure) => {
            let failed = FailedAttempt {
                violations: failure.violations,
                cause: Some(RetryCause::ContractViolated),
                ..FailedAttempt::new(failure.code, failure.message, Usage::default())
            };
            fail_attempt(draft, at, failed)
        }
    }
}

fn child_failed(draft: &mut Draft<'_>, at: StepAt, code: &str, message: String) -> Next {
    let permanent = [Code::RecursionTooDeep, Code::InvalidArgs, Code::UnknownAgent];
    let permanent = permanent.into_iter().find(|one| one.as_str() == code);
    if let Some(code) = permanent {
        give_up(draft, at, FailedAttempt::new(code, message, Usage::default()));
        return Next::Nothing;
    }
    let failed = FailedAttempt {
        cause: Some(RetryCause::ProviderError),
        ..FailedAttempt::new(Code::ChildFailed, message, Usage::default())
    };
    fail_attempt(draft, at, failed)
}

/// A child run waits only for people, or no longer does: the clock of the attempt
/// stops meanwhile.
pub(crate) fn child_paced(
    draft: &mut Draft<'_>,
    child: RunId,
    pace: ChildPace,
    at_ms: u64,
) -> Result<(), Refusal> {
    let at = step_of(draft.run, child)?;
    let paused = draft.run.child_is_paused(at);
    let changes = match pace {
        // The time that a cancelled child has to stop does not pause.
        ChildPace::Paused => !paused && draft.run.status != RunStatus::Cancelling,
        ChildPace::Resumed => paused,
    };
    if !changes {
        return Ok(());
    }
    if pace == ChildPace::Resumed {
        resume_after_people(draft);
    }
    // The clock of the child's node may be ahead.
    let at_ms = at_ms.min(draft.given.now_ms);
    draft.log(at, LogLine::Child { child, pace, at_ms });
    pause_if_only_people(draft);
    Ok(())
}

/// The provenance of a child's result, as the step of this run records it.
fn from_child(
    own: RunId,
    child: RunId,
    origins: Vec<Provenance>,
    coercions: &[Coercion],
) -> Vec<Provenance> {
    if origins.is_empty() {
        // The child does not say: the result came from the run as a whole.
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
        // A value that the child only passed on comes from this run.
        let source_run = one.source_run.or(Some(child)).filter(|run| *run != own);
        Provenance { source_run, transform, ..one }
    });
    own.collect()
}
