use super::*;
use crate::code::Code;
use crate::doc::newest_version;
use crate::doc::setup::RowFault;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::fmt::Write as _;

const NOW: u64 = 1_700_000_000_000;

fn row(kind: Kind, name: &str, body: Value) -> Row {
    Row { kind, name: name.to_owned(), body }
}

fn agent(body: Value) -> Row {
    settle(row(Kind::Agent, "scribe", body), None, NOW).unwrap()
}

#[test]
fn settling_twice_changes_nothing() {
    for (kind, body) in [
        (Kind::Agent, json!({"trust_level": 7, "rate": {"limit": 3, "window_s": 60}})),
        (Kind::Gateway, json!({"provider": "mock", "min_trust_level": 2})),
        (Kind::Role, json!({"max_spend_cents": 12.5})),
        (Kind::Deployment, json!({"workflow": "pay"})),
        (Kind::Budget, json!({"scope": "global", "period": "daily", "amount_cents": 0.1})),
        (Kind::Price, json!({"input_cents_per_mtok": 30, "output_cents_per_mtok": 0.123456})),
        (Kind::Policy, json!({"text": "permit (principal, action, resource);"})),
        (Kind::Workflow, json!({"text": "name: pay", "format": "lobsterx"})),
        (Kind::Library, json!({"command": "x", "locked": null})),
        (Kind::Team, json!({"members": [{"id": "ada", "lane": 1}]})),
    ] {
        let written = row(kind, "one", body);
        let first = settle(written.clone(), None, NOW).unwrap();
        assert_eq!(settle(written, Some(&first), NOW + 1).unwrap(), first);
        assert_eq!(settle(first.clone(), Some(&first), NOW + 2).unwrap(), first);
    }
}

#[test]
fn what_commands_keep_is_left_alone_unless_it_is_written() {
    let paused = agent(json!({"status": "paused"}));
    let again = row(Kind::Agent, "scribe", json!({"trust_level": 9}));
    let again = settle(again, Some(&paused), NOW + 5).unwrap();
    assert_eq!(again.body["status"], "paused");
    let resumed = row(Kind::Agent, "scribe", json!({"status": "idle"}));
    assert_eq!(settle(resumed, Some(&again), NOW).unwrap().body["status"], "idle");

    let gateway = row(Kind::Gateway, "g", json!({"paused": true, "token_sha256": "ab"}));
    let after = settle(row(Kind::Gateway, "g", json!({})), Some(&gateway), NOW).unwrap();
    assert_eq!((&after.body["paused"], &after.body["token_sha256"]), (&json!(true), &json!("ab")));
}

#[test]
fn a_phase_begins_when_it_changes() {
    let poc = agent(json!({"phase": "poc"}));
    assert_eq!(poc.body["phase_since_ms"], NOW);
    let mut extended = poc.clone();
    extended.body["poc_until_ms"] = json!(NOW + 9);
    let same = row(Kind::Agent, "scribe", json!({"phase": "poc", "trust_level": 2}));
    let same = settle(same, Some(&extended), NOW + 5).unwrap();
    assert_eq!(same.body["phase_since_ms"], NOW);
    assert_eq!(same.body["poc_until_ms"], NOW + 9);
    let promoted = row(Kind::Agent, "scribe", json!({"phase": "staging"}));
    let promoted = settle(promoted, Some(&same), NOW + 7).unwrap();
    assert_eq!(promoted.body["phase_since_ms"], NOW + 7);
    assert_eq!(promoted.body.get("poc_until_ms"), None);
}

