//! What the moderator is asked, and what follows from its answer.
//!
//! INVARIANT: a step whose input is moderated goes on to people and gates only
//! with a clearance of exactly what it is given, and its output counts only
//! with one of exactly what came. Whatever is not cleared fails the step, and
//! nothing tries that again.

use super::Turn;
use super::fail::Trouble;
use super::govern::Ready;
use crate::code::Code;
use crate::journal::event::{LogLine, StepAt, StepEvent};
use crate::port::adapter::{Answer, Usage};
use crate::port::moderator::{Phase, Verdict};
use crate::run::command::Refusal;
use crate::run::moderate::{digest, input_text, output_text};
use crate::status::StepStatus;
use sluice_govern::registry::Posture;
use std::sync::Arc;

impl Turn<'_> {
    /// Whether the moderator must be asked first. If so, it is.
    pub(super) fn awaits_moderator(&mut self, ready: &Ready) -> bool {
        let at = ready.at;
        // A run that only looks sends nothing to anybody.
        let looks = self.run.started.posture == Posture::Advisory;
        if looks || !self.run.step(at).moderation.covers(Phase::Input) {
            return false;
        }
        let digest = digest(&input_text(&ready.prepared));
        if self.run.state(at).cleared.as_ref() == Some(&digest) {
            return false;
        }
        // Out of the wait between attempts first; or it was in flight, sent
        // before there was a moderator.
        if self.run.state(at).status() != StepStatus::Queued {
            self.node(at, StepEvent::Queued { items: None });
        }
        let prepared = (!ready.known).then(|| Arc::clone(&ready.prepared));
        let dispatch_no = self.run.state(at).dispatch_no;
        self.node(
            at,
            StepEvent::Log { dispatch_no, line: LogLine::ModerationAsked { digest, prepared } },
        );
        true
    }

    /// The moderator has answered about what goes into a step.
    pub(super) fn moderated(
        &mut self,
        at: StepAt,
        digest: &str,
        verdict: &Verdict,
    ) -> Result<(), Refusal> {
        let asked = self.run.get(at).and_then(|state| state.phase.moderated());
        if asked != Some(digest) {
            return Err(Refusal::Late);
        }
        if *verdict == Verdict::Clear {
            self.clear(at, Phase::Input, digest.to_owned());
        } else {
            self.flagged(at, Phase::Input, verdict, Usage::default());
        }
        Ok(())
    }

    /// What the moderator has against a result. One that nobody has checked is
    /// as good as flagged; of a failure there is nothing to check but what was
    /// streamed before it.
    pub(super) fn objection(&mut self, at: StepAt, answer: &Answer) -> Option<Verdict> {
        let verdict = self.verdict.take();
        if !self.run.step(at).moderation.covers(Phase::Output) {
            return None;
        }
        match verdict {
            Some(Verdict::Clear) if answer.error.is_none() => {
                self.clear(at, Phase::Output, digest(&output_text(answer)));
                None
            }
            None if answer.error.is_none() => {
                Some(Verdict::Unavailable("the answer was not checked".to_owned()))
            }
            verdict => verdict.filter(|verdict| *verdict != Verdict::Clear),
        }
    }

    /// Whether the result at hand may be shown: the moderator has cleared it, or need
    /// not be asked.
    pub(super) fn is_cleared(&self, at: StepAt) -> bool {
        !self.run.step(at).moderation.covers(Phase::Output) || self.verdict == Some(Verdict::Clear)
    }

    fn clear(&mut self, at: StepAt, phase: Phase, digest: String) {
        let dispatch_no = self.run.state(at).dispatch_no;
        self.node(
            at,
            StepEvent::Log { dispatch_no, line: LogLine::ModerationCleared { phase, digest } },
        );
    }

    /// The step fails for good: what was found is told first.
    pub(super) fn flagged(&mut self, at: StepAt, phase: Phase, verdict: &Verdict, usage: Usage) {
        let decision = verdict.decision().unwrap_or_default();
        self.node(at, StepEvent::ModerationFlagged { phase, decision });
        let code = Code::ModerationBlocked.to_string();
        let trouble = Trouble {
            message: code.clone(),
            code,
            violations: Vec::new(),
            cause: None,
            retry_after_ms: None,
            usage,
            answer: None,
            session: None,
        };
        self.give_up(at, trouble);
    }
}
