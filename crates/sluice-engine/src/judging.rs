//! Questions to the moderator that a run in memory has open: what goes into its
//! steps, and results that come by letter.
//!
//! A letter stays in the inbox until its result is judged, so that a crash only
//! asks again.

use crate::judge::Judge;
use crate::turn::Input;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sluice_core::journal::event::StepAt;
use sluice_core::port::moderator::Subject;
use sluice_core::port::store::LetterId;
use sluice_core::run::command::Command;
use sluice_core::run::state::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Open questions, and answers that wait for the next turn.
#[derive(Default)]
pub(crate) struct Judging {
    open: FuturesUnordered<BoxFuture<'static, Option<Input>>>,
    answered: Vec<Input>,
    /// What is asked about steps: the digest of the text.
    steps: BTreeMap<StepAt, (String, CancellationToken)>,
    letters: BTreeSet<LetterId>,
    /// Results held back, by letter or not.
    results: usize,
}

impl Judging {
    /// Whether nothing is asked.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a result waits for its verdict: only this process knows.
    pub(crate) fn holds_results(&self) -> bool {
        self.results > 0
    }

    /// Whether a letter is held back, whatever has become of its step.
    pub(crate) fn holds(&self, letter: LetterId) -> bool {
        self.letters.contains(&letter)
    }

    /// Whether answers wait for the next turn.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answered.is_empty()
    }

    /// Asks about what goes into a step, unless that is asked already.
    pub(crate) fn ask(&mut self, run: &Run, at: StepAt, judge: &Arc<Judge>) {
        let Some((digest, subject)) = run.input_subject(at) else { return };
        if self.steps.get(&at).is_some_and(|(asked, _)| *asked == digest) {
            return;
        }
        let cancel = CancellationToken::new();
        if let Some((_, old)) = self.steps.insert(at, (digest.clone(), cancel.clone())) {
            old.cancel();
        }
        let judge = Arc::clone(judge);
        self.open.push(Box::pin(async move {
            let verdict = judge.check(&subject, &cancel).await;
            let command = Command::Moderated { at, digest, verdict };
            (!cancel.is_cancelled()).then(|| Input::new(command))
        }));
    }

    /// Drops questions about steps that nobody waits for any more.
    pub(crate) fn keep(&mut self, wanted: &BTreeSet<StepAt>) {
        self.steps.retain(|at, (_, cancel)| {
            let keep = wanted.contains(at);
            if !keep {
                cancel.cancel();
            }
            keep
        });
    }

    /// Holds a result back until it is judged.
    pub(crate) fn hold(&mut self, input: Input, subject: Subject, judge: &Arc<Judge>) {
        self.letters.extend(input.letter);
        self.results += 1;
        let judge = Arc::clone(judge);
        self.open.push(Box::pin(async move { Some(judged(input, &subject, &judge).await) }));
    }

    /// Waits for the next answer, and keeps it.
    pub(crate) async fn next(&mut self) {
        if let Some(Some(input)) = self.open.next().await {
            self.answered.push(input);
        }
    }

    /// The answers so far.
    pub(crate) fn take(&mut self) -> Vec<Input> {
        let answered = std::mem::take(&mut self.answered);
        for input in &answered {
            if let Command::Moderated { at, digest, .. } = &input.command
                && self.steps.get(at).is_some_and(|(asked, _)| asked == digest)
            {
                self.steps.remove(at);
            }
            if let Some(letter) = input.letter {
                self.letters.remove(&letter);
            }
            self.results -= usize::from(matches!(input.command, Command::Checked { .. }));
        }
        answered
    }

    /// Nothing is asked any more.
    pub(crate) fn stop(&mut self) {
        *self = Judging::default();
    }
}

/// A result with its verdict.
pub(crate) async fn judged(input: Input, subject: &Subject, judge: &Judge) -> Input {
    let verdict = judge.check(subject, &CancellationToken::new()).await;
    let command = Command::Checked { command: Box::new(input.command), verdict };
    Input { command, ..input }
}
