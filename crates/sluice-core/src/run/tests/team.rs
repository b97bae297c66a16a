//! Team runs: assignment of steps, approvals of members, and steps that wait for an assignment.

use super::world::World;
use super::{Script, check};
use crate::port::adapter::CallErrorCode::Auth;
use expect_test::expect;
use serde_json::json;

/// Prints the member, the role and the tools of a step.
fn who(step: &'static str) -> impl Fn(&World) -> String {
    move |world| {
        let at = world.at(step);
        let request = world.run.request(at);
        let member = world.run.member_of(at.step).map(|member| member.id.clone());
        let member = member.unwrap_or_else(|| "no member".to_owned());
        format!("{step}: {member} as {} with {:?}", request.agent, request.tools)
    }
}

const TEAM: &str = "
    team:
      members:
        - {id: ada, agent: one, lane: 1, tool_profile: {allow_tools: [read]}}
        - {id: eve, agent: two, lane: 2, tool_profile: {allow_tools: [read, write], deny_tools: [drop]}}
";

fn with_team(steps: &str) -> Script {
    Script::flow(&format!("{TEAM}\n    steps:\n{steps}"))
}

#[test]
fn the_agent_of_the_member_does_the_step_and_the_gates_judge_it() {
    check(
        with_team(
            "
      - {id: a, command: go, tools: [read]}
      - {id: b, command: go, tools: [write]}
            ",
        )
        .under(|desk| desk.agent_row("two", |agent| agent.max_concurrent_steps = Some(1)))
        .show(who("a"))
        .show(who("b"))
        .show_counts("busy"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.started a attempt=1 dispatch=1
            5 node.started b attempt=1 dispatch=1
            a: ada as one with ["read"]
            b: eve as two with ["write"]
            counts: busy:two=1
        "#]],
    );
}

#[test]
fn a_member_without_an_agent_is_its_roles_agent_or_the_runs() {
    check(
        Script::flow(
            "
            roles: {writer: {}, reader: {}, judge: {}}
            team: {members: [{id: ada, role: writer}, {id: eve, role: reader}]}
            steps:
              - {id: a, command: go, role: writer}
              - {id: b, command: go, role: reader}
              - {id: c, command: go, role: judge}
            ",
        )
        .starting(|started| {
            started.role_bindings.insert("writer".to_owned(), "scribe".to_owned());
            started.role_bindings.insert("judge".to_owned(), "court".to_owned());
        })
        .show(who("a"))
        .show(who("b"))
        .show(who("c")),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.started a attempt=1 dispatch=1
            6 node.started b attempt=1 dispatch=1
            7 node.started c attempt=1 dispatch=1
            a: ada as scribe with []
            b: eve as mock with []
            c: no member as court with []
        "#]],
    );
}

#[test]
fn a_step_that_no_member_fits_waits_until_it_is_assigned() {
    check(
        Script::flow(
            "
            team:
              members:
                - {id: ada, agent: one, role: reader, tool_profile: {allow_tools: [read]}}
                - {id: eve, agent: two, is_active: false, tool_profile: {allow_tools: [read]}}
            roles: {writer: {}}
            steps:
              - {id: a, command: go, role: writer, tools: [read]}
              - {id: b, command: go, tools: [read]}
              - {id: then, command: go, depends_on: [a]}
            ",
        )
        .show_wait("a")
        .show_wait("then")
        .complete("b", json!({}))
        .show_status()
        .assign("b", "eve")
        .assign("a", "unknown")
        .assign("a", "ada")
        .show(who("a"))
        .complete("a", json!({}))
        .assign("a", "eve")
        .complete("then", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.blocked a no_member_fits: no member of the team has the role `writer` (waits)
            5 node.started b attempt=1 dispatch=1
            a is blocked and waits for human_input: `sluice runs assign run a MEMBER`
            then is awaiting_dependency and waits for dependency: waits for `a`
            6 node.completed b {}
            7 run.status.changed paused (approval)
            status: paused (approval)
            refused: step_not_blocked (`b` does not wait for an assignment)
            refused: member_unknown (`unknown` is neither a member of the team nor an agent)
            8 run.status.changed running (approval)
            9 node.queued a Member("ada")
            10 node.started a attempt=1 dispatch=1
            a: ada as one with ["read"]
            11 node.completed a {}
            12 node.queued then
            13 node.started then attempt=1 dispatch=1
            refused: step_not_blocked (`a` does not wait for an assignment)
            14 node.completed then {}
            15 run.completed {}
        "#]],
    );
}

#[test]
fn an_agent_that_is_no_member_can_be_chosen_too() {
    check(
        with_team("      - {id: a, command: go, tools: [drop]}")
            .assign("a", "helper")
            .show(who("a"))
            .fail("a", Auth)
            .retry()
            .show(who("a")),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.blocked a no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
            4 run.status.changed paused (approval)
            5 run.status.changed running (approval)
            6 node.queued a Agent("helper")
            7 node.started a attempt=1 dispatch=1
            a: no member as helper with ["drop"]
            8 node.failed a auth: it broke
            9 run.failed auth: `a` failed: it broke
            10 run.status.changed running (retry) by ada
            11 node.invalidated a
            12 node.queued a
            13 node.started a attempt=1 dispatch=2
            a: no member as helper with ["drop"]
        "#]],
    );
}

#[test]
fn instances_of_one_step_wait_together() {
    check(
        with_team("      - {id: a, command: 'go ${item}', tools: [drop], for_each: [1, 2]}")
            .assign("a", "helper")
            .complete("a[0]", json!({}))
            .complete("a[1]", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a items=2
            3 node.started a attempt=1 dispatch=1 fan_out
            4 node.queued a[0]
            5 node.queued a[1]
            6 node.blocked a[0] no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
            7 node.blocked a[1] no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
            8 run.status.changed paused (approval)
            9 run.status.changed running (approval)
            10 node.queued a[0] Agent("helper")
            11 node.queued a[1] Agent("helper")
            12 node.started a[0] attempt=1 dispatch=1
            13 node.started a[1] attempt=1 dispatch=1
            14 node.completed a[0] {}
            15 node.completed a[1] {}
            16 node.completed a {"items":[{},{}]}
            17 run.completed {}
        "#]],
    );
}

#[test]
fn a_cancel_and_a_rewind_reach_a_step_that_waits_for_somebody() {
    let script = || {
        with_team(
            "
      - {id: first, command: go}
      - {id: a, command: go, tools: [drop], depends_on: [first]}
            ",
        )
        .complete("first", json!({}))
    };
    check(
        script().cancel(),
        expect![[r#"
        1 run.started
        2 node.queued first
        3 node.started first attempt=1 dispatch=1
        4 node.completed first {}
        5 node.queued a
        6 node.blocked a no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
        7 run.status.changed paused (approval)
        8 run.status.changed cancelling (not needed) by ada
        9 node.cancelled a cancelled: not needed
        10 run.cancelled not needed
    "#]],
    );
    check(
        script().rewind(&["first"]).rewind(&[]),
        expect![[r#"
        1 run.started
        2 node.queued first
        3 node.started first attempt=1 dispatch=1
        4 node.completed first {}
        5 node.queued a
        6 node.blocked a no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
        7 run.status.changed paused (approval)
        8 run.status.changed running (rewind) by ada
        9 node.invalidated a
        10 node.queued a
        11 node.blocked a no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
        12 run.status.changed paused (approval)
        13 run.status.changed running (rewind) by ada
        14 node.invalidated first
        15 node.invalidated a
        16 node.queued first
        17 node.started first attempt=1 dispatch=2
    "#]],
    );
    check(
        script().take_over().assign("a", "ada"),
        expect![[r#"
            1 run.started
            2 node.queued first
            3 node.started first attempt=1 dispatch=1
            4 node.completed first {}
            5 node.queued a
            6 node.blocked a no_member_fits: no member fits: ada may not use `drop`; eve may not use `drop` (waits)
            7 run.status.changed paused (approval)
            8 run.status.changed paused (taken_over)
            9 run.status.changed running (approval)
            10 node.queued a Member("ada")
            11 contract.violated a instructions tools.drop contradicts_layer
            12 node.failed a layer_contradiction: tools.drop layer 7 (node: a) asks for the tool `drop`, but layer 4 (team: member ada) allows only `read`
            13 run.failed layer_contradiction: `a` failed: tools.drop layer 7 (node: a) asks for the tool `drop`, but layer 4 (team: member ada) allows only `read`
        "#]],
    );
}

#[test]
fn a_person_agrees_before_a_flagged_member_begins() {
    check(
        Script::flow(
            "
            team:
              members:
                - {id: ada, agent: one, tool_profile: {allow_tools: [read]}}
                - {id: eve, agent: two, lane: 1, tool_profile: {requires_approval: true}}
              approval_policy: {approvers: [owner], quorum: 1, not_initiator: true, expires_in: 1h}
            steps:
              - {id: a, command: go, tools: [read]}
              - {id: b, command: go, tools: [drop]}
            ",
        )
        .show_wait("b")
        .approve("b")
        .approve_as("b", "ada", &["owner"])
        .approve_as("b", "carl", &["owner"])
        .show(who("b"))
        .complete("b", json!({"n": 1}))
        .show(|world| {
            let asked = world.run.approvals.values().next().expect("a question");
            let action = &asked.action.as_ref().expect("an action").action;
            format!("asked about {} of {}", action["tools"], action["agent"])
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 governance.decided b "hold" null
            5 approval.requested b apr1 step "Let `b` do this?\ngo"
            6 node.started a attempt=1 dispatch=1
            b is awaiting_approval and waits for human_input: `sluice approvals approve apr1`
            refused: not_approver (bob may not decide this approval: its approvers are owner)
            refused: self_approval (ada is an initiator of the run: a different person must decide)
            7 approval.resolved b apr1 approved by carl
            8 node.started b attempt=1 dispatch=1
            b: eve as two with ["drop"]
            9 node.completed b {"n":1}
            asked about ["drop"] of "two"
        "#]],
    );
    check(
        Script::flow(
            "
            team: {members: [{id: eve, tool_profile: {requires_approval: true}}]}
            steps: [{id: b, command: go}]
            ",
        )
        .advance("8d"),
        expect![[r#"
            1 run.started
            2 node.queued b
            3 governance.decided b "hold" null
            4 approval.requested b apr1 step "Let `b` do this?\ngo"
            5 run.status.changed paused (approval)
            after 1h
            6 approval.reminded b apr1 normal
            after 1d
            7 approval.reminded b apr1 elevated
            after 3d
            8 approval.reminded b apr1 critical
            after 7d
            9 approval.resolved b apr1 expired
            10 run.status.changed running (approval)
            11 node.failed b approval_rejected: no approver answered in time
            12 run.failed approval_rejected: `b` failed: no approver answered in time
        "#]],
    );
}

#[test]
fn a_team_may_have_people_asked_before_everything() {
    check(
        Script::flow(
            "
            team: {members: [{id: eve}], approval_policy: {required: true, covers_retries: true}}
            steps: [{id: b, command: go, on_failure: retry_once}]
            ",
        )
        .approve("b")
        .fail("b", Auth),
        expect![[r#"
            1 run.started
            2 node.queued b
            3 governance.decided b "hold" null
            4 approval.requested b apr1 step "Let `b` do this?\ngo"
            5 run.status.changed paused (approval)
            6 approval.resolved b apr1 approved by bob
            7 run.status.changed running (approval)
            8 node.started b attempt=1 dispatch=1
            9 node.retried b attempt=1 auth delay=0
            10 node.waiting b retry_backoff attempt=2 auth delay=0
            11 node.started b attempt=2 dispatch=2
        "#]],
    );
}

#[test]
fn a_failure_stays_in_its_branch_unless_the_team_halts() {
    let flow = |mode: &str| {
        Script::flow(&format!(
            "
            team: {{members: [{{id: ada}}]{mode}}}
            steps:
              - {{id: a, command: go}}
              - {{id: a2, command: go, depends_on: [a]}}
              - {{id: b, command: go}}
              - {{id: b2, command: go, depends_on: [b]}}
            "
        ))
        .fail("a", Auth)
        .complete("b", json!({}))
    };
    check(
        flow("").complete("b2", json!({})),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.failed a auth: it broke
        7 node.failed a2 upstream_failure: Blocked by upstream failure
        8 node.completed b {}
        9 node.queued b2
        10 node.started b2 attempt=1 dispatch=1
        11 node.completed b2 {}
        12 run.failed auth: `a` failed: it broke
    "#]],
    );
    check(
        flow(", failure_policy: {mode: halt}"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.failed a auth: it broke
        7 node.failed a2 upstream_failure: Blocked by upstream failure
        8 node.cancelled b2 run_halted: the run was halted by `a`
        9 node.completed b {}
        10 run.failed auth: `a` failed: it broke
    "#]],
    );
    let lens = Script::lens(
        "
        team: {members: [{id: ada}], failure_policy: {mode: halt}}
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l}, {id: c, lens_id: l}]
        edges: [{id: e, source_node_id: b, target_node_id: c, target_param_label: x}]
        ",
    );
    check(
        lens.fail("a", Auth).text("b", "B"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.started b attempt=1 dispatch=1
        6 node.failed a auth: it broke
        7 node.cancelled c run_halted: the run was halted by `a`
        8 node.completed b {"output":"B"}
        9 run.failed auth: `a` failed: it broke
    "#]],
    );
}

#[test]
fn a_step_that_says_nothing_of_trying_again_is_tried_as_its_team_says() {
    check(
        Script::flow(
            "
            team: {members: [{id: ada}], retry_policy: {attempts: 2, backoff_ms: 100, retry_on: [provider_error]}}
            steps:
              - {id: a, command: go}
              - {id: b, command: go, retry: {attempts: 1}}
              - {id: c, command: go, on_failure: retry_once}
            ",
        )
        .fail("a", crate::port::adapter::CallErrorCode::ProviderError)
        .fail("b", crate::port::adapter::CallErrorCode::ProviderError)
        .fail("c", crate::port::adapter::CallErrorCode::ProviderError),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 node.queued c
            5 node.started a attempt=1 dispatch=1
            6 node.started b attempt=1 dispatch=1
            7 node.started c attempt=1 dispatch=1
            8 node.retried a attempt=1 provider_error delay=78
            9 node.waiting a retry_backoff attempt=2 provider_error delay=78
            10 node.failed b provider_error: it broke
            11 node.retried c attempt=1 provider_error delay=0
            12 node.waiting c retry_backoff attempt=2 provider_error delay=0
            13 node.started c attempt=2 dispatch=2
        "#]],
    );
}

#[test]
fn lanes_can_decide_who_comes_first() {
    let flow = |order: &str| {
        Script::flow(&format!(
            "
            max_parallel: 1
            team:
              queue_policy: {{order: {order}}}
              members:
                - {{id: late, lane: 2, tool_profile: {{allow_tools: [x]}}}}
                - {{id: soon, lane: 1}}
            steps:
              - {{id: a, command: go, tools: [x]}}
              - {{id: b, command: go}}
            "
        ))
        .answer_all()
    };
    check(
        flow("id"),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.queued b
        4 node.started a attempt=1 dispatch=1
        5 node.completed a {"n":0}
        6 node.started b attempt=1 dispatch=1
        7 node.completed b {"n":1}
        8 run.completed {}
    "#]],
    );
    check(
        flow("lane"),
        expect![[r#"
        1 run.started
        2 node.queued b
        3 node.queued a
        4 node.started b attempt=1 dispatch=1
        5 node.completed b {"n":1}
        6 node.started a attempt=1 dispatch=1
        7 node.completed a {"n":0}
        8 run.completed {}
    "#]],
    );
}
