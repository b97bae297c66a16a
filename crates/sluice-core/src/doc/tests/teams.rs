//! Documents that refer to teams of the registry.

use super::{Script, tell};
use crate::doc::{Format, Registry, check};
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{Kind, Row};

const TEAM: &str = "{members: [{id: ada, role: writer, lane: 1, tool_profile: {requires_approval: true}}, {id: bob}], failure_policy: {mode: halt}, queue_policy: {order: lane}, approval_policy: {approvers: [owner]}, retry_policy: {attempts: 3}}";
const LOBSTERX: &str = "name: tiny\nteam: @\nsteps: [{id: one, command: go}]\n";
const LENS: &str = "name: tiny\nteam: @\nlenses: {l: {versions: {1: {template: hi}}}}\nnodes: [{id: a, lens_id: l}]\nedges: []\n";

fn registry() -> String {
    format!("teams: {{night-desk: {TEAM}, day-desk: {{members: []}}}}\n")
}

#[test]
fn a_team_that_is_named_is_the_same_plan_as_one_that_is_written_out() {
    for (format, text) in [(Format::Lobsterx, LOBSTERX), (Format::Lens, LENS)] {
        let with = |team: &str| {
            Script::new(Some(format), &text.replace('@', team)).registry(&registry()).plan()
        };
        let (named, written) = (with("night-desk"), with(TEAM));
        assert_eq!(named.team.as_ref().map(|team| team.members.len()), Some(2));
        assert_eq!(named.steps[0].retry, written.steps[0].retry);
        assert_eq!(named.hash(), written.hash());
        assert_eq!(named, written);
        assert_ne!(named.hash(), with("day-desk").hash());
    }
}

#[test]
fn a_team_that_changes_gives_another_plan_and_leaves_the_old_one() {
    let row = |members: serde_json::Value| Row {
        kind: Kind::Team,
        name: "night-desk".to_owned(),
        body: json!({ "members": members }),
    };
    let text = LOBSTERX.replace('@', "night-desk");
    let plan = |row: Row| {
        let registry = Registry::default().with_rows(&[row]).unwrap();
        check(text.as_bytes(), None, &registry).plan.unwrap()
    };
    let before = plan(row(json!([{ "id": "ada" }])));
    let after = plan(row(json!([{ "id": "bob" }])));
    assert_ne!(before.hash(), after.hash());
    assert_eq!(before.team.unwrap().members[0].id, "ada");
    let broken = Registry::default().with_rows(&[row(json!([{ "id": "a" }, { "id": "a" }]))]);
    assert!(broken.unwrap_err().contains("night-desk"));
}

#[test]
fn a_team_that_nobody_knows_is_an_error_in_both_formats() {
    let mut out = String::new();
    for (format, text) in [(Format::Lobsterx, LOBSTERX), (Format::Lens, LENS)] {
        for (team, registry) in [
            ("nigth-desk", registry()),
            ("Night-Desk", registry()),
            ("''", registry()),
            ("night-desk", "teams: {}".to_owned()),
            ("night-desk", "lenses: {}".to_owned()),
            ("5", registry()),
            ("[night-desk]", registry()),
        ] {
            let script = Script::new(Some(format), &text.replace('@', team)).registry(&registry);
            out.push_str(&format!("{team}: {}", script.transcript()));
        }
    }
    expect![[r#"
        nigth-desk: 2:7 unknown_row team: the registry has no team `nigth-desk` (did you mean `night-desk`?)
        Night-Desk: 2:7 unknown_row team: the registry has no team `Night-Desk` (did you mean `night-desk`?)
        '': 2:7 unknown_row team: the registry has no team ``
        night-desk: 2:7 unknown_row team: the registry has no team `night-desk`
        night-desk: 2:7 unknown_row team: there is no team `night-desk`: no teams are loaded (create it with `sluice teams set`, or pass it with `--registry FILE`)
        5: 2:7 wrong_type team: expected a map or the name of a team, found a number
        [night-desk]: 2:7 wrong_type team: expected a map or the name of a team, found a list
        nigth-desk: 2:7 unknown_row team: the registry has no team `nigth-desk` (did you mean `night-desk`?)
        Night-Desk: 2:7 unknown_row team: the registry has no team `Night-Desk` (did you mean `night-desk`?)
        '': 2:7 unknown_row team: the registry has no team ``
        night-desk: 2:7 unknown_row team: the registry has no team `night-desk`
        night-desk: 2:7 unknown_row team: there is no team `night-desk`: no teams are loaded (create it with `sluice teams set`, or pass it with `--registry FILE`)
        5: 2:7 wrong_type team: expected a map or the name of a team, found a number
        [night-desk]: 2:7 wrong_type team: expected a map or the name of a team, found a list
    "#]].assert_eq(&out);
}

#[test]
fn roles_of_a_named_team_are_used_and_those_of_an_unknown_one_are_not_guessed() {
    let text = format!("{}roles: {{writer: {{}}}}\n", LOBSTERX.replace('@', "night-desk"));
    Script::lobsterx(&text).registry(&registry()).check(expect![[r#"
        ok
    "#]]);
    Script::lobsterx(&text.replace("night-desk", "day-desk")).registry(&registry()).check(expect![
        [r#"
            ~4:9 unused_role roles: no step uses the role `writer`
            ok
        "#]
    ]);
    Script::lobsterx(&text.replace("night-desk", "other")).registry(&registry()).check(expect![[
        r#"
            2:7 unknown_row team: the registry has no team `other`
        "#
    ]]);
}

#[test]
fn a_registry_checks_its_teams_as_a_document_does() {
    let (registry, diagnostics) = Registry::parse(
        "teams:\n  'bad name': {members: []}\n  twice: {members: [{id: a}, {id: a}]}\n  none: {}\n  word: other\n  odd: {member: []}\n",
    );
    assert!(registry.is_none());
    let mut out = String::new();
    diagnostics.iter().for_each(|diagnostic| tell(diagnostic, &mut out));
    expect![[r#"
        2:3 bad_name teams: `bad name` is not an id (write `bad_name`)
        3:35 duplicate_name teams.twice.members[1]: the member `a` is declared twice
        4:9 missing_field teams.none: `members` is missing
        5:9 wrong_type teams.word: expected a map, found a string
        6:8 missing_field teams.odd: `members` is missing
        6:9 unknown_field teams.odd.member: unknown field `member` (did you mean `members`?)
    "#]]
    .assert_eq(&out);
}
