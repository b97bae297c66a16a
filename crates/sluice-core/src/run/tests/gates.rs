//! Gates that block a step, and gates that only observe.

use super::governed::{budget, cents, rules};
use super::{Script, check};
use crate::port::authority::fake::FakeAuthority as Desk;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{AgentStatus, Gateway, Period, Phase, Role, Scope, TrustedContext};

const RETRIED: &str = "
    steps:
      - {id: a, command: go, on_failure: retry}
      - {id: b, command: go, depends_on: [a]}
";

#[test]
fn an_agent_that_is_not_there_or_may_not_work_fails_its_step_at_once() {
    check(
        Script::flow("steps: [{id: a, command: go, agent: unknown, on_failure: retry}]"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.failed a agent_disabled: there is no agent unknown (register agent unknown, or name another)
            5 run.failed agent_disabled: `a` failed: there is no agent unknown (register agent unknown, or name another)
        "#]],
    );
    for (status, expected) in [
        (
            AgentStatus::Terminated,
            expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.failed a agent_disabled: agent mock is terminated (name another agent)
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed agent_disabled: `a` failed: agent mock is terminated (name another agent)
        "#]],
        ),
        (
            AgentStatus::Error,
            expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.failed a agent_disabled: agent mock is broken (repair agent mock, then set it idle)
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed agent_disabled: `a` failed: agent mock is broken (repair agent mock, then set it idle)
        "#]],
        ),
        (
            AgentStatus::Deprecated,
            expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "agent_status"
            4 node.failed a agent_disabled: agent mock is deprecated (name the agent that replaced it)
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed agent_disabled: `a` failed: agent mock is deprecated (name the agent that replaced it)
        "#]],
        ),
    ] {
        check(
            Script::flow(RETRIED)
                .under(|desk| desk.agent_row("mock", |agent| agent.status = status)),
            expected,
        );
    }
}

#[test]
fn what_a_failed_gate_means_is_said_by_on_failure() {
    check(
        Script::flow(
            "
            steps:
              - {id: a, command: go, agent: unknown, on_failure: skip}
              - {id: b, command: go, agent: unknown, on_failure: retry_once_then_escalate}
              - {id: c, command: go, depends_on: [b], on_parent_failure: skip}
            ",
        ),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.queued b
            4 governance.decided a "block" "agent_status"
            5 node.skipped a failure: there is no agent unknown (register agent unknown, or name another) [agent_disabled]
            6 governance.decided b "block" "agent_status"
            7 node.failed b agent_disabled: there is no agent unknown (register agent unknown, or name another)
            8 node.skipped c parent_failure: `b` failed
            9 run.failed agent_disabled: `b` failed: there is no agent unknown (register agent unknown, or name another)
        "#]],
    );
}

fn on_trial_since(days: u64) -> impl Fn(&mut Desk) {
    move |desk| {
        desk.agent_row("mock", |agent| {
            agent.phase = Phase::Poc;
            agent.phase_since_ms = Some(super::world::START_MS - days * 24 * 60 * 60 * 1000);
        });
    }
}

#[test]
fn a_trial_is_over_after_sixty_days_unless_it_is_extended() {
    check(
        Script::flow("steps: [{id: a, command: go}, {id: b, command: go, depends_on: [a]}]")
            .under(on_trial_since(59))
            .neglected("1d")
            .complete("a", json!({})),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            after 1d
            4 node.completed a {}
            5 node.queued b
            6 governance.decided b "block" "agent_status"
            7 node.failed b agent_disabled: agent mock has ended (phase sunset) (the trial is over: extend it, or promote agent mock)
            8 run.failed agent_disabled: `b` failed: agent mock has ended (phase sunset) (the trial is over: extend it, or promote agent mock)
        "#]],
    );
    check(
        Script::flow("steps: [{id: a, command: go}]").under(on_trial_since(61)).under(|desk| {
            let until_ms = super::world::START_MS + 1;
            desk.agent_row("mock", |agent| agent.poc_until_ms = Some(until_ms));
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
        "#]],
    );
}

#[test]
fn a_gateway_takes_only_agents_it_trusts() {
    let trusted = |minimum: u8| {
        move |desk: &mut Desk| {
            let local = Gateway { min_trust_level: minimum, ..Gateway::default() };
            desk.fabric.gateways.insert("local".to_owned(), local);
        }
    };
    check(
        Script::flow(RETRIED).under(trusted(5)),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
    "#]],
    );
    check(
        Script::flow(RETRIED).under(trusted(6)),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "block" "trust_level"
        4 node.failed a trust_level_insufficient: agent mock has trust level 5, gateway local requires 6 (raise the trust level of agent mock, or route to another gateway)
        5 node.failed b upstream_failure: Blocked by upstream failure
        6 run.failed trust_level_insufficient: `a` failed: agent mock has trust level 5, gateway local requires 6 (raise the trust level of agent mock, or route to another gateway)
    "#]],
    );
    check(
        Script::flow(RETRIED).under(trusted(5)).starting(|started| started.trust_ceiling = Some(4)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "trust_level"
            4 node.failed a trust_level_insufficient: agent mock has trust level 4, capped by the deployment, gateway local requires 5 (raise trust_ceiling of the deployment, or route to another gateway)
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed trust_level_insufficient: `a` failed: agent mock has trust level 4, capped by the deployment, gateway local requires 5 (raise trust_ceiling of the deployment, or route to another gateway)
        "#]],
    );
}

const ROLES: &str = "
    roles:
      worker: {allowed_environments: [staging, local]}
      reader: {trusted_context: {accepted_source_classes: [human, caller], max_age_s: 60}}
    args: {what: {type: string}}
    steps:
      - {id: make, command: go, outputs: {x: string}}
      - {id: told, command: 'look at ${args.what}', role: reader}
      - {id: use, command: 'use ${x}', role: worker, depends_on: [make], on_failure: skip}
      - {id: read, command: 'read ${x}', role: reader, depends_on: [make], on_failure: skip}
";

#[test]
fn a_role_says_where_its_steps_run_and_what_they_read() {
    check(
        Script::flow(ROLES).arg("what", "it").complete("make", json!({"x": "y"})),
        expect![[r#"
            1 run.started
            2 node.queued make
            3 node.queued told
            4 node.started make attempt=1 dispatch=1
            5 node.started told attempt=1 dispatch=1
            6 node.completed make {"x":"y"}
            7 node.queued read
            8 node.queued use
            9 node.provenance read command <- make x
            10 governance.decided read "block" "context_trust"
            11 node.skipped read failure: an input comes from agent, role reader accepts human, caller (let a person check it first, or accept agent for role reader) [context_untrusted]
            12 node.provenance use command <- make x
            13 node.started use attempt=1 dispatch=1
        "#]],
    );
    // The bounds of the registry apply too.
    check(
        Script::flow(ROLES)
            .arg("what", "it")
            .under(|desk| {
                let environments = vec!["staging".to_owned(), "production".to_owned()];
                let bounds = Role { allowed_environments: environments, ..Role::default() };
                desk.fabric.roles.insert("worker".to_owned(), bounds);
            })
            .complete("make", json!({"x": "y"})),
        expect![[r#"
            1 run.started
            2 node.queued make
            3 node.queued told
            4 node.started make attempt=1 dispatch=1
            5 node.started told attempt=1 dispatch=1
            6 node.completed make {"x":"y"}
            7 node.queued read
            8 node.queued use
            9 node.provenance read command <- make x
            10 governance.decided read "block" "context_trust"
            11 node.skipped read failure: an input comes from agent, role reader accepts human, caller (let a person check it first, or accept agent for role reader) [context_untrusted]
            12 node.provenance use command <- make x
            13 governance.decided use "block" "context_trust"
            14 node.skipped use failure: role worker may act in staging, the gateway is in local (route to another gateway, or allow local for role worker) [context_untrusted]
        "#]],
    );
}

#[test]
fn an_input_may_be_too_old() {
    let script = || {
        Script::flow(
            "
            steps:
              - {id: make, command: go, outputs: {x: string}}
              - {id: wait, command: go, depends_on: [make]}
              - {id: read, command: 'read ${x}', role: reader, depends_on: [wait]}
            roles: {reader: {}}
            ",
        )
        .under(|desk| {
            let fresh = TrustedContext { max_age_s: Some(60), ..TrustedContext::default() };
            let bounds = Role { trusted_context: Some(fresh), ..Role::default() };
            desk.fabric.roles.insert("reader".to_owned(), bounds);
        })
        .complete("make", json!({"x": "y"}))
    };
    check(
        script().advance("60s").complete("wait", json!({})),
        expect![[r#"
        1 run.started
        2 node.queued make
        3 node.started make attempt=1 dispatch=1
        4 node.completed make {"x":"y"}
        5 node.queued wait
        6 node.started wait attempt=1 dispatch=1
        after 1m
        7 node.completed wait {}
        8 node.queued read
        9 node.provenance read command <- make x
        10 node.started read attempt=1 dispatch=1
    "#]],
    );
    check(
        script().advance("61s").complete("wait", json!({})),
        expect![[r#"
        1 run.started
        2 node.queued make
        3 node.started make attempt=1 dispatch=1
        4 node.completed make {"x":"y"}
        5 node.queued wait
        6 node.started wait attempt=1 dispatch=1
        after 61s
        7 node.completed wait {}
        8 node.queued read
        9 node.provenance read command <- make x
        10 governance.decided read "block" "context_trust"
        11 node.failed read context_untrusted: an input is 61 s old, role reader takes 60 s at most (run the step that made it again, or raise max_age_s of role reader)
        12 run.failed context_untrusted: `read` failed: an input is 61 s old, role reader takes 60 s at most (run the step that made it again, or raise max_age_s of role reader)
    "#]],
    );
}

#[test]
fn a_rule_that_blocks_is_the_end() {
    let no = r#"@id("no") @description("not on a Tuesday")
        forbid (principal, action == Action::"dispatch_step", resource)
        when { context.time.weekday == "tuesday" };"#;
    check(
        Script::flow(RETRIED).under(|desk| desk.policies = rules(no)),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 governance.decided a "block" "policy_rules"
        4 node.failed a policy_blocked: policy own.cedar/no forbids it: not on a Tuesday (change the step, or policy own.cedar/no)
        5 node.failed b upstream_failure: Blocked by upstream failure
        6 run.failed policy_blocked: `a` failed: policy own.cedar/no forbids it: not on a Tuesday (change the step, or policy own.cedar/no)
    "#]],
    );
    let soft = format!(r#"@enforcement("soft") {no}"#);
    check(
        Script::flow("steps: [{id: a, command: go}]")
            .under(|desk| desk.policies = rules(&soft))
            .show_gates("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            gates of a: "allow"
              policy_rules warn: warning by own.cedar/no
        "#]],
    );
    let child = r#"@id("alone") forbid (principal, action == Action::"start_run", resource)
        when { context.run.depth == 0 };"#;
    check(
        Script::flow("steps: [{id: a, workflow_ref: other}]")
            .knows("other")
            .under(|desk| desk.policies = rules(child)),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "policy_rules"
            4 node.failed a policy_blocked: policy own.cedar/alone forbids it (change the step, or policy own.cedar/alone)
            5 run.failed policy_blocked: `a` failed: policy own.cedar/alone forbids it (change the step, or policy own.cedar/alone)
        "#]],
    );
}

#[test]
fn the_gates_only_observe_agents_on_trial_but_for_their_rules() {
    let trial = || {
        Script::flow(
            "
            roles: {r: {max_spend_cents: 5, allowed_environments: [mars]}}
            steps:
              - {id: a, command: go, role: r}
              - {id: b, command: go, depends_on: [a]}
            ",
        )
        .under(on_trial_since(1))
        .under(|desk| {
            desk.quoted(&["a", "b"], 40);
            desk.agent_row("mock", |agent| agent.budget_monthly_cents = Some(cents(10)));
            desk.budget_row("all", budget(Scope::Global, None, Period::Daily, 10));
            let local = Gateway { min_trust_level: 9, ..Gateway::default() };
            desk.fabric.gateways.insert("local".to_owned(), local);
        })
    };
    check(
        trial().show_gates("a").show_money().costs("a", 30).show_money(),
        expect![[r#"
        1 run.started
        2 node.queued a
        3 node.started a attempt=1 dispatch=1
        gates of a: "allow"
          budget_agent warn (observe): observe: would have blocked: cap role r, this run has 0.05 left of 0.05, and it may cost 0.40
          budget_envelopes warn (observe): observe: would have blocked: cap all has 0.10 left of 0.10, and it may cost 0.40
          trust_level warn (observe): observe: would have blocked: agent mock has trust level 5, gateway local requires 9
          context_trust warn (observe): observe: would have blocked: role r may act in mars, the gateway is in local
        money: agent/mock/2023-11 held=0.40 spent=0.00, envelope/all/2023-11-14 held=0.40 spent=0.00, role/run/r held=0.40 spent=0.00
        4 node.completed a {}
        5 budget.alert {"kind":"threshold","account":"role/run/r","percent":50,"spent":0.3,"cap":0.05}
        6 budget.alert {"kind":"threshold","account":"role/run/r","percent":80,"spent":0.3,"cap":0.05}
        7 budget.alert {"kind":"threshold","account":"role/run/r","percent":100,"spent":0.3,"cap":0.05}
        8 budget.alert {"kind":"threshold","account":"agent/mock/2023-11","percent":50,"spent":0.3,"cap":0.1}
        9 budget.alert {"kind":"threshold","account":"agent/mock/2023-11","percent":80,"spent":0.3,"cap":0.1}
        10 budget.alert {"kind":"threshold","account":"agent/mock/2023-11","percent":100,"spent":0.3,"cap":0.1}
        11 budget.alert {"kind":"threshold","account":"envelope/all/2023-11-14","percent":50,"spent":0.3,"cap":0.1}
        12 budget.alert {"kind":"threshold","account":"envelope/all/2023-11-14","percent":80,"spent":0.3,"cap":0.1}
        13 budget.alert {"kind":"threshold","account":"envelope/all/2023-11-14","percent":100,"spent":0.3,"cap":0.1}
        14 node.queued b
        15 node.started b attempt=1 dispatch=1
        money: agent/mock/2023-11 held=0.70 spent=0.30, envelope/all/2023-11-14 held=0.70 spent=0.30, role/run/r held=0.30 spent=0.30
    "#]],
    );
    check(
        trial().under(|desk| {
            desk.policies = rules(r#"@id("no") forbid (principal, action, resource);"#);
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "policy_rules"
            4 node.failed a policy_blocked: policy own.cedar/no forbids it (change the step, or policy own.cedar/no)
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed policy_blocked: `a` failed: policy own.cedar/no forbids it (change the step, or policy own.cedar/no)
        "#]],
    );
}

#[test]
fn where_no_gateway_is_there_is_no_waiting() {
    check(
        Script::flow("steps: [{id: a, command: go, capabilities: [gpu]}]").under(|desk| {
            desk.fabric.gateways.insert("local".to_owned(), Gateway::default());
        }),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.failed a gateway_unreachable: no gateway offers what the step needs (see the routing decision for the reason of each gateway)
            5 run.failed gateway_unreachable: `a` failed: no gateway offers what the step needs (see the routing decision for the reason of each gateway)
        "#]],
    );
    check(
        Script::flow(RETRIED).starting(|started| started.gateway = "gone".to_owned()),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "gateway_health"
            4 node.failed a gateway_unreachable: there is no gateway gone (register gateway gone, or route to another gateway)
            5 node.failed b upstream_failure: Blocked by upstream failure
            6 run.failed gateway_unreachable: `a` failed: there is no gateway gone (register gateway gone, or route to another gateway)
        "#]],
    );
}
