use super::*;
use crate::doc::{self, Format, Registry};
use expect_test::{Expect, expect};

/// The assignment of each step of a document with these members and steps.
#[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
fn check(members: &str, steps: &str, expected: Expect) {
    let text = format!("name: t\nteam: {{members: [{members}]}}\nsteps: [{steps}]\n");
    let checked = doc::check(text.as_bytes(), Some(Format::Lobsterx), &Registry::default());
    let plan = checked.plan.unwrap_or_else(|| panic!("refused: {:#?}", checked.diagnostics));
    tell(&plan, &expected);
}

fn tell(plan: &Plan, expected: &Expect) {
    let team = plan.team.as_ref().expect("there is a team");
    let mut told = String::new();
    for (step, seat) in plan.steps.iter().zip(seats(plan)) {
        let who = match seat {
            Seat::Outside => "outside".to_owned(),
            Seat::Member(at) => team.members[at as usize].id.clone(),
            Seat::Role => format!("role: {}", why_unassigned(team, step)),
            Seat::Unassigned => format!("unassigned: {}", why_unassigned(team, step)),
        };
        told.push_str(&format!("{} {who}\n", step.id));
    }
    expected.assert_eq(&told);
}

#[test]
fn the_first_member_by_lane_then_order_then_place_that_fits_is_chosen() {
    check(
        "{id: late, lane: 2, sort_order: 0, tool_profile: {allow_tools: [a, b, c]}},
         {id: second, lane: 1, sort_order: 2, tool_profile: {allow_tools: [a, b]}},
         {id: first, lane: 1, sort_order: 1, tool_profile: {allow_tools: [a]}},
         {id: equal, lane: 1, sort_order: 1, tool_profile: {allow_tools: [a, d]}},
         {id: before, lane: -1, is_active: false, tool_profile: {allow_tools: [a, b, c, d]}}",
        "{id: none, command: x}, {id: a, command: x, tools: [a]}, {id: b, command: x, tools: [b, a]},
         {id: c, command: x, tools: [c]}, {id: d, command: x, tools: [d]},
         {id: all, command: x, tools: [a, b, c, d]}",
        expect![[r#"
            none first
            a first
            b second
            c late
            d equal
            all unassigned: no member fits: before is not active; first may not use `b`, `c`, `d`; equal may not use `b`, `c`; second may not use `c`, `d`; late may not use `d`
        "#]],
    );
}

#[test]
fn a_denied_tool_is_not_covered_and_a_flagged_member_takes_anything() {
    check(
        "{id: ada, tool_profile: {allow_tools: [a, b], deny_tools: [b]}},
         {id: eve, lane: 1, tool_profile: {requires_approval: true}}",
        "{id: a, command: x, tools: [a]}, {id: b, command: x, tools: [b]}",
        expect![[r#"
            a ada
            b eve
        "#]],
    );
    check(
        "{id: ada, tool_profile: {allow_tools: [a, b], deny_tools: [b]}}",
        "{id: b, command: x, tools: [b]}",
        expect![[r#"
            b unassigned: no member fits: ada may not use `b`
        "#]],
    );
}

#[test]
fn a_role_narrows_the_choice_and_an_agent_names_it() {
    check(
        "{id: ada, agent: one, role: writer}, {id: eve, agent: two, role: reader, lane: 1},
         {id: idle, agent: three, is_active: false},
         {id: fine, agent: two, lane: 2, tool_profile: {allow_tools: [a]}}",
        "{id: plain, command: x}, {id: reads, command: x, agent: two},
         {id: named, command: x, agent: two, tools: [a]},
         {id: forbidden, command: x, agent: one, tools: [a]},
         {id: asleep, command: x, agent: three}, {id: stranger, command: x, agent: four},
         {id: ask, approval: required}",
        expect![[r#"
            plain ada
            reads eve
            named fine
            forbidden ada
            asleep unassigned: no member fits: idle is not active
            stranger outside
            ask outside
        "#]],
    );
    let text = "name: t
roles: {writer: {}, reader: {}, judge: {}}
team: {members: [{id: ada, role: writer}, {id: eve, role: reader, lane: -1}]}
steps:
  - {id: a, command: x, role: writer}
  - {id: b, command: x, role: reader, tools: [t]}
  - {id: c, command: x, role: judge}
";
    let checked = doc::check(text.as_bytes(), Some(Format::Lobsterx), &Registry::default());
    tell(
        &checked.plan.expect("a plan"),
        &expect![[r#"
        a ada
        b unassigned: no member fits: eve may not use `t`
        c role: no member of the team has the role `judge`
    "#]],
    );
}

#[test]
fn a_tier_must_be_the_one_that_is_needed() {
    let text = "name: t
lenses: {l: {versions: {1: {template: x}}}}
team:
  members:
    - {id: plain}
    - {id: small, lane: 1, model_profile: {support_level: standard}}
    - {id: large, lane: 2, model_profile: {support_level: premium}, tool_profile: {requires_approval: true}}
nodes:
  - {id: any, lens_id: l}
  - {id: std, lens_id: l, config: {required_tier: standard}}
  - {id: pre, lens_id: l, config: {required_tier: premium, required_tools: [x]}}
  - {id: ultra, lens_id: l, config: {required_tier: ultra}}
edges: []
";
    let checked = doc::check(text.as_bytes(), Some(Format::Lens), &Registry::default());
    let plan = checked.plan.unwrap_or_else(|| panic!("refused: {:#?}", checked.diagnostics));
    tell(
        &plan,
        &expect![[r#"
        any plain
        std small
        pre large
        ultra unassigned: no member fits: plain supports no tier, not ultra; small supports standard, not ultra; large supports premium, not ultra
    "#]],
    );
}

#[test]
fn a_team_without_members_does_nothing() {
    check(
        "",
        "{id: a, command: x}",
        expect![[r#"
        a unassigned: the team has no members
    "#]],
    );
}
