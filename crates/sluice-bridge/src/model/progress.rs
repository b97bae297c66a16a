//! State of a dispatch that remains when the dispatch is stopped at any moment.
//!
//! INVARIANT: the reported cost is never too low. A turn that was sent and has
//! incomplete token counts makes the cost unknown; a rejected turn costs nothing.

use super::capture::Capture;
use super::draft::{TokenCounts, TurnDraft};
use crate::limits::OUTPUT_TOKENS_LEAST;
use sluice_core::money::Money;
use sluice_core::port::adapter::{Request, Usage};
use sluice_govern::account::{Costing, Tokens, bill, worst};

#[derive(Debug)]
pub(super) struct Progress {
    /// The current turn, or the last one.
    pub(super) draft: TurnDraft,
    pub(super) capture: Capture,
    /// Whether the token counts of the sent turn are not added yet.
    open: bool,
    total: TokenCounts,
    model: Option<String>,
    requests: u32,
    /// Whether an earlier turn produced text.
    pub(super) spoke: bool,
    /// Whether the turn's text is not captured yet.
    unkept: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            draft: TurnDraft::default(),
            capture: Capture::new(),
            open: false,
            total: TokenCounts { whole: true, ..TokenCounts::default() },
            model: None,
            requests: 0,
            spoke: false,
            unkept: false,
        }
    }

    /// Returns the number of the next request, from 1.
    pub(super) fn next_request_number(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }

    /// Starts a turn.
    pub(super) fn begin_turn(&mut self) {
        self.spoke |= !self.draft.text.is_empty();
        self.draft = TurnDraft::default();
        self.open = true;
        self.unkept = true;
    }

    /// Captures the turn's text and files, once.
    pub(super) fn capture_turn(&mut self) {
        if !std::mem::take(&mut self.unkept) {
            return;
        }
        self.capture.add_files(&std::mem::take(&mut self.draft.made));
        if !self.draft.text.is_empty() {
            self.capture.add_message("assistant", &self.draft.text, None);
        }
    }

    /// The provider rejected the turn: it costs nothing.
    pub(super) fn reject_turn(&mut self) {
        self.open = false;
    }

    /// Ends the turn and adds its token counts to the total.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.open) {
            self.total = sum(self.total, self.draft.counted);
        }
        if self.draft.model.is_some() {
            self.model.clone_from(&self.draft.model);
        }
    }

    /// Usage of the whole dispatch.
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

    /// Output limit for the next turn that keeps the dispatch within its reservation; an
    /// error message if not even a short answer fits.
    pub(super) fn affordable_output(
        &self,
        request: &Request,
        input_tokens: u64,
        wanted: Option<u64>,
    ) -> Result<Option<u64>, String> {
        let (Some(price), Some(ceiling)) = (&request.price, request.ceiling) else {
            return Ok(wanted);
        };
        if !self.total.whole {
            return Err("the provider did not report the cost of the earlier turns, so \
                        the remaining budget of the step is unknown"
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
                "another turn of the model could exceed the ceiling of ${ceiling}, of which ${spent} \
                 is spent: set a higher `max_cost_cents` on the step"
            )),
            next => Ok(next),
        }
    }
}

fn tokens(counted: TokenCounts) -> Tokens {
    Tokens {
        input: counted.input,
        cached: counted.cached,
        output: counted.output.saturating_add(counted.thinking),
    }
}

fn sum(one: TokenCounts, other: TokenCounts) -> TokenCounts {
    TokenCounts {
        input: one.input.saturating_add(other.input),
        cached: one.cached.saturating_add(other.cached),
        output: one.output.saturating_add(other.output),
        thinking: one.thinking.saturating_add(other.thinking),
        whole: one.whole && other.whole,
    }
}

#[cfg(test)]
mod tests;
