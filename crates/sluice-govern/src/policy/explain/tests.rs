//! Explanations of decisions about values.

use super::*;
use crate::decision::Disposition;
use crate::policy::DEFAULT;
use serde_json::{Value, json};

const REFUNDS: &str = r#"// Two limits.

@id("approve")
@action("require_approval")
@description("Refunds over 500 need an approval")
forbid (principal, action == Action::"use_tool", resource == Tool::"shop.refund")
unless {
    context.call.amount has number
    && context.call.amount.number.lessThanOrEqual(decimal("500.0"))
};

@id("too-much")
@description("Nobody refunds more than 5,000")
forbid (principal, action == Action::"use_tool", resource == Tool::"shop.refund")
when {
    context.call.amount has number
    && context.call.amount.number.greaterThan(decimal("5000.0"))
};

@id("watch")
@enforcement("audit")
forbid (principal, action == Action::"use_tool", resource)
when { context.call.all.seen.contains("stranger") && !context.flow.origins.contains("shop") };
"#;

fn set(text: &str) -> Policies {
    let files = [("refunds.cedar", text), DEFAULT].map(|(name, text)| (name.into(), text.into()));
    Policies::load(&files).unwrap()
}

fn call(amount: impl Into<Value>) -> PolicyFacts<'static> {
    let facts = json!({
        "at": 5, "verb": "use_tool",
        "who": {"agent": {
            "name": "clerk", "trust": 5, "phase": "production", "status": "running",
        }},
        "what": {"tool": "shop.refund"},
        "run": {"id": "run_1", "workflow": "refund", "initiator": "ada"},
        "tool": {"server": "shop", "roles": {"amount": "amount"}},
        "flow": {"origins": ["web"]},
        "call": {"arguments": {"amount": {"seen": ["stranger"], "origins": ["web"]}}},
        "input": {"amount": amount.into(), "order": {"id": "o-1"}},
    });
    serde_json::from_value(facts).unwrap()
}

fn policy<'e>(explained: &'e Explanation, id: &str) -> &'e ExplainedRule {
    explained.policies.iter().find(|one| one.policy.ends_with(id)).unwrap()
}

#[test]
fn a_block_names_the_policy_its_text_and_the_values_that_it_read() {
    let explained = set(REFUNDS).explain(&call("7000.50"));
    assert_eq!(explained.replayed.disposition, Disposition::Block);
    assert_eq!(explained.policies.len(), 3);
    let found = policy(&explained, "/too-much");
    assert_eq!((found.file.as_str(), found.line), ("refunds.cedar", 12));
    assert!(found.decides && found.matched && found.text.starts_with("@id(\"too-much\")"));
    assert_eq!(found.text.lines().count(), 7);
    let path = "context.call.amount.number".to_owned();
    assert_eq!(found.values, [ReadValue { path, value: Some(json!(7000.5)) }]);
    assert_eq!(
        json!(found.arguments),
        json!([{
            "argument": "amount", "value": "7000.50",
            "role": "amount", "seen": ["stranger"], "origins": ["web"],
        }])
    );
    assert_eq!(found.hint.as_deref(), Some("`context.call.amount.number` at most 5000"));
    let holds: Vec<_> = found.conditions.iter().map(|one| one.holds).collect();
    assert_eq!(holds, [Some(true), Some(true)]);
}

#[test]
fn a_limit_that_is_an_exception_says_what_it_would_take() {
    let explained = set(REFUNDS).explain(&call(501));
    assert_eq!(explained.replayed.disposition, Disposition::Hold);
    let found = policy(&explained, "/approve");
    let hint = "`context.call.amount.number.lessThanOrEqual(decimal(\"500.0\"))`";
    assert_eq!(found.hint.as_deref(), Some(hint));
    assert!(!explained.policies.iter().any(|one| one.policy.ends_with("/too-much")));
    // What has no number cannot be compared.
    let explained = set(REFUNDS).explain(&call("a lot"));
    let found = policy(&explained, "/approve");
    assert!(found.hint.as_deref().unwrap().starts_with("`context.call.amount has number && "));
    assert_eq!(found.values[0].value, None);
}

#[test]
fn a_policy_that_only_observes_is_explained_and_decides_nothing() {
    let explained = set(REFUNDS).explain(&call(7));
    assert_eq!(explained.replayed.disposition, Disposition::Allow);
    let [found] = &explained.policies[..] else { panic!("{:?}", explained.policies) };
    assert!(found.matched && !found.decides && found.reads_flow && found.hint.is_none());
    let names: Vec<&str> = found.arguments.iter().map(|one| one.argument.as_str()).collect();
    assert_eq!(names, ["amount", "order", "order.id"]);
    assert_eq!(found.arguments[2].value, Some(json!("o-1")));
}

#[test]
fn without_a_permit_the_permits_say_what_they_ask() {
    let permits =
        "@id(\"steps\") permit (principal, action == Action::\"dispatch_step\", resource);
        @id(\"trusted\") permit (principal is Agent, action == Action::\"use_tool\", resource)
        when { principal.trust_level >= 8 };";
    let set = Policies::load(&[("p.cedar".to_owned(), permits.to_owned())]).unwrap();
    let explained = set.explain(&call(7));
    assert_eq!(explained.replayed.because.as_deref(), Some("no policy permits it"));
    let [found] = &explained.policies[..] else { panic!("{:?}", explained.policies) };
    assert!(found.permits && !found.matched);
    assert_eq!(found.hint.as_deref(), Some("`principal.trust_level >= 8`"));
    assert_eq!(json!(found.values), json!([{"path": "principal.trust_level", "value": 5}]));
}

#[test]
fn a_policy_about_history_lists_its_facts_and_misses_those_that_were_not_recorded() {
    let rule = "@id(\"often\") @action(\"require_approval\")
        forbid (principal, action == Action::\"use_tool\", resource == Tool::\"shop.refund\")
        when { context.call.amount has number }
        when temporal agent {
            count_within(1d, Action::\"use_tool\"::effective { tool: \"shop.refund\" }) > 3
        };";
    let set = set(rule);
    let mut facts = call(7);
    assert!(set.misses_values(&facts));
    let name = "agent: count_within(1d, \
                Action::\"use_tool\"::effective { tool: \"shop.refund\" })";
    let recorded = json!({name: 4});
    facts.history = serde_json::from_value(recorded).unwrap();
    assert!(!set.misses_values(&facts));
    let explained = set.explain(&facts);
    assert_eq!(explained.replayed.disposition, Disposition::Hold);
    let found = policy(&explained, "/often");
    let values = json!([
        {"path": "context.call.amount.number", "value": 7},
        {"path": name, "value": 4},
    ]);
    assert_eq!(json!(found.values), values);
    assert!(found.hint.as_deref().unwrap().contains("another value of `agent: count_within"));
}
