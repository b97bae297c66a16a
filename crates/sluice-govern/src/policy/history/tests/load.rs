//! Policies with clauses about history: which are refused, and when the others match.

use super::conditions::Values;

use crate::catalog::{Catalog, ServerDeclaration, ToolDeclaration};
use crate::decision::Disposition;
use crate::policy::history::{HistoryScope, UNIT};
use crate::policy::{DEFAULT, Policies, PolicyFacts, replay};
use serde_json::json;

fn load(policy: &str) -> Result<Policies, Vec<String>> {
    let files = [(DEFAULT.0, DEFAULT.1), ("own", policy)];
    Policies::load(&files.map(|(name, text)| (name.to_owned(), text.to_owned())))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn refused(condition: &str) -> String {
    let policy = format!(
        "@id(\"x\")\nforbid (principal, action == Action::\"use_tool\", resource)\nwhen temporal {condition};"
    );
    load(&policy).unwrap_err().join("\n")
}

#[test]
fn a_bad_clause_is_refused_with_its_line_and_a_suggestion() {
    for (condition, expected) in [
        (
            r#"{ formerly Action::"use_tool"::response {} }"#,
            "own:3: a window is missing: add `within 1h` before the condition",
        ),
        (
            r#"{ formerly within 400d Action::"use_tool"::response {} }"#,
            "own:3: a window of 400d is too long: the longest is 31d",
        ),
        (
            r#"{ formerly within 0s Action::"use_tool"::response {} }"#,
            "own:3: a window of 0d is empty: the shortest is 1s",
        ),
        (
            r#"{ formerly within 1h Action::"use_tool"::respond {} }"#,
            "own:3: event kind \"respond\" is not one of request, allowed, denied, response, \
             error, effective; did you mean \"response\"?",
        ),
        (
            "{\n formerly within 1h\n Action::\"use_tool\"::response { lable: \"pays\" } }",
            "own:3: field \"lable\" is not one of tool, server, label, step, agent, amount; \
             did you mean \"label\"?",
        ),
        (
            r#"{ formerly within 1h Action::"pay"::response {} }"#,
            "own:3: there are no events of Action::\"pay\": expected Action::\"use_tool\" or \
             Action::\"dispatch_step\"",
        ),
        (
            r#"{ count_within(1h, Action::"use_tool"::response {}) < 0 }"#,
            "own:3: the policy can never match: no value of run: count_within(1h, \
             Action::\"use_tool\"::response { }) passes",
        ),
        (
            r#"{ count_within(1h, Action::"use_tool"::response {}) >= 0 }"#,
            "own:3: a count is always >= 0",
        ),
        (
            r#"{ count_within(1h, Action::"use_tool"::response {}) > 3
                && count_within(1h, Action::"use_tool"::response {}) < 4 }"#,
            "own:3: the policy can never match: no value of run: count_within(1h, \
             Action::\"use_tool\"::response { }) passes",
        ),
        (
            r#"{ formerly within 1h Action::"use_tool"::error { tool: "a.b", server: "c" } }"#,
            "own:3: tool a.b is not of server c: no event ever matches",
        ),
        (
            r#"{ formerly within 1h Action::"use_tool"::error { tool: "a.b", tool: "a.c" } }"#,
            "own:3: tool cannot be \"a.b\" and \"a.c\": no event ever matches",
        ),
        (
            r#"{ formerly within 1h Action::"use_tool"::error { input.to: "bob" } }"#,
            "own:3: history keeps only numbers of arguments: input.to is never \"bob\"",
        ),
        (
            r#"{ context.input.amount > 3 }"#,
            "own:3: the condition is not about any event: write it in a plain `when`",
        ),
        (r#"{ n > 3 }"#, "own:3: unknown variable `n`: declare it with exists (n: Long)."),
        (
            r#"{ formerly within 1h Action::"use_tool"::error {} || true }"#,
            "own:3: there is no `||` between conditions about history: write two policies",
        ),
        (
            r#"agnet { formerly within 1h Action::"use_tool"::error {} }"#,
            "own:3: temporal: \"agnet\" is not one of run, session, agent; did you mean \"agent\"?",
        ),
        (
            r#"agent { !Action::"use_tool"::error {} since within 1h Action::"use_tool"::response {} }"#,
            "own:3: only count_within, sum_within and formerly of one event with constant fields \
             work across runs, not !Action::\"use_tool\"::error { } since within 1h \
             Action::\"use_tool\"::response { }: use `when temporal` for this run",
        ),
        ("{ formerly within 1h", "own:3: the clause has no closing `}`"),
    ] {
        assert_eq!(refused(condition), expected, "{condition}");
    }
    let inside = "@id(\"x\")\nforbid (principal, action == Action::\"use_tool\", resource)\nwhen { true && temporal { true } };";
    assert_eq!(
        load(inside).unwrap_err(),
        ["own:3: `temporal` stands right after `when` or `unless`: write a clause of its own"]
    );
    let any = "@id(\"x\")\nforbid (principal, action, resource)\nwhen temporal { formerly within 1h Action::\"use_tool\"::error {} };";
    assert_eq!(
        load(any).unwrap_err(),
        ["own:1: a policy about history names its action: action == Action::\"use_tool\" or \
          Action::\"dispatch_step\""]
    );
}

/// The view of a call of `bank.refund` by an agent.
fn call() -> PolicyFacts<'static> {
    serde_json::from_value(json!({
        "at": 0, "verb": "use_tool",
        "who": {"agent": {"name": "ada", "trust": 1, "phase": "poc", "status": "idle"}},
        "what": {"tool": "bank.refund"},
        "run": {"id": "r", "workflow": "w", "initiator": "i"},
    }))
    .unwrap()
}

