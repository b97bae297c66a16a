//! Dependencies: implied ones, order, cycles.

use super::{Script, check_each};
use expect_test::expect;

#[test]
fn every_place_that_names_a_step_makes_a_dependency() {
    let text = "
        name: tiny
        steps:
          - {id: aa, command: go, outputs: {list: array}}
          - {id: bb, command: go}
          - {id: zz, @}
        ";
    check_each(
        text,
        &["steps.2.depends_on"],
        &[
            "command: go",
            "command: go, depends_on: [bb, aa]",
            "command: go, stdin: $aa.stdout",
            "command: go, stdin: $aa.approved",
            "command: go, inputs: {x: aa.list}",
            "command: go, inputs: {x: {from: [bb.x, aa.list]}}",
            "command: go, condition: aa.list.length > 0 or $bb.stdout == ''",
            "command: '${aa.outputs.list} ${bb.stdout}'",
            "command: '$${aa.outputs.list}'",
            "command: '${list}'",
            "command: go, condition: list.length > 0",
            "command: go, for_each: $aa.outputs.list",
            "command: go, for_each: {items: $aa.outputs.list}",
            "command: go, for_each: $list",
            "command: go, success_criteria: [outputs.x > 1, bb.n > aa.n]",
            "approval: {summary: 'see ${aa.list}'}",
            "workflow_ref: other, args: {x: '${aa.list}', y: [1, {z: 'a ${bb.outputs.n}'}]}",
            "workflow_ref: other, args: {x: '${list}'}",
            "command: '${aa.outputs.list}', depends_on: [aa], stdin: $aa.json",
        ],
        expect![[r#"
            command: go => ok | steps.2.depends_on = -
            command: go, depends_on: [bb, aa] => ok | steps.2.depends_on = ["aa","bb"]
            command: go, stdin: $aa.stdout => ok | steps.2.depends_on = ["aa"]
            command: go, stdin: $aa.approved => ok | steps.2.depends_on = ["aa"]
            command: go, inputs: {x: aa.list} => ok | steps.2.depends_on = ["aa"]
            command: go, inputs: {x: {from: [bb.x, aa.list]}} => ok | steps.2.depends_on = ["aa","bb"]
            command: go, condition: aa.list.length > 0 or $bb.stdout == '' => ok | steps.2.depends_on = ["aa","bb"]
            command: '${aa.outputs.list} ${bb.stdout}' => ok | steps.2.depends_on = ["aa","bb"]
            command: '$${aa.outputs.list}' => ok | steps.2.depends_on = -
            command: '${list}' => ok | steps.2.depends_on = -
            command: go, condition: list.length > 0 => ok | steps.2.depends_on = -
            command: go, for_each: $aa.outputs.list => ok | steps.2.depends_on = ["aa"]
            command: go, for_each: {items: $aa.outputs.list} => ok | steps.2.depends_on = ["aa"]
            command: go, for_each: $list => ok | steps.2.depends_on = -
            command: go, success_criteria: [outputs.x > 1, bb.n > aa.n] => ~5:46 undeclared_output steps[2].success_criteria[0]: step `zz` declares no output `x` | ~5:61 undeclared_output steps[2].success_criteria[1]: step `bb` declares no output `n` (declare it under `outputs`; the text of `bb` is `bb.stdout`) | ~5:68 undeclared_output steps[2].success_criteria[1]: step `aa` declares no output `n` | ok | steps.2.depends_on = ["aa","bb"]
            approval: {summary: 'see ${aa.list}'} => ok | steps.2.depends_on = ["aa"]
            workflow_ref: other, args: {x: '${aa.list}', y: [1, {z: 'a ${bb.outputs.n}'}]} => ~5:28 unresolved_reference steps[2].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~5:75 undeclared_output steps[2].args.y[1].z: step `bb` declares no output `n` (declare it under `outputs`; the text of `bb` is `bb.stdout`) | ok | steps.2.depends_on = ["aa","bb"]
            workflow_ref: other, args: {x: '${list}'} => ~5:28 unresolved_reference steps[2].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok | steps.2.depends_on = -
            command: '${aa.outputs.list}', depends_on: [aa], stdin: $aa.json => ok | steps.2.depends_on = ["aa"]
        "#]],
    );
}

#[test]
fn an_input_hides_the_step_of_its_name_in_templates() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: aa, command: go}
          - {id: bb, command: go, outputs: {x: string}}
          - {id: zz, command: '${aa.x}', inputs: {aa: bb.x}}
        ",
    )
    .order()
    .check(expect![[r#"
        ok
        aa <-
        bb <-
        zz <- bb
        wave: aa bb
        wave: zz
    "#]]);
}

#[test]
fn dependencies_stand_in_document_order_and_waves_in_id_order() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: last, command: go, depends_on: [join, root_b, alone]}
          - {id: join, command: go, depends_on: [right, left]}
          - {id: right, command: go, depends_on: [root_b]}
          - {id: left, command: go, stdin: $root_a.stdout}
          - {id: root_b, command: go}
          - {id: root_a, command: go}
          - {id: alone, command: go}
        ",
    )
    .order()
    .check(expect![[r#"
        ok
        last <- join root_b alone
        join <- right left
        right <- root_b
        left <- root_a
        root_b <-
        root_a <-
        alone <-
        wave: alone root_a root_b
        wave: left right
        wave: join
        wave: last
    "#]]);
}

#[test]
fn a_phase_orders_nothing() {
    Script::lobsterx(
        "
        name: tiny
        phases: [first, second]
        steps:
          - {id: aa, command: go, phase: second}
          - {id: bb, command: go, phase: first}
        ",
    )
    .order()
    .check(expect![[r#"
        ok
        aa <-
        bb <-
        wave: aa bb
    "#]]);
}

#[test]
fn a_cycle_is_named_in_order() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: before, command: go}
          - {id: aa, command: go, depends_on: [before, bb]}
          - {id: bb, command: '${cc.outputs.x}'}
          - {id: cc, command: go, stdin: $aa.stdout}
          - {id: after, command: go, depends_on: [cc]}
        ",
    )
    .check(expect![[r#"
        4:10 cycle_detected steps[1]: the dependencies form a cycle: aa -> bb -> cc -> aa (each step in the list waits for the next one; remove one of the dependencies)
        ~5:26 undeclared_output steps[2].command: step `cc` declares no output `x` (declare it under `outputs`; the text of `cc` is `cc.stdout`)
    "#]]);
}

#[test]
fn every_cycle_is_named() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: aa, command: go, depends_on: [bb]}
          - {id: bb, command: go, depends_on: [aa]}
          - {id: cc, command: go, condition: dd.x == 1}
          - {id: dd, command: go, inputs: {x: cc.x}}
          - {id: ee, command: go, for_each: $ee.outputs.list}
          - {id: ff, command: go, depends_on: [ee, cc]}
        ",
    )
    .check(expect![[r#"
        3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> bb -> aa (each step in the list waits for the next one; remove one of the dependencies)
        5:10 cycle_detected steps[2]: the dependencies form a cycle: cc -> dd -> cc (each step in the list waits for the next one; remove one of the dependencies)
        7:10 cycle_detected steps[4]: the dependencies form a cycle: ee -> ee (each step in the list waits for the next one; remove one of the dependencies)
    "#]]);
}

#[test]
fn a_step_cannot_wait_for_itself() {
    let text = "
        name: tiny
        steps:
          - {id: aa, @}
        ";
    check_each(
        text,
        &[],
        &[
            "command: go, depends_on: [aa]",
            "command: go, stdin: $aa.stdout",
            "command: go, inputs: {x: aa.x}",
            "command: go, condition: aa.x == 1",
            "command: '${aa.x}'",
            "approval: {summary: '${aa.x}'}",
            "workflow_ref: other, args: {x: '${aa.x}'}",
            "command: go, for_each: $aa.outputs.list",
            "command: go, success_criteria: [aa.stdout == 'x']",
        ],
        expect![[r#"
            command: go, depends_on: [aa] => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies)
            command: go, stdin: $aa.stdout => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies)
            command: go, inputs: {x: aa.x} => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies)
            command: go, condition: aa.x == 1 => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies) | ~3:38 undeclared_output steps[0].condition: step `aa` declares no output `x`
            command: '${aa.x}' => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies) | ~3:26 undeclared_output steps[0].command: step `aa` declares no output `x`
            approval: {summary: '${aa.x}'} => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies) | ~3:37 undeclared_output steps[0].approval.summary: step `aa` declares no output `x`
            workflow_ref: other, args: {x: '${aa.x}'} => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies) | ~3:28 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded
            command: go, for_each: $aa.outputs.list => 3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> aa (each step in the list waits for the next one; remove one of the dependencies)
            command: go, success_criteria: [aa.stdout == 'x'] => ok
        "#]],
    );
}

