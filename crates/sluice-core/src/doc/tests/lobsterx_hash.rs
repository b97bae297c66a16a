//! The plan's hash: equal for the same meaning, different for any other.

use super::{Script, lobsterx_plan::FULL};
use expect_test::expect;
use std::collections::BTreeMap;

fn hash(text: &str) -> String {
    Script::lobsterx(text).plan().hash()
}

/// If this changes, the hash of every stored plan changes.
#[test]
fn the_hash_of_a_full_document_is_pinned() {
    expect!["d5d25d9679adc3128f22b5bf7223f1eeee81d4c8075ef624afbd36261c77b185"]
        .assert_eq(&hash(FULL));
}

#[test]
fn every_change_of_meaning_changes_the_hash() {
    let changes = [
        ("name: full-document", "name: full-documents"),
        ("version: 3", "version: 4"),
        ("version: 3", ""),
        ("everything at once", "everything"),
        ("who: {type: string, required: true", "who: {type: string, required: false"),
        ("who: {type: string, required: true", "who: {required: true"),
        ("whom to ask", "who to ask"),
        ("default: 2, enum", "default: 1, enum"),
        ("enum: [1, 2, 3]", "enum: [1, 2]"),
        ("does the work", "does work"),
        ("required_skills: [reading]", "required_skills: [writing]"),
        ("max_spend_cents: 12.5", "max_spend_cents: 12"),
        ("allowed_environments: [prod]", "allowed_environments: [prod, test]"),
        ("accepted_source_classes: [crm]", "accepted_source_classes: [web]"),
        ("max_age_s: 60", "max_age_s: 61"),
        ("name: Early", "name: Earlier"),
        ("name: Early}, late]", "name: Early}]"),
        ("defaults: {model: small}", "defaults: {model: tiny}"),
        ("budget: {max_cost_cents: 500}", "budget: {max_cost_cents: 501}"),
        ("timeout: 1h", "timeout: 2h"),
        ("timeout: 1h", ""),
        ("max_parallel: 8", "max_parallel: 9"),
        ("scheduling: waves", "scheduling: eager"),
        ("recovery: {max: 2, after: 5m}", "recovery: {max: 3, after: 5m}"),
        ("recovery: {max: 2, after: 5m}", "recovery: {max: 2, after: 6m}"),
        ("result: \"${risk}\"", "result: \"${list}\""),
        ("result: \"${risk}\"", "answer: \"${risk}\""),
        ("- id: ada", "- id: eve"),
        ("agent: agent_one", "agent: agent_two"),
        ("role: lead", "role: follow"),
        ("lane: 1", "lane: 2"),
        ("sort_order: 2", "sort_order: 3"),
        ("is_active: false", "is_active: true"),
        ("allow_tools: [a]", "allow_tools: [a, c]"),
        ("deny_tools: [b]", "deny_tools: []"),
        ("requires_approval: true", "requires_approval: false"),
        ("support_level: high", "support_level: low"),
        ("be brief", "be long"),
        ("memory_profile: long", "memory_profile: none"),
        ("failure_policy: {mode: halt}", "failure_policy: {mode: isolate}"),
        ("order: lane", "order: id"),
        ("quorum: 7", "quorum: 6"),
        ("attempts: 8", "attempts: 9"),
        ("role: clerk\n", "agent: clerk\n"),
        ("look up ${args.who}", "look for ${args.who}"),
        ("risk: {type: string, enum: [low, high]", "risk: {type: string, enum: [low]"),
        ("how bad", "how good"),
        ("{type: integer, minimum: 1", "{type: number, minimum: 1"),
        ("minimum: 1", "minimum: 2"),
        ("maximum: 9", "maximum: 8"),
        ("required: false, minLength", "minLength"),
        ("minLength: 1", "minLength: 2"),
        ("maxLength: 80", "maxLength: 81"),
        ("^[a-z]", "^[a-y]"),
        ("properties: {deep: string}", "properties: {deep: integer}"),
        ("required: [deep]", "required: []"),
        ("outputs.list.length > 0", "outputs.list.length > 1"),
        ("timeout: 90s", "timeout: 91s"),
        ("attempts: 4", "attempts: 5"),
        ("backoff_ms: 100", "backoff_ms: 101"),
        ("max_backoff_ms: 900", "max_backoff_ms: 901"),
        ("retry_on: [timeout]", "retry_on: [rate_limit]"),
        ("parallel_failure_policy: fail_fast", "parallel_failure_policy: wait_all"),
        ("phase: early", "phase: late"),
        ("model: large", "model: huge"),
        ("tools: [search]", "tools: [find]"),
        ("capabilities: [gpu]", "capabilities: [cpu]"),
        ("max_output_tokens: 1000", "max_output_tokens: 1001"),
        ("max_cost_cents: 25", "max_cost_cents: 25.1"),
        ("moderation: both", "moderation: input"),
        ("memory: short", "memory: shorter"),
        ("workflow_ref: ", "depends_on: [ask]\n        workflow_ref: "),
        ("approvers: [ada]", "approvers: [bob]"),
        ("quorum: 2", "quorum: 3"),
        ("not_initiator: true", "not_initiator: false"),
        ("expires_in: 2d", "expires_in: 3d"),
        ("risk is ${gather", "risks are ${gather"),
        ("covers_retries: true", "covers_retries: false"),
        ("agent: shell", "agent: bash"),
        ("echo \"${item}\"", "echo \"${index}\""),
        ("items: $gather.outputs.list", "items: [1, 2]"),
        ("items: $gather.outputs.list", "items: $gather.list"),
        ("max_parallel: 3", "max_parallel: 4"),
        ("max_items: 50", "max_items: 51"),
        ("$ask.approved == true", "$ask.approved == false"),
        ("on_failure: skip", "on_failure: halt"),
        ("on_failure: skip", "on_failure: retry"),
        ("on_failure: skip", "on_failure: retry_once"),
        ("on_failure: skip", "on_failure: retry_once_then_escalate"),
        ("on_parent_failure: skip", "on_parent_failure: substitute_default"),
        ("stdin: $gather.stdout", "stdin: $gather.json"),
        ("cwd: work", "cwd: play"),
        ("MODE: fast", "MODE: slow"),
        ("MODE: fast", "MODES: fast"),
        ("idempotent: false", "idempotent: true"),
        ("other-flow@7", "other-flow@8"),
        ("other-flow@7", "other-flow"),
        ("other-flow@7", "another-flow@7"),
        ("text: \"${gather.outputs.risk}\"", "text: \"${gather.outputs.note}\""),
        ("fixed: [1, {deep: true}]", "fixed: [1, {deep: false}]"),
        ("gather.note, spread.stdout", "spread.stdout, gather.note"),
        ("spread.stdout], type: string", "spread.stdout], type: number"),
        ("default: none}", "default: some}"),
        ("merge: concat", "merge: array"),
        ("reask: 2", "reask: 3"),
        ("- id: child", "- id: kid"),
    ];
    let mut seen = BTreeMap::from([(hash(FULL), ("", ""))]);
    for change in changes {
        assert!(FULL.contains(change.0), "{change:?}");
        let changed = FULL.replacen(change.0, change.1, 1);
        // A default must fit its type, so the two change together.
        let changed = changed.replace("type: number, default: none", "type: number, default: 1");
        let earlier = seen.insert(hash(&changed), change);
        assert_eq!(earlier, None, "{change:?} has the hash of another document");
    }
}

