//! Costs that dispatches report: priced, checked, and booked even if they come late.

use crate::journal::event::{StepAt, StepEvent};
use crate::limits::{COST_MICRO_CENTS_MAX, TOKENS_MAX};
use crate::port::adapter::Usage;
use crate::run::decide::draft::Draft;
use crate::run::decide::draft::costs::{alert, counted, usd};
use serde_json::json;
use sluice_govern::account::{self, Tokens};
use sluice_govern::registry::Price;

/// Books the cost in a late answer to a dispatch that was abandoned. Returns whether
/// there was one to book.
pub(super) fn reconcile(draft: &mut Draft<'_>, at: StepAt, dispatch_no: u32, usage: Usage) -> bool {
    let open = draft.run.open.get(&(at, dispatch_no));
    let open = open.filter(|open| !usage.unknown && draft.given.now_ms < open.until_ms);
    let Some(open) = open else { return false };
    let usage = charged(usage, open.terms.price.as_ref());
    if !open.is_reserved() && counted(&usage) == [0; 3] {
        return false;
    }
    let usage = plausible(draft, at, usage);
    if usage.unknown {
        // No better report will come.
        settle_unknown(draft, at, dispatch_no);
    } else {
        close_reservation(draft, at, dispatch_no, &usage);
    }
    true
}

/// Books everything that was reserved for a dispatch whose cost was not reported.
pub(crate) fn settle_unknown(draft: &mut Draft<'_>, at: StepAt, dispatch_no: u32) {
    let reserved = draft.run.open.get(&(at, dispatch_no)).map(|open| open.terms.reserved);
    let usage = Usage { cost: reserved.unwrap_or_default(), ..Usage::default() };
    close_reservation(draft, at, dispatch_no, &usage);
}

fn close_reservation(draft: &mut Draft<'_>, at: StepAt, dispatch_no: u32, usage: &Usage) {
    let Some(open) = draft.run.open.get(&(at, dispatch_no)).cloned() else { return };
    draft.record(at, StepEvent::Reconciled { dispatch_no, usage: usage.clone() });
    draft.book(at, dispatch_no, &open.terms, usage);
}

/// The usage of the dispatch in flight, priced and checked.
pub(super) fn reported_usage(draft: &mut Draft<'_>, at: StepAt, usage: Usage) -> Usage {
    let terms = draft.run.in_flight_terms(at);
    let usage = charged(usage, terms.and_then(|terms| terms.price.as_ref()));
    plausible(draft, at, usage)
}

/// Replaces figures that cannot be true by an unknown usage, with an alert.
fn plausible(draft: &mut Draft<'_>, at: StepAt, usage: Usage) -> Usage {
    let tokens = usage.input_tokens.max(usage.output_tokens).max(usage.thinking_tokens);
    if usage.cost.micro_cents() <= COST_MICRO_CENTS_MAX && tokens <= TOKENS_MAX {
        return usage;
    }
    draft.emit(alert(json!({
        "kind": "figures_refused", "node": draft.run.name(at),
        "cost": usd(usage.cost), "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens, "thinkingTokens": usage.thinking_tokens,
    })));
    Usage { model: usage.model, ..Usage::unknown() }
}

/// Computes the cost of tokens by the pinned price, where the provider did not report
/// one. Without a price the cost stays as it is.
fn charged(usage: Usage, price: Option<&Price>) -> Usage {
    if !usage.unpriced {
        return usage;
    }
    let tokens = Tokens {
        input: usage.input_tokens,
        cached: usage.cached_tokens,
        output: usage.output_tokens.saturating_add(usage.thinking_tokens),
    };
    let cost = price.map_or(usage.cost, |price| account::bill(price, tokens));
    Usage { cost, unpriced: false, ..usage }
}
