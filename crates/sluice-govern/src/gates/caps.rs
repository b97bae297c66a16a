//! The check of caps, shared by both budget gates.
//!
//! Figures are in micro-cents, messages in dollars.

use super::Finding;
use crate::case::Case;
use crate::decision::HoldBy;
use crate::facts::{Cap, CapBlock, CapGate, Worst};
use crate::money::Money;
use crate::policy::{Category, Rule};
use serde_json::{Value, json};

/// Checks the caps of one gate: none may be exceeded.
pub(super) fn judge(case: &mut Case<'_>, whose: CapGate) -> Finding {
    let facts = case.facts;
    let worst = facts.worst;
    let checked = facts.caps_of(whose).count();
    if checked == 0 {
        return Finding::pass();
    }
    let stopping: Vec<(&Cap<'_>, CapBlock)> =
        facts.caps_of(whose).filter_map(|cap| Some((cap, cap.stops(worst)?))).collect();
    let Some((tight, why)) = stopping.first() else {
        let tightest = facts.caps_of(whose).min_by_key(|cap| cap.left());
        return pass(tightest.expect("there is a cap"), checked, worst);
    };
    let (message, hint) = message(tight, *why, worst);
    let failing: Vec<Value> = stopping.iter().map(|(cap, _)| figures(cap)).collect();
    let asking = if facts.on_trial() { Vec::new() } else { case.budget_approval_rules() };
    let finding = if asking.is_empty() {
        Finding::block(message, hint)
    } else {
        case.hold_for_budget(asking.iter().map(|rule| hold(rule, &message)).collect());
        Finding::hold(message, before_approval(tight, *why))
    };
    match worst {
        Worst::Known(worst) => finding.figures([
            ("caps", checked.into()),
            ("failing", failing.into()),
            ("worst", worst.micro_cents().into()),
        ]),
        Worst::Unknown => finding.figures([("caps", checked.into()), ("failing", failing.into())]),
    }
}

fn pass(tightest: &Cap<'_>, checked: usize, worst: Worst) -> Finding {
    Finding::pass().figures([
        ("caps", checked.into()),
        ("tightest", tightest.name.as_ref().into()),
        ("amount", tightest.amount.micro_cents().into()),
        ("held", tightest.held.micro_cents().into()),
        ("worst", cost(worst).micro_cents().into()),
    ])
}

/// The cost ceiling that was compared. An unknown one is never compared.
fn cost(worst: Worst) -> Money {
    match worst {
        Worst::Known(worst) => worst,
        Worst::Unknown => Money::ZERO,
    }
}

fn figures(cap: &Cap<'_>) -> Value {
    let mut figures = json!({
        "name": cap.name,
        "amount": cap.amount.micro_cents(),
        "held": cap.held.micro_cents(),
    });
    if !cap.over.is_zero() {
        figures["over"] = json!(cap.over.micro_cents());
    }
    figures
}

/// The message and the hint.
fn message(cap: &Cap<'_>, why: CapBlock, worst: Worst) -> (String, String) {
    let name = &cap.name;
    match why {
        CapBlock::Closed => (
            format!("cap {name} is closed: {} was spent beyond the reservation", cap.over),
            format!("accept the overrun of {name}"),
        ),
        CapBlock::Unpriced => (
            format!("no price and no cost ceiling to compare with cap {name}"),
            "set max_cost_cents on the step or its agent, or a price for the model".to_owned(),
        ),
        CapBlock::Passed => (
            format!(
                "cap {name} has {} left of {}, and it may cost {}",
                cap.left(),
                cap.amount,
                cost(worst)
            ),
            format!("raise cap {name}, or set a lower max_cost_cents on the step"),
        ),
    }
}

/// What must be done before the action can be approved.
fn before_approval(cap: &Cap<'_>, why: CapBlock) -> String {
    let name = &cap.name;
    match why {
        CapBlock::Closed => format!("accept the overrun of {name} first, then approve"),
        CapBlock::Unpriced => "set a ceiling or a price first, then approve".to_owned(),
        CapBlock::Passed => format!("raise cap {name} first, then approve"),
    }
}

fn hold(rule: &Rule, message: &str) -> HoldBy {
    debug_assert_eq!(rule.category, Some(Category::Budget), "only these ask about money");
    HoldBy {
        policy: Some(rule.name.clone()),
        approvers: rule.approvers.clone(),
        quorum: rule.quorum,
        not_initiator: rule.not_initiator,
        reason: message.to_owned(),
    }
}