#[test]
fn a_cycle_and_other_mistakes_are_told_together() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: aa, command: go, depends_on: [bb, absent]}
          - {id: bb, command: go, depends_on: [aa]}
          - {id: bb, command: go, timeout: 0}
        ",
    )
    .check(expect![[r#"
        3:10 cycle_detected steps[0]: the dependencies form a cycle: aa -> bb -> aa (each step in the list waits for the next one; remove one of the dependencies)
        3:44 unknown_step steps[0].depends_on[1]: there is no step `absent`
        5:10 duplicate_step_id steps[2].id: a step called `bb` exists already
        5:36 bad_duration steps[2].timeout: a duration cannot be zero
    "#]]);
}

#[test]
fn a_long_cycle_is_shown_shortened() {
    let mut text = "name: tiny\nsteps:\n".to_owned();
    for at in 0..500 {
        let next = (at + 1) % 500;
        text.push_str(&format!("  - {{id: step_{at}, command: go, depends_on: [step_{next}]}}\n"));
    }
    let told = Script::lobsterx(&text).transcript();
    assert!(told.starts_with(
        "3:10 cycle_detected steps[0]: the dependencies form a cycle: step_0 -> step_1 -> "
    ));
    assert!(told.len() < 700 && told.lines().count() == 1, "{told}");
}

#[test]
fn the_number_of_steps_has_a_bound() {
    let steps = |count: usize| {
        let mut text = "name: tiny\nsteps:\n".to_owned();
        for at in 0..count {
            text.push_str(&format!("- {{id: s{at}, command: go}}\n"));
        }
        Script::lobsterx(&text).transcript()
    };
    assert_eq!(steps(10_000), "ok\n");
    expect![[r#"
        3:3 too_many_steps steps: there are 10001 steps; the limit is 10000
    "#]]
    .assert_eq(&steps(10_001));
}

#[test]
fn mistakes_in_every_step_do_not_take_forever() {
    // Ten thousand unknown names, each far from all of ten thousand ids.
    let mut text = "name: tiny\nsteps:\n".to_owned();
    for at in 0..10_000 {
        text.push_str(&format!(
            "- {{id: s{at}, command: go, condition: qqqqqqqqqqqq.x{at} == 1}}\n"
        ));
    }
    let told = Script::lobsterx(&text).transcript();
    assert_eq!(told.lines().count(), 201);
    assert!(told.ends_with("more_problems: 9800 more problems are not shown\n"), "{told}");
}