#[test]
fn spelling_does_not_change_the_hash() {
    let original = hash(FULL);
    for (from, to) in [
        ("timeout: 90s", "timeout: 90 # seconds"),
        ("timeout: 90s", "timeout: 1.5m"),
        ("timeout: 90s", "timeout: \"90\""),
        ("timeout: 1h", "timeout: 3600"),
        ("max_cost_cents: 500", "max_cost_cents: 500.0"),
        ("max_cost_cents: 500", "max_cost_cents: 5e2"),
        ("command: look up ${args.who}", "command: \"look \\u0075p ${args.who}\""),
        ("command: look up ${args.who}", "command: >-\n          look\n          up ${args.who}"),
        ("tools: [search]", "tools:\n          - search"),
        ("tools: [search]", "\"tools\": [\"search\",]"),
        ("tools: [search]", "tools: &t [search]"),
        (
            "phases: [{id: early, name: Early}, late]",
            "phases: [{name: Early, id: early}, {id: late}]",
        ),
        (
            "phases: [{id: early, name: Early}, late]",
            "phases: [{id: early, name: Early}, {id: late, name: late}]",
        ),
        ("depends_on: [gather]\n", "depends_on: [gather, gather]\n"),
        ("        depends_on: [gather]\n        approval", "        approval"),
        (
            "for_each: {items: $gather.outputs.list, max_parallel: 3, max_items: 50}",
            "for_each: $gather.outputs.list\n        max_items: 50\n        max_parallel: 3",
        ),
        ("defaults: {model: small}", "defaults: {timeout: , model: small}"),
        ("on_failure: skip", "on_failure: continue"),
        (
            "who: {type: string, required: true, description: whom to ask}",
            "who: {description: whom to ask, required: true, type: string}",
        ),
        ("quorum: 2", "required: true\n          quorum: 2"),
        ("{deep: string}", "{deep: {type: string}}"),
        ("command: echo", "depends_on: [ask]\n        command: echo"),
    ] {
        assert!(FULL.contains(from), "{from}");
        let changed = FULL.replacen(from, to, 1);
        assert_eq!(hash(&changed), original, "{to}");
    }
}

