//! Questions and answers, without a terminal.

use crate::world::World;
use expect_test::{Expect, expect};

const ASK: &str = "
name: ask
steps:
  - {id: price, command: What does it cost?, outputs: {usd: integer}}
  - id: sure
    approval: {required: true, summary: 'Pay ${price.usd} USD?'}
    depends_on: [price]
  - {id: pay, command: 'pay ${usd}', depends_on: [sure], outputs: {paid: string}}
";
const INPUT: &str = "
name: input
steps:
  - {id: amount, approval: required, outputs: {usd: {type: integer, minimum: 1}, note: {type: string, required: false}}}
  - {id: pay, command: 'pay ${usd}', depends_on: [amount], outputs: {paid: string}}
";
const FAILS: &str = "
name: fails
steps:
  - {id: pay, command: pay, on_failure: retry_once_then_escalate, outputs: {paid: string}}
  - {id: tell, command: tell, depends_on: [pay]}
";
const MOCK: &str = "
price: {outputs: {usd: 12}}
pay: {outputs: {paid: ok}}
tell: {text: told}
";

fn world(document: &str) -> World {
    World::new().file("doc.lobsterx.yaml", document).file("mock.yaml", MOCK)
}

fn check(world: &World, args: &[&str], expected: &Expect) {
    expected.assert_eq(&world.told(args));
}

const RUN: [&str; 4] = ["run", "doc.lobsterx.yaml", "--mock", "mock.yaml"];

fn resume(world: &World, run: &str) -> String {
    world.told(&["resume", run, "--mock", "mock.yaml"])
}

