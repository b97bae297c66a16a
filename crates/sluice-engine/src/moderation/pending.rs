//! Open moderator checks of a loaded run: inputs of its steps, and results that
//! arrived as messages.
//!
//! A message stays in the durable mailbox until its result is checked, so that after a
//! crash it is read and checked again.

use crate::moderation::ask::ModeratorClient;
use crate::turn::TurnInput;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use sluice_core::journal::event::StepAt;
use sluice_core::port::moderator::Subject;
use sluice_core::port::store::MessageId;
use sluice_core::run::command::Command;
use sluice_core::run::state::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Open checks, and results of checks that wait for the next turn.
#[derive(Default)]
pub(crate) struct PendingModeration {
    open: FuturesUnordered<BoxFuture<'static, Option<TurnInput>>>,
    answered: Vec<TurnInput>,
    /// Checks of step inputs, each with the digest of its text.
    steps: BTreeMap<StepAt, (String, CancellationToken)>,
    messages: BTreeSet<MessageId>,
    /// Number of withheld results.
    results: usize,
}

impl PendingModeration {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a result is withheld: it exists only in this process, so the run must stay
    /// loaded.
    pub(crate) fn withholds_results(&self) -> bool {
        self.results > 0
    }

    /// Whether a message is withheld.
    pub(crate) fn holds(&self, message: MessageId) -> bool {
        self.messages.contains(&message)
    }

    /// Whether results of checks wait for the next turn.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answered.is_empty()
    }

    /// Checks the inputs of a step, unless that check is already open.
    pub(crate) fn check_input(&mut self, run: &Run, at: StepAt, moderator: &Arc<ModeratorClient>) {
        let Some((digest, subject)) = run.input_subject(at) else { return };
        if self.steps.get(&at).is_some_and(|(open, _)| *open == digest) {
            return;
        }
        let cancel = CancellationToken::new();
        if let Some((_, old)) = self.steps.insert(at, (digest.clone(), cancel.clone())) {
            old.cancel();
        }
        let moderator = Arc::clone(moderator);
        self.open.push(Box::pin(async move {
            let verdict = moderator.check(&subject, &cancel).await;
            let command = Command::Moderated { at, digest, verdict };
            (!cancel.is_cancelled()).then(|| TurnInput::new(command))
        }));
    }

    /// Cancels checks of steps that are not in `wanted`.
    pub(crate) fn retain_steps(&mut self, wanted: &BTreeSet<StepAt>) {
        self.steps.retain(|at, (_, cancel)| {
            let keep = wanted.contains(at);
            if !keep {
                cancel.cancel();
            }
            keep
        });
    }

    /// Withholds a result until it is checked.
    pub(crate) fn withhold(
        &mut self,
        input: TurnInput,
        subject: Subject,
        moderator: &Arc<ModeratorClient>,
    ) {
        self.messages.extend(input.message.as_ref().map(|read| read.id));
        self.results += 1;
        let moderator = Arc::clone(moderator);
        self.open.push(Box::pin(async move { Some(moderate(input, &subject, &moderator).await) }));
    }

    /// Waits for the next finished check, and stores it.
    pub(crate) async fn next(&mut self) {
        if let Some(Some(input)) = self.open.next().await {
            self.answered.push(input);
        }
    }

    /// Takes the finished checks.
    pub(crate) fn take_answers(&mut self) -> Vec<TurnInput> {
        let answered = std::mem::take(&mut self.answered);
        for input in &answered {
            if let Command::Moderated { at, digest, .. } = &input.command
                && self.steps.get(at).is_some_and(|(open, _)| open == digest)
            {
                self.steps.remove(at);
            }
            if let Some(read) = &input.message {
                self.messages.remove(&read.id);
            }
            self.results -= usize::from(matches!(input.command, Command::Checked { .. }));
        }
        answered
    }

    /// Drops all checks.
    pub(crate) fn stop(&mut self) {
        *self = PendingModeration::default();
    }
}

/// Checks a result and attaches the verdict.
pub(crate) async fn moderate(
    input: TurnInput,
    subject: &Subject,
    moderator: &ModeratorClient,
) -> TurnInput {
    let verdict = moderator.check(subject, &CancellationToken::new()).await;
    let command = Command::Checked { command: Box::new(input.command), verdict };
    TurnInput { command, ..input }
}
