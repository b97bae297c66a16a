//! How far a dispatch has come: what stays when it is stopped at any moment.
//!
//! INVARIANT: what was spent is never told too low. A turn that was sent and whose
//! figures are not whole makes the cost unknown; one that was turned away cost nothing.

use super::capture::Capture;
use super::draft::{Counted, Draft};
use crate::limits::OUTPUT_TOKENS_LEAST;
use sluice_core::money::Money;
use sluice_core::port::adapter::{Request, Usage};
use sluice_govern::account::{Costing, Tokens, bill, worst};

/// How far it has come.
#[derive(Debug)]
pub(super) struct Progress {
    /// The turn that is under way, or the last one.
    pub(super) draft: Draft,
    /// What is kept of it all.
    pub(super) capture: Capture,
    /// Whether a turn was sent whose figures are still to come.
    open: bool,
    total: Counted,
    model: Option<String>,
    requests: u32,
    /// Whether an earlier turn has said something.
    pub(super) spoke: bool,
    /// Whether what the turn said is still to be kept.
    unkept: bool,
}

impl Progress {
    /// At the beginning.
    pub(super) fn new() -> Progress {
        Progress {
            draft: Draft::default(),
            capture: Capture::new(),
            open: false,
            total: Counted { whole: true, ..Counted::default() },
            model: None,
            requests: 0,
            spoke: false,
            unkept: false,
        }
    }

    /// The number of the next request, from 1.
    pub(super) fn number(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }

    /// A turn is about to be sent.
    pub(super) fn begin(&mut self) {
        self.spoke |= !self.draft.text.is_empty();
        self.draft = Draft::default();
        self.open = true;
        self.unkept = true;
    }

    /// Keeps what the turn has said, once.
    pub(super) fn keep(&mut self) {
        if !std::mem::take(&mut self.unkept) {
            return;
        }
        self.capture.make(&std::mem::take(&mut self.draft.made));
        if !self.draft.text.is_empty() {
            self.capture.say("assistant", &self.draft.text, None);
        }
    }

    /// The turn was turned away: nothing was done for it.
    pub(super) fn turned_away(&mut self) {
        self.open = false;
    }

    /// The turn is over, well or badly: its figures are added to the others.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.open) {
            self.total = sum(self.total, self.draft.counted);
        }
        if self.draft.model.is_some() {
            self.model.clone_from(&self.draft.model);
        }
    }

    /// What all of it took.
    pub(super) fn usage(&mut self) -> Usage {
        self.settle();
        Usage {
            model: self.model.clone(),
            input_tokens: self.total.input,
            output_tokens: self.total.output,
            thinking_tokens: self.total.thinking,
            cached_tokens: self.total.cached,
            cost: Money::ZERO,
            unpriced: true,
            unknown: !self.total.whole,
        }
    }

    /// How long the next answer may be so that all of it stays under what was
    /// reserved; an error in words if no answer is short enough.
    pub(super) fn afford(
        &self,
        request: &Request,
        input_tokens: u64,
        wanted: Option<u64>,
    ) -> Result<Option<u64>, String> {
        let (Some(price), Some(ceiling)) = (&request.price, request.ceiling) else {
            return Ok(wanted);
        };
        if !self.total.whole {
            return Err("the provider does not say what the turns before have cost, so that \
                        nobody knows what is left of the ceiling"
                .to_owned());
        }
        let spent = bill(price, tokens(self.total));
        let left = ceiling.micro_cents().saturating_sub(spent.micro_cents());
        let left = Money::from_micro_cents(left);
        let costing = Costing::Priced { price, input_tokens, max_output_tokens: wanted };
        let next = worst(costing, Some(left), None).max_output_tokens;
        let least = wanted.unwrap_or(OUTPUT_TOKENS_LEAST).min(OUTPUT_TOKENS_LEAST);
        match next {
            Some(most) if most < least => Err(format!(
                "another turn of the model could pass the ceiling of ${ceiling}, of which ${spent} \
                 is spent: declare a higher `max_cost_cents` on the step"
            )),
            next => Ok(next),
        }
    }
}

fn tokens(counted: Counted) -> Tokens {
    Tokens {
        input: counted.input,
        cached: counted.cached,
        output: counted.output.saturating_add(counted.thinking),
    }
}

fn sum(one: Counted, other: Counted) -> Counted {
    Counted {
        input: one.input.saturating_add(other.input),
        cached: one.cached.saturating_add(other.cached),
        output: one.output.saturating_add(other.output),
        thinking: one.thinking.saturating_add(other.thinking),
        whole: one.whole && other.whole,
    }
}

#[cfg(test)]
mod tests;