#[test]
fn a_row_that_makes_no_sense_is_not_settled() {
    let refused = settle(row(Kind::Agent, "a", json!({"trust": 3})), None, NOW).unwrap_err();
    assert!(refused.contains("unknown field `trust`"), "{refused}");
    assert!(settle(row(Kind::Agent, "a", json!(3)), None, NOW).is_err());
    assert!(settle(row(Kind::Budget, "a", json!({})), None, NOW).is_err());
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check_diff(before: &[Row], after: &[Row], expected: Expect) {
    let mut out = String::new();
    for one in diff(before, after) {
        writeln!(out, "{one} ({})", one.word()).unwrap();
    }
    expected.assert_eq(&out);
}

#[test]
fn a_diff_names_rows_and_fields() {
    let before = [
        agent(json!({"trust_level": 5, "tools": {"allow": ["mail"]}, "system_prompt": "a\nb"})),
        row(Kind::Price, "general", json!({"input_cents_per_mtok": 1})),
    ];
    let after = [
        agent(json!({"trust_level": 6, "model": "general", "tools": {"allow": ["mail", "web"]},
            "system_prompt": "a\nc"})),
        row(Kind::Gateway, "local", json!({})),
    ];
    check_diff(
        &before,
        &after,
        expect![[r#"
            - price general (removed)
            + gateway local (added)
            ~ agent scribe: trust_level 5 -> 6, system_prompt changed, tools.allow ["mail"] -> ["mail","web"], model unset -> general (changed)
        "#]],
    );
    check_diff(&before, &before, expect![""]);
}

#[test]
fn the_audit_is_told_before_and_after_but_no_long_texts() {
    let text = "x".repeat(5000);
    let rows = [row(Kind::Policy, "p.cedar", json!({"text": text, "set": "active"}))];
    let found = entries(&diff(&[], &rows), "ada", NOW);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].category, found[0].what.as_str()), ("configuration", "policy_changed"));
    assert_eq!((found[0].actor.as_str(), found[0].resource_id.as_str()), ("ada", "p.cedar"));
    assert_eq!(found[0].detail["before"], Value::Null);
    assert_eq!(found[0].detail["after"]["set"], "active");
    assert_eq!(found[0].detail["after"]["text"]["bytes"], 5000);
}

