//! A moderator whose verdicts are derived from the seed, and the moderation checker.
//!
//! INVARIANT: no text is sent, shown or accepted as a result before it was cleared.

use crate::random::{SeededRandom, halves};
use crate::sabotage::Sabotage;
use crate::world::World;
use serde_json::{Value, json};
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::journal::event::{Event, StepAt, StepEvent};
use sluice_core::plan::policy::ModerationPhase;
use sluice_core::plan::step::Work;
use sluice_core::port::Later;
use sluice_core::port::adapter::Request;
use sluice_core::port::moderator::{Moderator, Subject, Verdict};
use sluice_core::run::state::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Checks texts, sometimes late or not at all.
pub(crate) struct SeededModerator(pub(crate) Arc<World>);

impl Moderator for SeededModerator {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        Box::pin(async move {
            let (luck, pause_ms) = {
                let mut chance = self.0.chance();
                (chance.below(100), chance.below(400))
            };
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            match luck {
                0..4 => std::future::pending().await,
                4..12 => return Verdict::Unavailable("scripted".to_owned()),
                _ => {}
            }
            if self.0.sabotage == Some(Sabotage::ClearUnread(subject.phase)) {
                return Verdict::Clear;
            }
            if self.0.is_flagged(subject) {
                return Verdict::Flagged(json!({"by": "censor"}));
            }
            self.0.journal().judged.clears(subject);
            Verdict::Clear
        })
    }
}

impl World {
    /// Depends on the text alone, so that repeated checks agree.
    fn is_flagged(&self, subject: &Subject) -> bool {
        let [high, low] = halves(subject.run.0);
        let text = subject
            .text
            .bytes()
            .fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        SeededRandom::of(&[self.seed, 11, high, low, text]).permille(100)
    }
}

/// Cleared texts, by run and step.
#[derive(Default)]
pub(crate) struct ModerationChecker {
    cleared: BTreeMap<(RunId, String, ModerationPhase), BTreeSet<String>>,
}

impl ModerationChecker {
    fn clears(&mut self, subject: &Subject) {
        let key = (subject.run, subject.step.clone(), subject.phase);
        self.cleared.entry(key).or_default().insert(subject.text.clone());
    }

    fn is_cleared(&self, run: RunId, step: &str, phase: ModerationPhase, text: &str) -> bool {
        let cleared = self.cleared.get(&(run, step.to_owned(), phase));
        cleared.is_some_and(|texts| texts.iter().any(|one| one.contains(text)))
    }

    /// An adapter was called.
    pub(crate) fn executes(&self, run: &Run, at: StepAt, request: &Request) -> Result<(), String> {
        let moderated = run.step(at).moderation.covers(ModerationPhase::Input);
        let (name, message) = (&request.step, &request.message);
        if moderated && !self.is_cleared(run.id, name, ModerationPhase::Input, message) {
            return Err(format!("no unchecked text is sent: {message:?}"));
        }
        Ok(())
    }

    /// An event was appended for a step.
    pub(crate) fn event(&self, run: &Run, event: &Event) -> Result<(), String> {
        let Event::Step(at, StepEvent::Completed(completed)) = event else { return Ok(()) };
        let agent = matches!(run.step(*at).work, Work::Command { .. } | Work::Lens(_));
        if !agent || completed.carried.is_some() || !is_moderated(run, *at) {
            return Ok(());
        }
        let text = completed.outcome.stdout.as_deref().unwrap_or_default();
        match self.is_cleared(run.id, &run.name(*at), ModerationPhase::Output, text) {
            true => Ok(()),
            false => Err(format!("no unchecked result is accepted: {text:?}")),
        }
    }

    /// Readers see the events of an append.
    pub(crate) fn shown(&self, run: &Run, seen: Vec<Seen>) -> Result<(), String> {
        let deltas = seen.into_iter().filter_map(Seen::event);
        for delta in deltas.filter(|one| one.kind == "node.stream.delta") {
            let envelope: Value = serde_json::from_str(&delta.json).expect("it is JSON");
            let payload = &envelope["payload"];
            let name = payload["nodeId"].as_str().unwrap_or_default();
            let text = payload["text"].as_str().unwrap_or_default();
            if !run.find(name).is_some_and(|at| is_moderated(run, at)) {
                continue;
            }
            // Parts that were appended together may have been cleared separately.
            let mut parts = text.split_inclusive(|c: char| c.is_ascii_digit());
            if let Some(part) =
                parts.find(|part| !self.is_cleared(run.id, name, ModerationPhase::Output, part))
            {
                return Err(format!("no unchecked text is shown: {part:?}"));
            }
        }
        Ok(())
    }
}

/// Whether the output of a step or instance is moderated.
fn is_moderated(run: &Run, at: StepAt) -> bool {
    let whole = run.step(at).for_each.is_some() && at.item.is_none();
    !whole && run.step(at).moderation.covers(ModerationPhase::Output)
}
