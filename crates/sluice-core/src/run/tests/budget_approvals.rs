//! Budgets that require an approval instead of blocking.

use super::governed::{budget, rules};
use super::{Script, check};
use crate::run::command::Decision;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{Period, Scope};

const ASK_ABOUT_MONEY: &str = r#"@id("money") @action("require_approval") @category("budget")
    @approvers("treasurer") forbid (principal, action == Action::"dispatch_step", resource);"#;

#[test]
fn a_budget_can_be_asked_about_and_an_answer_counts_once_the_cap_is_raised() {
    let script = || {
        Script::flow(
            "
            budget: {max_cost_cents: 60}
            steps:
              - {id: a, command: go}
              - {id: b, command: go, depends_on: [a]}
            ",
        )
        .under(|desk| {
            desk.quoted(&["a", "b"], 40);
            desk.policies = rules(ASK_ABOUT_MONEY);
        })
        .costs("a", 30)
    };
    check(
        script()
            .show_money()
            .approve("b")
            .set(|desk| {
                let run = Some("run_00000000000000000000000000000007");
                desk.budget_row("raised", budget(Scope::Run, run, Period::Total, 70));
            })
            .approve_as("b", "eve", &["treasurer"])
            .show_money(),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":0.3,"cap":0.6}
            6 node.queued b
            7 governance.decided b "hold" null
            8 approval.requested b apr1 policy "Let `b` do this?\ngo\ncap budget of run has 0.30 left of 0.60, and it may cost 0.40"
            9 run.status.changed paused (approval)
            money: run/run held=0.30 spent=0.30
            refused: not_approver (bob may not decide this approval: its approvers are treasurer)
            10 approval.resolved b apr1 approved by eve
            11 run.status.changed running (approval)
            12 node.started b attempt=1 dispatch=1
            money: run/run held=0.70 spent=0.30
        "#]],
    );
    check(
        script().approve_as("b", "eve", &["treasurer"]).approve_as("b", "eve", &["treasurer"]),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":0.3,"cap":0.6}
            6 node.queued b
            7 governance.decided b "hold" null
            8 approval.requested b apr1 policy "Let `b` do this?\ngo\ncap budget of run has 0.30 left of 0.60, and it may cost 0.40"
            9 run.status.changed paused (approval)
            10 approval.resolved b apr1 approved by eve
            11 run.status.changed running (approval)
            12 governance.decided b "hold" null
            13 approval.requested b apr2 policy "Let `b` do this?\ngo\ncap budget of run has 0.30 left of 0.60, and it may cost 0.40"
            14 run.status.changed paused (approval)
            15 approval.resolved b apr2 approved by eve
            16 run.status.changed running (approval)
            17 governance.decided b "hold" null
            18 approval.requested b apr3 policy "Let `b` do this?\ngo\ncap budget of run has 0.30 left of 0.60, and it may cost 0.40"
            19 run.status.changed paused (approval)
        "#]],
    );
    check(
        script().answered(
            "b",
            (Decision::Reject, Some("too dear")),
            ("eve", &["treasurer"]),
            json!(null),
        ),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 node.started a attempt=1 dispatch=1
            4 node.completed a {}
            5 budget.alert {"kind":"threshold","account":"run/run","percent":50,"spent":0.3,"cap":0.6}
            6 node.queued b
            7 governance.decided b "hold" null
            8 approval.requested b apr1 policy "Let `b` do this?\ngo\ncap budget of run has 0.30 left of 0.60, and it may cost 0.40"
            9 run.status.changed paused (approval)
            10 approval.resolved b apr1 rejected by eve
            11 run.status.changed running (approval)
            12 node.failed b approval_rejected: rejected by eve: too dear
            13 run.failed approval_rejected: `b` failed: rejected by eve: too dear
        "#]],
    );
}

#[test]
fn a_block_behind_a_question_about_money_still_blocks() {
    let no = format!("{ASK_ABOUT_MONEY} @id(\"no\") forbid (principal, action, resource);");
    check(
        Script::flow("budget: {max_cost_cents: 1}\nsteps: [{id: a, command: go}]")
            .under(|desk| {
                desk.quoted(&["a"], 40);
                desk.policies = rules(&no);
            })
            .show_gates("a"),
        expect![[r#"
            1 run.started
            2 node.queued a
            3 governance.decided a "block" "policy_rules"
            4 node.failed a policy_blocked: policy own.cedar/no forbids it (change the step, or policy own.cedar/no)
            5 run.failed policy_blocked: `a` failed: policy own.cedar/no forbids it (change the step, or policy own.cedar/no)
            gates of a: "block"
              budget_envelopes hold: cap budget of run has 0.01 left of 0.01, and it may cost 0.40
              policy_rules block: policy own.cedar/no forbids it
        "#]],
    );
}