#[test]
fn a_deployment_that_changes_is_told_in_its_own_category() {
    let rows = [row(Kind::Deployment, "pay", json!({"workflow": "pay", "active": true}))];
    let found = entries(&diff(&[], &rows), "ada", NOW);
    assert_eq!((found[0].category, found[0].what.as_str()), ("deploy", "deployment_changed"));
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check_faults(rows: &[Row], expected: Expect) {
    check_found(faults(rows), &expected);
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check_cautions(rows: &[Row], expected: Expect) {
    check_found(cautions(rows), &expected);
}

fn check_found(found: Vec<RowFault>, expected: &Expect) {
    let mut out = String::new();
    for one in found {
        let (kind, path) = (one.kind.as_str(), one.path.join("."));
        writeln!(out, "{kind} {} {path} {}: {}", one.name, one.code, one.message).unwrap();
        if let Some(hint) = one.hint {
            writeln!(out, "  {hint}").unwrap();
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn rows_may_only_name_rows_that_are_there() {
    let rows = [
        row(Kind::Agent, "scribe", json!({"gateway": "locl"})),
        row(Kind::Gateway, "local", json!({"agents": ["scribe", "absent"]})),
        row(
            Kind::Deployment,
            "pay",
            json!({"workflow": "pay", "active": true, "gateway": "far",
                "roles": {"writer": "scrib", "hand": "shell", "eye": "mock"},
                "agent_gateways": {"ghost": "local"}}),
        ),
        row(
            Kind::Budget,
            "cap",
            json!({"scope": "agent", "of": "ghost", "period": "daily", "amount_cents": 1}),
        ),
        row(
            Kind::Budget,
            "flow",
            json!({"scope": "workflow", "of": "any", "period": "daily", "amount_cents": 1}),
        ),
    ];
    check_faults(
        &rows,
        expect![[r#"
            agent scribe gateway unknown_row: there is no gateway `locl`
              did you mean `local`?
            gateway local agents.1 unknown_row: there is no agent `absent`
            deployment pay gateway unknown_row: there is no gateway `far`
            deployment pay roles.writer unknown_row: there is no agent `scrib`
              did you mean `scribe`?
            deployment pay agent_gateways.ghost unknown_row: there is no agent `ghost`
            envelope cap of unknown_row: there is no agent `ghost`
        "#]],
    );
}

#[test]
fn a_workflow_may_only_name_a_team_that_is_there() {
    let flow = |name: &str, text: &str| row(Kind::Workflow, name, json!({ "text": text }));
    let rows = [
        row(Kind::Team, "desk", json!({"members": []})),
        flow("known@1", "name: known\nteam: desk\nsteps: []"),
        flow("gone@1", "name: gone\nteam: dusk\nsteps: []"),
        flow("gone@2", r#"{"name": "gone", "t\u0065am": "other", "nodes": []}"#),
        flow("own@1", "name: own\nteam: {members: [{id: dusk}]}\nsteps: []"),
        flow("none@1", "name: none\nteam: ~\nsteps: [{id: a, command: ask the team}]"),
        flow("broken@1", "team: ["),
    ];
    check_faults(
        &rows,
        expect![[r#"
        workflow gone@1 team unknown_row: there is no team `dusk`
          did you mean `desk`?
        workflow gone@2 team unknown_row: there is no team `other`
    "#]],
    );
}

#[test]
fn only_one_row_can_be_the_default() {
    let rows = [
        row(Kind::Gateway, "a", json!({"default": true})),
        row(Kind::Gateway, "b", json!({"default": false})),
        row(Kind::Gateway, "c", json!({"default": true})),
        row(Kind::Deployment, "d", json!({"workflow": "pay", "active": true})),
        row(Kind::Deployment, "e", json!({"workflow": "pay", "active": true})),
        row(Kind::Deployment, "f", json!({"workflow": "buy", "active": true})),
    ];
    check_faults(
        &rows,
        expect![[r#"
            gateway c default conflicting_rows: `a` is the default gateway too
              set `default: false` in one of them
            deployment e active conflicting_rows: `d` is the active deployment of the workflow `pay` too
              set `active: false` in one of them
        "#]],
    );
    assert!(faults(&rows).iter().all(|one| one.code == Code::ConflictingRows));
}

#[test]
fn rows_are_put_and_removed() {
    let rows = [row(Kind::Agent, "a", json!({})), row(Kind::Price, "p", json!({}))];
    let put = [row(Kind::Agent, "a", json!({"trust_level": 1})), row(Kind::Agent, "b", json!({}))];
    let after = with(&rows, &put, &[(Kind::Price, "p".to_owned())]);
    assert_eq!(after, put);
    assert_eq!(names(&after, Kind::Agent).collect::<Vec<_>>(), ["a", "b"]);
    assert!(find(&after, Kind::Price, "p").is_none());
}

#[test]
fn a_lens_keeps_its_versions_and_those_that_are_new_come_last() {
    let lens = |versions: Value| Row {
        kind: Kind::Lens,
        name: "l".to_owned(),
        body: json!({ "versions": versions }),
    };
    let there = lens(json!({"b": {"template": "x"}, "a": {"template": "y"}}));
    let written = lens(json!({"c": {"template": "z"}, "a": {"template": "y"}}));
    assert!(changed_versions(&written, Some(&there)).is_empty());
    let settled = settle(written, Some(&there), 0).unwrap();
    let ids = || settled.body["versions"].as_object().unwrap().keys().map(String::as_str);
    assert_eq!(ids().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(newest_version(ids()), Some("c"));
    assert_eq!(settle(settled.clone(), Some(&settled), 9).unwrap(), settled);
    let other = lens(json!({"a": {"template": "other"}, "b": {"template": "x"}}));
    assert_eq!(changed_versions(&other, Some(&there)), ["a"]);
    assert_eq!(newest_version(["2", "v10", "9"].into_iter()), Some("v10"));
    assert_eq!(newest_version(["2", "10", "draft"].into_iter()), Some("draft"));
}

#[test]
fn a_schedule_begins_with_its_times_and_when_it_is_turned_on() {
    let row = |body: Value| Row { kind: Kind::Schedule, name: "s".to_owned(), body };
    let since = |row: &Row| row.body["since_ms"].as_u64().unwrap();
    let first = settle(row(json!({"workflow": "w", "every": "1h"})), None, 10).unwrap();
    assert_eq!(since(&first), 10);
    let same = row(json!({"workflow": "w", "every": "1h", "overlap": "queue"}));
    let same = settle(same, Some(&first), 20).unwrap();
    assert_eq!(since(&same), 10);
    assert_eq!(settle(same.clone(), Some(&same), 30).unwrap(), same);
    let off = row(json!({"workflow": "w", "every": "1h", "enabled": false}));
    let off = settle(off, Some(&same), 30).unwrap();
    assert_eq!(since(&off), 10);
    // A file without the field does not enable it.
    let again = settle(row(json!({"workflow": "w", "every": "1h"})), Some(&off), 40).unwrap();
    assert_eq!((since(&again), &again.body["enabled"]), (10, &json!(false)));
    let on = row(json!({"workflow": "w", "every": "1h", "enabled": true}));
    assert_eq!(since(&settle(on, Some(&off), 50).unwrap()), 50);
    let moved = row(json!({"workflow": "w", "every": "1h", "time_zone": "Asia/Tokyo"}));
    assert_eq!(since(&settle(moved, Some(&first), 60).unwrap()), 60);
}

#[test]
fn a_gateway_with_the_provider_http_needs_a_url() {
    let url = "http://b.example/work";
    check_faults(
        &[
            row(Kind::Gateway, "a", json!({"provider": "http"})),
            row(Kind::Gateway, "b", json!({"provider": "http", "base_url": url})),
            row(Kind::Gateway, "c", json!({"provider": "http", "url": url})),
        ],
        expect![[r#"
            gateway a provider missing_field: a gateway with the provider `http` needs a `base_url`
              set `base_url` to the URL that receives the steps; for a bridge, set `url`
        "#]],
    );
}

#[test]
fn a_provider_that_there_is_not_is_refused_with_a_suggestion() {
    check_faults(
        &[
            row(Kind::Gateway, "a", json!({"provider": "claude"})),
            row(Kind::Gateway, "b", json!({"provider": "anthropc"})),
            row(Kind::Gateway, "c", json!({"provider": "Gemini-2.5"})),
            row(Kind::Gateway, "d", json!({"provider": "nonsense"})),
            // A bridge has its own names, and a gateway needs no provider.
            row(Kind::Gateway, "e", json!({"provider": "echo", "url": "http://b.example"})),
            row(Kind::Gateway, "f", json!({"provider": ""})),
            row(Kind::Gateway, "g", json!({"provider": "mock"})),
        ],
        expect![[r#"
            gateway a provider unknown_provider: there is no provider `claude`
              did you mean `anthropic`? Providers are `anthropic`, `google`, `http`, `mcp`, `mock`, `openai`, `shell`
            gateway b provider unknown_provider: there is no provider `anthropc`
              did you mean `anthropic`? Providers are `anthropic`, `google`, `http`, `mcp`, `mock`, `openai`, `shell`
            gateway c provider unknown_provider: there is no provider `Gemini-2.5`
              did you mean `google`? Providers are `anthropic`, `google`, `http`, `mcp`, `mock`, `openai`, `shell`
            gateway d provider unknown_provider: there is no provider `nonsense`
              providers are `anthropic`, `google`, `http`, `mcp`, `mock`, `openai`, `shell`; for an adapter of a bridge, name its `url`
        "#]],
    );
}

#[test]
fn a_native_agent_is_not_pinned_to_a_gateway_with_a_url() {
    let far = row(Kind::Gateway, "far", json!({"url": "http://b.example"}));
    let near = row(Kind::Gateway, "near", json!({}));
    let deployed = |gateway: &str| {
        let body = json!({"workflow": "pay", "active": true, "agent_gateways": {"own": gateway}});
        row(Kind::Deployment, "pay", body)
    };
    let native = |name: &str, gateway: Option<&str>| {
        row(Kind::Agent, name, json!({"execution_target": "native", "gateway": gateway}))
    };
    check_faults(
        &[
            far.clone(),
            near.clone(),
            native("own", None),
            native("at", Some("far")),
            deployed("far"),
        ],
        expect![[r#"
            agent at execution_target conflicting_rows: agent `at` is native, and gateway `far` has a URL
              write `execution_target: cloud`, or pin `at` to a gateway without a URL
            deployment pay agent_gateways.own conflicting_rows: agent `own` is native, and gateway `far` has a URL
              write `execution_target: cloud`, or pin `own` to a gateway without a URL
        "#]],
    );
    let cloud = row(Kind::Agent, "sky", json!({"execution_target": "cloud", "gateway": "far"}));
    check_faults(
        &[far, near, native("own", None), native("at", Some("near")), cloud, deployed("near")],
        expect![""],
    );
}

#[test]
fn an_agent_whose_work_no_gateway_could_do_is_told_of() {
    let agent = |name: &str, body: Value| row(Kind::Agent, name, body);
    let gateway = |name: &str, body: Value| row(Kind::Gateway, name, body);
    check_cautions(
        &[agent("scribe", json!({})), agent("mock", json!({}))],
        expect![[r#"
            agent scribe  agent_without_gateway: no gateway fits agent `scribe`: no gateway is registered
              register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`
        "#]],
    );
    let rows = [
        agent("finder", json!({"gateway": "house"})),
        agent("seer", json!({"capabilities": ["vision"]})),
        agent("native", json!({"execution_target": "native"})),
        agent("left", json!({"status": "terminated"})),
        agent("inner", json!({"gateway": "local"})),
        gateway("house", json!({"capabilities": ["text"]})),
        gateway("web", json!({"provider": "http", "agents": ["finder", "seer"]})),
        gateway("far", json!({"url": "http://b.example"})),
    ];
    check_cautions(
        &rows,
        expect![[r#"
            agent finder gateway agent_without_gateway: no gateway fits agent `finder`: `house` has neither `provider` nor `url`
              register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`
            agent seer  agent_without_gateway: no gateway fits agent `seer`: `far` does not offer `vision`; `house` does not offer `vision`; `web` does not offer `vision`
              register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`
            agent native  agent_without_gateway: no gateway fits agent `native`: `far` has a URL, and the agent is native; `house` has neither `provider` nor `url`; `web` does not name it in `agents`
              register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`
            agent inner gateway agent_without_gateway: no gateway fits agent `inner`: `local` has no row, and only `http`, `mock` and `shell` work without one
              register a gateway with a `provider`, such as `anthropic`, or with the `url` of a bridge; `provider: mock` answers from the script of `--mock`
        "#]],
    );
    let served = gateway("claude", json!({"provider": "anthropic", "capabilities": ["vision"]}));
    let rows = [agent("seer", json!({"capabilities": ["vision"]})), served];
    check_cautions(&rows, expect![""]);
}

#[test]
fn a_session_that_cannot_be_continued_is_told_of() {
    let agent = |gateway: Option<&str>| {
        row(Kind::Agent, "reader", json!({"session": "continue", "gateway": gateway}))
    };
    let gateway = |name: &str, body: Value| row(Kind::Gateway, name, body);
    let rows = |agent: Row| {
        vec![
            agent,
            gateway("bridge", json!({"url": "http://b.example"})),
            gateway("claude", json!({"provider": "anthropic"})),
            gateway("service", json!({"provider": "http", "base_url": "http://s.example"})),
            gateway("tools", json!({"provider": "mcp", "agents": ["other"]})),
        ]
    };
    for kept in ["bridge", "service"] {
        check_cautions(&rows(agent(Some(kept))), expect![""]);
    }
    for named in [Some("claude"), None] {
        check_cautions(
            &rows(agent(named)),
            expect![[r#"
                agent reader session session_not_kept: agent `reader` continues sessions, but its work may go to a gateway that keeps none: `claude`
                  remove `session: continue`, or set `gateway` of the agent to a bridge or to a gateway with the provider `http`
            "#]],
        );
    }
    let plain = row(Kind::Agent, "reader", json!({"gateway": "claude"}));
    check_cautions(&rows(plain), expect![""]);
}

#[test]
fn a_row_that_starts_runs_says_who_made_it_and_who_changed_it_last() {
    let write = |before: Option<&Row>, workflow: &str, who: &str| {
        // Authors in the written row are ignored.
        let body = json!({
            "workflow": workflow, "secret": "env:HOOK", "created_by": "eve", "changed_by": "eve",
        });
        let mut row = settle(row(Kind::Hook, "h", body), before, NOW).unwrap();
        sign(&mut row, before, who);
        row
    };
    let authors = |row: &Row| (row.body["created_by"].clone(), row.body["changed_by"].clone());
    let made = write(None, "pay", "carl");
    assert_eq!(authors(&made), (json!("carl"), Value::Null));
    let same = write(Some(&made), "pay", "ben");
    assert_eq!(same, made, "a row that stays as it is was not changed");
    let changed = write(Some(&made), "refund", "ben");
    assert_eq!(authors(&changed), (json!("carl"), json!("ben")));
    let mut other = agent(json!({}));
    sign(&mut other, None, "carl");
    assert_eq!(other, agent(json!({})));
}