#[test]
fn yaml_and_json_and_key_order_have_one_hash() {
    let text = super::dedent(FULL);
    let mut problems = crate::diagnostic::Problems::default();
    let root = crate::yaml::parse(&text, &mut problems).expect("the document is YAML");
    let json = root.to_value();
    let original = hash(FULL);
    assert_eq!(hash(&json.to_string()), original);
    assert_eq!(hash(&serde_json::to_string_pretty(&json).expect("it is JSON")), original);
    assert_eq!(hash(&serde_json::to_string(&reversed(&json)).expect("it is JSON")), original);
}

/// The same value, the keys of every map in the opposite order.
fn reversed(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
        Value::Object(map) => Value::Object(
            map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect(),
        ),
        other => other.clone(),
    }
}

#[test]
fn aliases_mean_what_they_repeat() {
    let plain = "
        name: tiny
        steps:
          - {id: one, command: go, retry: {attempts: 3}, env: {A: 1.10, B: 7}}
          - {id: two, command: go, retry: {attempts: 3}, env: {A: 1.10, B: 7}}
          - {id: three, command: go, env: {B: 7}}
        ";
    let aliased = "
        name: tiny
        steps:
          - {id: one, command: &c go, retry: &r {attempts: 3}, env: &e {A: 1.10, B: &n 7}}
          - {id: two, command: *c, retry: *r, env: *e}
          - {id: three, command: *c, env: {B: *n}}
        ";
    assert_eq!(hash(plain), hash(aliased));
}

#[test]
fn defaults_and_repetition_have_one_hash() {
    let shared = "
        name: tiny
        defaults: {timeout: 90s, model: m}
        steps: [{id: one, command: go}, {id: two, command: go, model: n}]
        ";
    let repeated = "
        name: tiny
        steps: [{id: one, command: go, timeout: 90, model: m}, {id: two, command: go, timeout: 90, model: n}]
        ";
    assert_eq!(hash(shared), hash(repeated));
}