#[test]
fn a_question_ends_the_command_and_its_answer_lets_the_run_go_on() {
    let world = world(ASK);
    check(
        &world,
        &RUN,
        &expect![[r#"
            stderr:
            RUN-1 started
            completed  price  TIME
            held  sure  APR-1: Pay 12 USD?
            RUN-1 waits for an approval
            sure: Pay 12 USD?
              sluice approvals approve APR-1
              sluice approvals reject APR-1 --reason TEXT
            then
              sluice resume RUN-1 --mock mock.yaml
            exit 4
        "#]],
    );
    let (run, question) = (world.newest(), world.question());
    check(
        &world,
        &["approvals", "list"],
        &expect![[r#"
            stdout:
            APPROVAL  WORKFLOW  STEP  REQUESTED  ABOUT
            APR-1  ask  sure  WHEN  Pay 12 USD?
            exit 0
        "#]],
    );
    check(
        &world,
        &["approvals", "show", &question],
        &expect![[r#"
            stdout:
            APR-1
              Pay 12 USD?

              run  RUN-1 (ask)
              step  sure
              status  pending
              requested  WHEN
              expires  WHEN

            digest f5982378a9c7809e33f0b285fd06ab0d2d3f22821a2fd02ccc75e3b64e835d9f
                workflow  ask
                step  sure
                question  Pay 12 USD?
                definition  9a50561840b02a3cd062847f69d9fedc66396f259a366ef84d01555445665c17

            sluice approvals approve APR-1
            sluice approvals reject APR-1 --reason TEXT
            exit 0
        "#]],
    );
    assert_eq!(world.json(&["approvals", "show", &question, "--json"])["status"], "pending");
    check(
        &world,
        &["approvals", "approve", &question, "--comment", "fine"],
        &expect![[r#"
        stdout:
        sure is approved
        `sluice resume RUN-1` continues the run
        exit 0
    "#]],
    );
    check(
        &world,
        &["approvals", "approve", &question],
        &expect![[r#"
        stderr:
        error[approval_resolved]: the approval is approved already
         |
         = help: `sluice approvals list` lists the open approvals
        exit 2
    "#]],
    );
    expect![[r#"
        stderr:
        RUN-1 continues
        completed  pay  TIME
        stdout:
        completed in TIME
          paid: ok
          usd: 12
        exit 0
    "#]]
    .assert_eq(&resume(&world, &run));
    check(
        &world,
        &["approvals", "list"],
        &expect![[r#"
        stderr:
        no approval is pending
        exit 0
    "#]],
    );
    check(
        &world,
        &["approvals", "show", &question[..30]],
        &expect![[r#"
            stdout:
            APR-1
              Pay 12 USD?

              run  RUN-1 (ask)
              step  sure
              status  approved by ada
              comment  fine
              requested  WHEN
              expires  WHEN
              votes  1 of 1 ada

            digest f5982378a9c7809e33f0b285fd06ab0d2d3f22821a2fd02ccc75e3b64e835d9f
                workflow  ask
                step  sure
                question  Pay 12 USD?
                definition  9a50561840b02a3cd062847f69d9fedc66396f259a366ef84d01555445665c17
            exit 0
        "#]],
    );
    check(
        &world,
        &["approvals", "show", "apr_00"],
        &expect![[r#"
        stderr:
        error[approval_unknown]: there is no approval `apr_00`
         |
         = help: `sluice approvals list` lists the open approvals
        exit 2
    "#]],
    );
}

#[test]
fn json_is_printed_when_a_run_waits() {
    let world = world(ASK);
    let output = world.output(&[&RUN[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(4));
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&run["status"], &run["pause_reason"]), (&"paused".into(), &"approval".into()));
    assert_eq!(run["approvals"][0]["summary"], "Pay 12 USD?");
}

#[test]
fn a_rejection_needs_a_reason_and_fails_the_run() {
    let world = world(ASK);
    world.output(&RUN);
    let (run, question) = (world.newest(), world.question());
    assert_eq!(world.output(&["approvals", "reject", &question]).status.code(), Some(2));
    check(
        &world,
        &["approvals", "reject", &question, "--reason", " "],
        &expect![[r#"
        stderr:
        error[comment_missing]: a rejection needs a comment that says why
         |
         = help: give a reason with `--reason TEXT`
        exit 2
    "#]],
    );
    check(
        &world,
        &["approvals", "retry", &question],
        &expect![[r#"
            stderr:
            error[wrong_decision]: this approval takes approve or reject
             |
             = help: `sluice approvals show` lists the allowed decisions
            exit 2
        "#]],
    );
    let reject = ["approvals", "reject", &question, "--reason", "too dear", "--as", "bob"];
    check(
        &world,
        &reject,
        &expect![[r#"
        stdout:
        sure is rejected
        exit 0
    "#]],
    );
    let state = world.state(&run);
    assert_eq!(
        (&state["status"], &state["error_code"]),
        (&"failed".into(), &"approval_rejected".into())
    );
}

#[test]
fn values_are_asked_for_and_checked() {
    let world = world(INPUT);
    let output = world.output(&[&RUN[..], &["--yes"]].concat());
    assert_eq!(output.status.code(), Some(4), "a plain yes is no answer");
    let (run, question) = (world.newest(), world.question());
    check(
        &world,
        &["approvals", "show", &question],
        &expect![[r#"
            stdout:
            APR-1
              Approve `amount`?

              run  RUN-1 (input)
              step  amount
              status  pending
              requested  WHEN
              expires  WHEN
              value  usd: integer
              value  note: string, optional

            digest 60d542076a2138e0f86b21ff16f4c3a6340fc5ad04c701306674c6adcf5106c4
                workflow  input
                step  amount
                question  Approve `amount`?
                definition  64f04cc4ed503b7fca9cda70ecb0012f79002d97ddffcefa907389287007d69d

            sluice approvals approve APR-1
            sluice approvals reject APR-1 --reason TEXT
            exit 0
        "#]],
    );
    check(
        &world,
        &["approvals", "approve", &question],
        &expect![[r#"
        stderr:
        error[invalid_values]: the values do not fit
         |
         = note: usd is required
         = help: give each with `--set NAME=VALUE`
        exit 2
    "#]],
    );
    check(
        &world,
        &["approvals", "approve", &question, "--set", "usd=0"],
        &expect![[r#"
        stderr:
        error[invalid_values]: the values do not fit
         |
         = note: usd is 0, below the minimum 1
         = help: give each with `--set NAME=VALUE`
        exit 2
    "#]],
    );
    check(
        &world,
        &["approvals", "approve", &question, "--set", "usd=12"],
        &expect![[r#"
        stdout:
        amount is approved
        `sluice resume RUN-1` continues the run
        exit 0
    "#]],
    );
    expect![[r#"
        stderr:
        RUN-1 continues
        completed  pay  TIME
        stdout:
        completed in TIME
          paid: ok
          usd: 12
        exit 0
    "#]]
    .assert_eq(&resume(&world, &run));
}

#[test]
fn a_yes_is_no_choice() {
    let world = world(FAILS)
        .file("mock.yaml", "pay: {error: down, error_code: provider_error}\ntell: {text: told}");
    check(
        &world,
        &[&RUN[..], &["--yes"]].concat(),
        &expect![[r#"
            stderr:
            RUN-1 started
            retrying  pay  attempt 1 failed: down; again after TIME
            held  pay  APR-1: `pay` failed: down. Retry, skip or abort?
            RUN-1 waits for an approval
            pay: `pay` failed: down. Retry, skip or abort?
              sluice approvals retry APR-1
              sluice approvals skip APR-1
              sluice approvals abort APR-1
            then
              sluice resume RUN-1 --mock mock.yaml
            exit 4
        "#]],
    );
}

#[test]
fn an_escalation_takes_a_choice() {
    let mock = "
pay:
  - {error: down, error_code: provider_error}
  - {error: down, error_code: provider_error}
  - {outputs: {paid: at last}}
tell: {text: told}
";
    for (choice, exit, status) in
        [("retry", 0, "completed"), ("skip", 0, "completed"), ("abort", 1, "failed")]
    {
        let world = world(FAILS).file("mock.yaml", mock);
        assert_eq!(world.output(&RUN).status.code(), Some(4));
        let (run, question) = (world.newest(), world.question());
        let answered = world.output(&["approvals", choice, &question]);
        assert_eq!(answered.status.code(), Some(0), "{choice}");
        if !world.state(&run)["is_running"].as_bool().unwrap() {
            assert_eq!(world.state(&run)["status"], status, "{choice} leaves nothing to do");
            continue;
        }
        let output = world.output(&["resume", &run, "--mock", "mock.yaml"]);
        assert_eq!(output.status.code(), Some(exit), "{choice}: {}", crate::world::shown(&output));
        assert_eq!(world.state(&run)["status"], status, "{choice}");
    }
}

#[test]
fn a_childs_question_is_the_familys() {
    let parent = "name: parent\nsteps:\n  - {id: below, workflow_ref: ask}\n  \
                  - {id: after, command: go on, depends_on: [below]}\n";
    let world = world(ASK)
        .file("parent.lobsterx.yaml", parent)
        .file("mock.yaml", &format!("{MOCK}\nafter: {{text: done}}\n"));
    let run = ["run", "parent.lobsterx.yaml", "--mock", "mock.yaml"];
    check(
        &world,
        &run,
        &expect![[r#"
            stderr:
            RUN-1 started
            RUN-1 waits for an approval
            sure: Pay 12 USD?
              sluice approvals approve APR-1
              sluice approvals reject APR-1 --reason TEXT
            then
              sluice resume RUN-1 --mock mock.yaml
            exit 4
        "#]],
    );
    check(
        &world,
        &["approvals", "approve", &world.question()],
        &expect![[r#"
        stdout:
        sure is approved
        `sluice resume RUN-1` continues the run
        exit 0
    "#]],
    );
    let list = world.json(&["runs", "list", "--json", "--workflow", "parent"]);
    let root = list["data"][0]["run_id"].as_str().unwrap();
    expect![[r#"
        stderr:
        RUN-1 continues
        completed  below  TIME
        completed  after  TIME
        stdout:
        completed in TIME
          after: done
        exit 0
    "#]]
    .assert_eq(&resume(&world, root));
    assert_eq!(world.output(&[&run[..], &["--yes"]].concat()).status.code(), Some(0));
}

#[test]
fn a_lens_node_waits_for_a_value_and_goes_on_with_it() {
    let lens = "
name: tone
lenses: {use: {versions: {1: {template: 'in a [[tone]] tone'}}}}
nodes:
  - {id: ask, config: {human_input: {schema: {tone: {type: string, enum: [warm, dry]}}}}}
  - {id: write, lens_id: use}
edges: [{source_node_id: ask, target_node_id: write, target_param_label: tone}]
";
    let world = World::new().file("tone.lens.yaml", lens).file("mock.yaml", "write: {text: ok}");
    let output = world.output(&["run", "tone.lens.yaml", "--mock", "mock.yaml", "--yes"]);
    assert_eq!(output.status.code(), Some(4), "a plain yes is no answer");
    let (run, question) = (world.newest(), world.question());
    let shown = world.printed(&["approvals", "show", &question]);
    assert!(shown.contains("tone: \"warm\" | \"dry\""), "{shown}");
    let refused = world.output(&["approvals", "approve", &question, "--set", "tone=loud"]);
    assert_eq!(refused.status.code(), Some(2));
    world.printed(&["approvals", "approve", &question, "--set", "tone=warm"]);
    world.printed(&["resume", &run, "--mock", "mock.yaml"]);
    let state = world.state(&run);
    assert_eq!(state["status"], "completed");
    assert_eq!(state["node_results"][1]["prompt"], "in a warm tone");
}
