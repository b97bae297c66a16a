//! `defaults`: fields of every step that does not set them.

use super::{Script, check_each};
use expect_test::expect;

#[test]
fn any_field_but_a_steps_own_may_be_a_default() {
    check_each(
        "
        name: tiny
        roles: {clerk: {}}
        phases: [early]
        defaults: {@}
        steps:
          - {id: one, role: clerk, command: go}
        ",
        &["steps.0"],
        &[
            "agent: x",
            "stdin: $one.stdout",
            "condition: true",
            "outputs: {risk: string}",
            "success_criteria: [outputs.risk == 'x'], outputs: {risk: }",
            "timeout: 5",
            "on_failure: skip",
            "retry: {attempts: 3}",
            "parallel_failure_policy: fail_fast",
            "approval: required",
            "for_each: [a], max_items: 2, max_parallel: 3",
            "phase: early",
            "model: m",
            "tools: [a]",
            "capabilities: [b]",
            "max_output_tokens: 5",
            "max_cost_cents: 5",
            "moderation: both",
            "on_parent_failure: skip",
            "merge: concat",
            "repair: {reask: 2}",
            "cwd: here, env: {A: b}",
            "memory: m",
            "idempotent: false",
            "role: absent",
            "command: other",
            "depends_on: []",
        ],
        expect![[r#"
            agent: x => ok | steps.0 = {"agent":"x","id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            stdin: $one.stdout => 6:10 cycle_detected steps[0]: the dependencies form a cycle: one -> one (each step in the list waits for the next one; remove one of the dependencies)
            condition: true => ok | steps.0 = {"condition":"true","id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            outputs: {risk: string} => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","outputs":{"risk":{"type":"string"}},"parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            success_criteria: [outputs.risk == 'x'], outputs: {risk: } => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","outputs":{"risk":{}},"parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","success_criteria":["outputs.risk == 'x'"],"timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            timeout: 5 => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":5000,"work":{"kind":"command","command":"go"}}
            on_failure: skip => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"skip","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            retry: {attempts: 3} => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":3,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            parallel_failure_policy: fail_fast => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"fail_fast","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            approval: required => ok | steps.0 = {"approval":{"covers_retries":false,"not_initiator":false,"quorum":1},"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            for_each: [a], max_items: 2, max_parallel: 3 => ok | steps.0 = {"for_each":{"items":{"list":["a"]},"max_items":2,"max_parallel":3},"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            phase: early => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","phase":"early","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            model: m => ok | steps.0 = {"id":"one","idempotent":true,"model":"m","moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            tools: [a] => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"tools":["a"],"work":{"kind":"command","command":"go"}}
            capabilities: [b] => ok | steps.0 = {"capabilities":["b"],"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            max_output_tokens: 5 => ok | steps.0 = {"id":"one","idempotent":true,"max_output_tokens":5,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            max_cost_cents: 5 => ok | steps.0 = {"id":"one","idempotent":true,"max_cost":5000000,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            moderation: both => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"both","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            on_parent_failure: skip => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"skip","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            merge: concat => ok | steps.0 = {"id":"one","idempotent":true,"merge":"concat","moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            repair: {reask: 2} => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","reask":2,"retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            cwd: here, env: {A: b} => ok | steps.0 = {"cwd":"here","env":{"A":"b"},"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            memory: m => ok | steps.0 = {"id":"one","idempotent":true,"memory":"m","moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            idempotent: false => ok | steps.0 = {"id":"one","idempotent":false,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            role: absent => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            command: other => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
            depends_on: [] => ok | steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"role":"clerk","timeout_ms":600000,"work":{"kind":"command","command":"go"}}
        "#]],
    );
}

#[test]
fn a_steps_own_fields_are_no_defaults() {
    check_each(
        "
        name: tiny
        defaults: @
        steps: [{id: one, command: go}, {id: two, command: go}]
        ",
        &["steps.1.timeout_ms"],
        &[
            "{id: x}",
            "{library_step: x}",
            "{timeout: 5, id: 7}",
            "{}",
            "null",
            "[]",
            "text",
            "{timeout: }",
            "{tmeout: 5}",
            "{timeout: 0}",
            "{on_failure: continue}",
            "{retry: {attempts: 0, attempt: 1}}",
        ],
        expect![[r#"
            {id: x} => 2:12 bad_value defaults.id: `id` cannot be a default
            {library_step: x} => 2:12 bad_value defaults.library_step: `library_step` cannot be a default
            {timeout: 5, id: 7} => 2:24 bad_value defaults.id: `id` cannot be a default
            {} => ok | steps.1.timeout_ms = 600000
            null => ok | steps.1.timeout_ms = 600000
            [] => 2:11 wrong_type defaults: expected a map, found a list
            text => 2:11 wrong_type defaults: expected a map, found a string
            {timeout: } => ok | steps.1.timeout_ms = 600000
            {tmeout: 5} => 2:12 unknown_field defaults.tmeout: unknown field `tmeout` (did you mean `timeout`?)
            {timeout: 0} => 2:21 bad_duration defaults.timeout: a duration cannot be zero
            {on_failure: continue} => ~2:24 deprecated_value defaults.on_failure: `continue` is an old name of `skip` (write `skip`) | ok | steps.1.timeout_ms = 600000
            {retry: {attempts: 0, attempt: 1}} => 2:30 bad_value defaults.retry.attempts: 0 is not a whole number from 1 to 100 | 2:33 unknown_field defaults.retry.attempt: unknown field `attempt` (did you mean `attempts`?)
        "#]],
    );
}

#[test]
fn a_null_leaves_the_default() {
    Script::lobsterx(
        "
        name: tiny
        defaults: {timeout: 5, command: go, model: m}
        steps:
          - {id: one, timeout: , command: ~, model: null}
          - {id: two, timeout: 6, command: run, model: n}
        ",
    )
    .show("steps.0.timeout_ms")
    .show("steps.0.work.command")
    .show("steps.0.model")
    .show("steps.1.timeout_ms")
    .show("steps.1.work.command")
    .show("steps.1.model")
    .check(expect![[r#"
        ok
        steps.0.timeout_ms = 5000
        steps.0.work.command = "go"
        steps.0.model = "m"
        steps.1.timeout_ms = 6000
        steps.1.work.command = "run"
        steps.1.model = "n"
    "#]]);
}

#[test]
fn maps_are_not_merged_with_the_default() {
    Script::lobsterx(
        "
        name: tiny
        defaults: {retry: {attempts: 5, backoff_ms: 1}, env: {A: a}, approval: {quorum: 3}}
        steps:
          - {id: one, command: go, retry: {backoff_ms: 2}, env: {B: b}, approval: {required: false}}
        ",
    )
    .show("steps.0.retry")
    .show("steps.0.env")
    .show("steps.0.approval")
    .check(expect![[r#"
        ok
        steps.0.retry = {"attempts":1,"backoff_ms":2,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]}
        steps.0.env = {"B":"b"}
        steps.0.approval = -
    "#]]);
}

#[test]
fn problems_of_a_default_are_told_once() {
    Script::lobsterx(
        "
        name: tiny
        defaults:
          command: ${absent} and ${nothing} and ${absent}
          condition: nowhere.x == 1 and nothere.y == 2
          on_failure: fail
          role: ghost
          phase: never
          stdin: $gone.stdout
          depends_on: [gone, lost]
          inputs: {x: gone.y, z: lost}
          timeout: 0
          cwd: /etc
          env: {'1': x}
          xyzzy: 1
        steps: [{id: one}, {id: two}, {id: three}]
        ",
    )
    .check(expect![[r#"
        ~3:14 unknown_variable steps[0].command: nothing sets `absent`
        ~3:28 unknown_variable steps[0].command: nothing sets `nothing`
        ~3:43 unknown_variable steps[0].command: nothing sets `absent`
        4:14 unknown_identifier steps[0].condition: `nowhere` is not a step, variable or argument
        4:33 unknown_identifier steps[0].condition: `nothere` is not a step, variable or argument
        ~5:15 deprecated_value defaults.on_failure: `fail` is an old name of `halt` (write `halt`)
        6:9 unknown_role steps[0].role: the role `ghost` is not declared (declare it under `roles`)
        7:10 unknown_phase steps[0].phase: the phase `never` is not declared (declare it under `phases`)
        8:10 unknown_step steps[0].stdin: there is no step `gone` (did you mean `one`?)
        9:16 unknown_step steps[0].depends_on[0]: there is no step `gone` (did you mean `one`?)
        9:22 unknown_step steps[0].depends_on[1]: there is no step `lost`
        10:15 unknown_step steps[0].inputs.x: there is no step `gone` (did you mean `one`?)
        10:26 bad_reference steps[0].inputs.z: `lost` does not name a step's value (write `z: id.field`)
        11:12 bad_duration defaults.timeout: a duration cannot be zero
        12:8 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
        13:9 bad_value steps[0].env.1: `1` cannot be the name of a variable
        14:3 unknown_field defaults.xyzzy: unknown field `xyzzy`
    "#]]);
}

#[test]
fn one_bad_default_does_not_hide_other_problems() {
    let mut text =
        "name: tiny\ndefaults: {on_failure: fail, command: '${absent}', role: ghost}\nsteps:\n"
            .to_owned();
    for at in 0..300 {
        text.push_str(&format!("  - {{id: s{at}}}\n"));
    }
    text.push_str("  - {id: last, timeout: 0}\n");
    Script::lobsterx(&text).check(expect![[r#"
        ~2:24 deprecated_value defaults.on_failure: `fail` is an old name of `halt` (write `halt`)
        ~2:42 unknown_variable steps[0].command: nothing sets `absent`
        2:58 unknown_role steps[0].role: the role `ghost` is not declared (declare it under `roles`)
        304:25 bad_duration steps[300].timeout: a duration cannot be zero
    "#]]);
}

#[test]
fn bounds_of_a_fan_out_are_for_steps_that_fan_out() {
    Script::lobsterx(
        "
        name: tiny
        defaults: {max_items: 5, max_parallel: 2}
        steps:
          - {id: one, command: go}
          - {id: two, command: go, for_each: [a]}
          - {id: three, command: go, for_each: {items: [a], max_items: 3}}
          - {id: four, command: go, for_each: [a], max_parallel: 1}
        ",
    )
    .show("steps.0.for_each")
    .show("steps.1.for_each")
    .show("steps.2.for_each")
    .show("steps.3.for_each")
    .check(expect![[r#"
        ok
        steps.0.for_each = -
        steps.1.for_each = {"items":{"list":["a"]},"max_items":5,"max_parallel":2}
        steps.2.for_each = {"items":{"list":["a"]},"max_items":3,"max_parallel":2}
        steps.3.for_each = {"items":{"list":["a"]},"max_items":5,"max_parallel":1}
    "#]]);
}

#[test]
fn a_default_that_clashes_with_a_step_is_told() {
    Script::lobsterx(
        "
        name: tiny
        defaults: {retry: {attempts: 2}, command: go}
        steps:
          - {id: one, on_failure: retry_once}
          - {id: two, on_failure: skip}
          - {id: three, workflow_ref: other}
        ",
    )
    .check(expect![[r#"
        2:19 conflicting_fields steps[0].retry: `retry` and `on_failure: retry_once` both define retries
        6:31 conflicting_fields steps[2].workflow_ref: a step runs either a command or another workflow
        ~6:31 unresolved_reference steps[2].workflow_ref: workflow `other` cannot be checked: no registry is loaded
    "#]]);
}

#[test]
fn what_steps_take_over_cannot_be_multiplied_without_bound() {
    let steps: String = (0..10_000).map(|n| format!("- {{id: s{n}}}\n")).collect();
    let document = |command: &str| {
        format!("name: big\ndefaults: {{agent: mock, command: {command}}}\nsteps:\n{steps}")
    };
    assert_eq!(Script::lobsterx(&document("short")).transcript(), "ok\n");
    let told = Script::lobsterx(&document(&"x".repeat(600_000))).transcript();
    assert_eq!(told.matches("too_many_nodes").count(), 1, "{told}");
    let library = format!("library: {{lib: {{command: {}}}}}", "x".repeat(600_000));
    let steps: String = (0..100).map(|n| format!("- {{id: s{n}, library_step: lib}}\n")).collect();
    let document = format!("name: big\nsteps:\n{steps}");
    let told = Script::lobsterx(&document).registry(&library).transcript();
    assert_eq!(told.matches("too_many_nodes").count(), 1, "{told}");
}