fn decide(policies: &Policies, values: &[(&'static str, i128)]) -> (Disposition, Option<String>) {
    let mut facts = call();
    policies.add_history(&mut facts, Some(&Values(values.to_vec())));
    let text = serde_json::to_string(&facts).unwrap();
    let read: PolicyFacts<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, facts);
    let replayed = replay(policies, &read);
    (replayed.disposition, replayed.because)
}

const ASKS: &str = r#"
    @id("three") @action("require_approval")
    forbid (principal is Agent, action == Action::"use_tool", resource)
    when temporal agent {
        count_within(1d, Action::"use_tool"::effective { label: "refunds" }) > 3
    };
    @id("sum")
    forbid (principal, action == Action::"use_tool", resource)
    when temporal agent {
        sum_within(a, 1d, Action::"use_tool"::effective { label: "refunds", amount: a }) > 10000
    };
"#;

#[test]
fn a_clause_is_one_more_condition_of_its_policy() {
    let policies = load(ASKS).unwrap();
    assert!(policies.has_history());
    assert_eq!(policies.facts_of_agents().count(), 2);
    assert!(policies.facts_of_agents().all(|fact| fact.scope == HistoryScope::Agent));
    assert_eq!(decide(&policies, &[("count", 3)]).0, Disposition::Allow);
    assert_eq!(decide(&policies, &[("count", 4)]).0, Disposition::Hold);
    assert_eq!(decide(&policies, &[("sum", 10_000)]).0, Disposition::Allow);
    let (disposition, because) = decide(&policies, &[("count", 4), ("sum", 10_001)]);
    assert_eq!(disposition, Disposition::Block);
    assert_eq!(because.as_deref(), Some("policy own/sum forbids it"));
}

#[test]
fn a_permit_and_an_unless_depend_on_history_too() {
    let only = r#"
        permit (principal, action == Action::"dispatch_step", resource);
        permit (principal, action == Action::"change_config", resource);
        permit (principal, action == Action::"use_tool", resource)
        when temporal { formerly within 1h Action::"use_tool"::response { label: "reads" } }
        unless temporal { formerly within 1h Action::"use_tool"::error {} };
    "#;
    let policies = Policies::load(&[("own".to_owned(), only.to_owned())]).unwrap();
    assert_eq!(decide(&policies, &[]).1.as_deref(), Some("no policy permits it"));
    assert_eq!(decide(&policies, &[("reads", 1)]).0, Disposition::Allow);
    assert_eq!(decide(&policies, &[("reads", 1), ("error", 1)]).0, Disposition::Block);
}

#[test]
fn a_decision_without_the_value_is_replayed_as_a_block() {
    let policies = load(ASKS).unwrap();
    let replayed = replay(&policies, &call());
    assert_eq!(replayed.disposition, Disposition::Block);
    let because = replayed.because.unwrap();
    assert!(because.contains("the decision has no value of agent: count_within(1d,"), "{because}");
    // Another limit has the same fact.
    let stricter = load(&ASKS.replace("> 3", "> 1")).unwrap();
    let mut facts = call();
    policies.add_history(&mut facts, Some(&Values(vec![("count", 2)])));
    assert_eq!(replay(&policies, &facts).disposition, Disposition::Allow);
    assert_eq!(replay(&stricter, &facts).disposition, Disposition::Hold);
}

#[test]
fn a_shadow_sees_its_own_facts() {
    let policies = load("").unwrap().with_shadow(load(ASKS).unwrap());
    assert!(policies.has_history());
    let mut facts = call();
    policies.add_history(&mut facts, Some(&Values::default()));
    assert_eq!(facts.history.len(), 2);
    let limits: Vec<Option<i128>> =
        policies.facts_of_agents().map(|fact| fact.highest_like(0)).collect();
    assert_eq!(limits, [Some(3 * UNIT), Some(10_000 * UNIT)]);
}

#[test]
fn policies_for_other_principals_ask_for_nothing() {
    let policies =
        load(&ASKS.replace("principal is Agent", "principal == Agent::\"bob\"")).unwrap();
    let mut facts = call();
    policies.add_history(&mut facts, Some(&Values::default()));
    assert_eq!(facts.history.len(), 1);
}

#[test]
fn a_clause_names_only_what_exists() {
    let bank = ServerDeclaration {
        name: "bank".into(),
        tools: [(
            "refund".to_owned(),
            ToolDeclaration { labels: Some(vec!["refunds".into()]), ..ToolDeclaration::default() },
        )]
        .into(),
        ..ServerDeclaration::default()
    };
    let catalog = Catalog::new(&[bank], []);
    let errors = |field: &str| {
        let policy = format!(
            "forbid (principal, action == Action::\"use_tool\", resource)
            when temporal {{ formerly within 1h Action::\"use_tool\"::error {{ {field} }} }};"
        );
        let files = [(DEFAULT.0.to_owned(), DEFAULT.1.to_owned()), ("own".to_owned(), policy)];
        let loaded = Policies::load_with(&files, &catalog);
        loaded.map_or_else(
            |errors| errors.iter().map(ToString::to_string).collect(),
            |_| String::new(),
        )
    };
    for field in ["tool: \"bank.refund\"", "label: \"refunds\"", "server: \"bank\""] {
        assert_eq!(errors(field), "", "{field}");
    }
    for (field, hint) in [
        ("tool: \"bank.refnd\"", "did you mean \"bank.refund\"?"),
        ("label: \"refund\"", "did you mean \"refunds\"?"),
        ("server: \"bnk\"", "did you mean \"bank\"?"),
    ] {
        let error = errors(field);
        assert!(error.starts_with("own:1: ") && error.contains(hint), "{field}: {error}");
    }
}
