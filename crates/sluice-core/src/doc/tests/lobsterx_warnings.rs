//! Warnings about valid documents.

use super::{Script, check_each};
use expect_test::expect;

#[test]
fn a_field_both_given_and_answered() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: one, command: go, outputs: {risk: string}}
          - id: two
            command: go
            inputs: {risk: one.risk, other: one.risk, third: one.risk}
            outputs: {third: string, risk: string, fourth: string}
        ",
    )
    .check(expect![[r#"
        ~6:14 input_also_output steps[1].inputs.risk: `risk` is both an input and an output (an agent that repeats an input may change it; remove it from `outputs` to pass it through)
        ~6:47 input_also_output steps[1].inputs.third: `third` is both an input and an output (an agent that repeats an input may change it; remove it from `outputs` to pass it through)
        ok
    "#]]);
}

#[test]
fn outputs_that_a_condition_may_read() {
    check_each(
        "
        name: tiny
        steps:
          - {id: plain, command: go, outputs: {risk: string}, inputs: {through: ask.by}}
          - {id: ask, approval: required, outputs: {reason: string}}
          - {id: many, command: go, for_each: [a], outputs: {n: integer}}
          - {id: child, workflow_ref: other}
          - {id: bare, command: go}
          - {id: last, command: go, condition: '@ == 1'}
        ",
        &[],
        &[
            "plain.risk",
            "plain.outputs.risk",
            "plain.outputs.risk.deep",
            "plain.rsk",
            "plain.outputs.rsk",
            "plain.through",
            "plain.outputs.through",
            "$plain.stdout",
            "plain.stdout",
            "$plain.json.risk",
            "plain.length",
            "plain._skipped",
            "plain.approved",
            "plain.by",
            "plain.items",
            "plain.outputs",
            "plain",
            "plain[0]",
            "$ask.approved",
            "ask.by",
            "ask.at",
            "ask.comment",
            "ask.reason",
            "ask.outputs.approved",
            "ask.items",
            "ask.aproved",
            "many.items",
            "many.outputs.items[0].n",
            "many.n",
            "many.itms",
            "child.anything",
            "bare.x",
            "plain.outputs[\"risk\"]",
            "plain.outputs[\"a b\"]",
        ],
        expect![[r#"
            plain.risk => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.outputs.risk => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.outputs.risk.deep => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.rsk => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `plain` declares no output `rsk` (did you mean `risk`?) | ok
            plain.outputs.rsk => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `plain` declares no output `rsk` (did you mean `risk`?) | ok
            plain.through => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.outputs.through => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            $plain.stdout => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.stdout => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            $plain.json.risk => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.length => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain._skipped => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.approved => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `plain` declares no output `approved` | ok
            plain.by => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `plain` declares no output `by` | ok
            plain.items => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `plain` declares no output `items` | ok
            plain.outputs => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain[0] => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            $ask.approved => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            ask.by => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            ask.at => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            ask.comment => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            ask.reason => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            ask.outputs.approved => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            ask.items => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `ask` declares no output `items` | ok
            ask.aproved => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `ask` declares no output `aproved` | ok
            many.items => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            many.outputs.items[0].n => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            many.n => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `many` declares no output `n` (write `many.items`, or `many.items[0].n`) | ok
            many.itms => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `many` declares no output `itms` (write `many.items`, or `many.items[0]`) | ok
            child.anything => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            bare.x => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `bare` declares no output `x` (declare it under `outputs`; the text of `bare` is `bare.stdout`) | ok
            plain.outputs["risk"] => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok
            plain.outputs["a b"] => ~6:31 unresolved_reference steps[3].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~8:41 undeclared_output steps[5].condition: step `plain` declares no output `a b` | ok
        "#]],
    );
}

#[test]
fn outputs_that_a_success_criterion_may_read() {
    check_each(
        "
        name: tiny
        steps:
          - {id: before, command: go, outputs: {risk: string}}
          - id: plain
            command: go
            outputs: {score: integer}
            inputs: {through: before.risk}
            success_criteria: ['@ == 1']
        ",
        &[],
        &[
            "outputs.score",
            "outputs.scor",
            "outputs.through",
            "outputs",
            "outputs[0]",
            "score",
            "outputs.stdout",
            "outputs.approved",
            "before.rsk",
            "before.risk",
            "plain.outputs.score",
        ],
        expect![[r#"
            outputs.score => ok
            outputs.scor => ~8:25 undeclared_output steps[1].success_criteria[0]: step `plain` declares no output `scor` (did you mean `score`?) | ok
            outputs.through => ok
            outputs => ok
            outputs[0] => ok
            score => ok
            outputs.stdout => ok
            outputs.approved => ~8:25 undeclared_output steps[1].success_criteria[0]: step `plain` declares no output `approved` | ok
            before.rsk => ~8:25 undeclared_output steps[1].success_criteria[0]: step `before` declares no output `rsk` (did you mean `risk`?) | ok
            before.risk => ok
            plain.outputs.score => ok
        "#]],
    );
}

#[test]
fn roles_that_no_step_uses() {
    Script::lobsterx(
        "
        name: tiny
        roles:
          clerk: {}
          ghost: {}
          boss: {}
        defaults: {role: boss}
        steps:
          - {id: one, command: go, role: clerk}
          - {id: two, command: go}
        ",
    )
    .check(expect![[r#"
        ~4:3 unused_role roles: no step uses the role `ghost`
        ok
    "#]]);
}

#[test]
fn a_chain_to_a_side_effect() {
    check_each(
        "
        name: tiny
        steps:
          - {id: aa, command: go}
          - {id: bb, command: go, depends_on: [aa], @}
          - {id: pay, command: go, depends_on: [bb], idempotent: false}
          - {id: after, command: go, depends_on: [pay]}
        ",
        &[],
        &[
            "model: x",
            "on_failure: halt",
            "on_failure: skip",
            "retry: {attempts: 2}",
            "on_failure: fail",
            "idempotent: false",
            "on_failure: halt, idempotent: false",
        ],
        expect![[r#"
            model: x => ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ~4:10 unprotected_step steps[1]: every path to `pay`, which cannot be repeated, passes through `bb`, which has no failure policy (set `on_failure` or `retry`) | ok
            on_failure: halt => ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ok
            on_failure: skip => ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ok
            retry: {attempts: 2} => ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ok
            on_failure: fail => ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ~4:57 deprecated_value steps[1].on_failure: `fail` is an old name of `halt` (write `halt`) | ok
            idempotent: false => ~3:10 unprotected_step steps[0]: every path to `bb`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ~4:10 unprotected_step steps[1]: every path to `pay`, which cannot be repeated, passes through `bb`, which has no failure policy (set `on_failure` or `retry`) | ok
            on_failure: halt, idempotent: false => ~3:10 unprotected_step steps[0]: every path to `bb`, which cannot be repeated, passes through `aa`, which has no failure policy (set `on_failure` or `retry`) | ok
        "#]],
    );
}

#[test]
fn only_steps_that_every_path_passes_are_unprotected() {
    // A diamond: its sides are not on every path, its top is.
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: top, command: go}
          - {id: left, command: go, depends_on: [top]}
          - {id: right, command: go, depends_on: [top]}
          - {id: pay, command: go, depends_on: [left, right], idempotent: false}
        ",
    )
    .check(expect![[r#"
        ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `top`, which has no failure policy (set `on_failure` or `retry`)
        ok
    "#]]);
    // Two roots: no step is on every path.
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: left, command: go}
          - {id: right, command: go}
          - {id: pay, command: go, depends_on: [left, right], idempotent: false}
        ",
    )
    .check(expect![[r#"
        ok
    "#]]);
    // Two effects below one step: it is reported once.
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: top, command: go}
          - {id: pay, command: go, depends_on: [top], idempotent: false}
          - {id: mail, command: go, depends_on: [top], idempotent: false}
        ",
    )
    .check(expect![[r#"
        ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `top`, which has no failure policy (set `on_failure` or `retry`)
        ok
    "#]]);
    // A diamond below a chain, the join protected.
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: root, command: go}
          - {id: top, command: go, depends_on: [root]}
          - {id: left, command: go, depends_on: [top]}
          - {id: right, command: go, depends_on: [top]}
          - {id: join, command: go, depends_on: [left, right], on_failure: halt}
          - {id: pay, command: go, depends_on: [join], idempotent: false}
        ",
    )
    .check(expect![[r#"
        ~3:10 unprotected_step steps[0]: every path to `pay`, which cannot be repeated, passes through `root`, which has no failure policy (set `on_failure` or `retry`)
        ~4:10 unprotected_step steps[1]: every path to `pay`, which cannot be repeated, passes through `top`, which has no failure policy (set `on_failure` or `retry`)
        ok
    "#]]);
}

#[test]
fn defaults_protect_every_step() {
    Script::lobsterx(
        "
        name: tiny
        defaults: {on_failure: halt}
        steps:
          - {id: top, command: go}
          - {id: pay, command: go, depends_on: [top], idempotent: false}
        ",
    )
    .check(expect![[r#"
        ok
    "#]]);
}

#[test]
fn names_that_nothing_sets() {
    Script::lobsterx(
        "
        name: tiny
        args: {who: string}
        steps:
          - id: one
            command: ${who} ${args.who} ${args.whom} ${risk} ${later} ${nope}
            outputs: {risk: string}
          - id: two
            approval: {summary: 'ok, ${wh}?'}
            outputs: {later: string}
          - id: three
            workflow_ref: other
            inputs: {mine: one.risk}
            args:
              a: ${mine}
              b: [1, {c: 'see ${nope}'}]
              d: ${index}
        ",
    )
    .check(expect![[r#"
        ~5:35 unknown_variable steps[0].command: there is no argument `whom` (did you mean `who`?)
        ~5:65 unknown_variable steps[0].command: nothing sets `nope`
        ~8:32 unknown_variable steps[1].approval.summary: nothing sets `wh` (did you mean `who`?)
        ~11:19 unresolved_reference steps[2].workflow_ref: workflow `other` cannot be checked: no registry is loaded
        ~15:25 unknown_variable steps[2].args.b[1].c: nothing sets `nope`
        ~16:12 unknown_variable steps[2].args.d: nothing sets `index` (`index` exists only in a step with `for_each`)
        ok
    "#]]);
}

#[test]
fn deprecated_words_mean_the_new_ones() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: one, command: go, on_failure: fail}
          - {id: two, command: go, on_failure: continue}
          - {id: three, command: go, on_failure: continue}
        ",
    )
    .show("steps.0.on_failure")
    .show("steps.1.on_failure")
    .check(expect![[r#"
        ~3:40 deprecated_value steps[0].on_failure: `fail` is an old name of `halt` (write `halt`)
        ~4:40 deprecated_value steps[1].on_failure: `continue` is an old name of `skip` (write `skip`)
        ~5:42 deprecated_value steps[2].on_failure: `continue` is an old name of `skip` (write `skip`)
        ok
        steps.0.on_failure = "halt"
        steps.1.on_failure = "skip"
    "#]]);
}

#[test]
fn warnings_do_not_refuse_a_document_and_errors_keep_them() {
    Script::lobsterx(
        "
        name: tiny
        roles: {ghost: {}}
        steps: [{id: one, command: '${nope}', timeout: 0}]
        ",
    )
    .check(expect![[r#"
        ~2:9 unused_role roles: no step uses the role `ghost`
        ~3:31 unknown_variable steps[0].command: nothing sets `nope`
        3:48 bad_duration steps[0].timeout: a duration cannot be zero
    "#]]);
}

#[test]
fn a_role_that_a_team_member_has_is_used() {
    let document = "
name: demo
roles: {writer: {}, reader: {}}
team: {members: [{id: m, role: writer}]}
steps: [{id: a, agent: mock, command: x}]
";
    let told = Script::lobsterx(document).transcript();
    assert!(told.contains("no step uses the role `reader`"), "{told}");
    assert!(!told.contains("no step uses the role `writer`"), "{told}");
}

#[test]
fn outputs_that_a_template_may_read() {
    check_each(
        "
        name: tiny
        steps:
          - {id: plain, command: go, outputs: {risk: string}}
          - {id: bare, command: go}
          - {id: ask, approval: required}
          - {id: many, command: go, for_each: [a], outputs: {n: integer}, success_criteria: [outputs.n > 1, many.n > 1]}
          - {id: texts, command: go, for_each: [a]}
          - {id: last, command: 'read ${@}'}
        outputs: {it: '${@}'}
        ",
        &[],
        &[
            "plain.risk",
            "plain.outputs.rsk",
            "plain.stdout",
            "bare.output",
            "bare.stdout",
            "ask.approved",
            "ask.outcome",
            "many.items[0].n",
            "many.n",
            "many.stdout",
            "texts.items[0].text",
            "texts.stdout",
            "texts.text",
        ],
        expect![[r#"
            plain.risk => ok
            plain.outputs.rsk => ~8:33 undeclared_output steps[5].command: step `plain` declares no output `rsk` (did you mean `risk`?) | ~9:18 undeclared_output outputs.it: step `plain` declares no output `rsk` (did you mean `risk`?) | ok
            plain.stdout => ok
            bare.output => ~8:33 undeclared_output steps[5].command: step `bare` declares no output `output` (declare it under `outputs`; the text of `bare` is `bare.stdout`) | ~9:18 undeclared_output outputs.it: step `bare` declares no output `output` (declare it under `outputs`; the text of `bare` is `bare.stdout`) | ok
            bare.stdout => ok
            ask.approved => ok
            ask.outcome => ~8:33 undeclared_output steps[5].command: step `ask` declares no output `outcome` | ~9:18 undeclared_output outputs.it: step `ask` declares no output `outcome` | ok
            many.items[0].n => ok
            many.n => ~8:33 undeclared_output steps[5].command: step `many` declares no output `n` (write `many.items`, or `many.items[0].n`) | ~9:18 undeclared_output outputs.it: step `many` declares no output `n` (write `many.items`, or `many.items[0].n`) | ok
            many.stdout => ~8:33 undeclared_output steps[5].command: step `many` declares no output `stdout` (write `many.items`, or `many.items[0]`) | ~9:18 undeclared_output outputs.it: step `many` declares no output `stdout` (write `many.items`, or `many.items[0]`) | ok
            texts.items[0].text => ok
            texts.stdout => ok
            texts.text => ~8:33 undeclared_output steps[5].command: step `texts` declares no output `text` (write `texts.items`, or `texts.items[0]`) | ~9:18 undeclared_output outputs.it: step `texts` declares no output `text` (write `texts.items`, or `texts.items[0]`) | ok
        "#]],
    );
}

#[test]
fn text_that_looks_like_a_reference() {
    check_each(
        "
        name: tiny
        args: {who: string}
        steps:
          - {id: before, command: go}
          - {id: each, agent: shell, for_each: [a], depends_on: [before], command: '@'}
        ",
        &[],
        &[
            "echo {{ args.who }} {{who}} {{ steps.before.stdout }} {{ inputs.who }}",
            "docker ps --format \"{{.Names}}\" {{ json . }} {{ unknown }} {{ args.who",
            "echo $item ${item} \\$item $${item} \"$item.name\" $items",
            "for item in a b; do echo $item; done",
            "item=1; echo $item",
            "echo $index $args.who $args.whom $before.stdout $before $PATH",
        ],
        expect![[r#"
            echo {{ args.who }} {{who}} {{ steps.before.stdout }} {{ inputs.who }} => ~5:82 unexpanded_reference steps[1].command: `{{ args.who }}` is not replaced by a value (write `${args.who}`) | ~5:97 unexpanded_reference steps[1].command: `{{who}}` is not replaced by a value (write `${who}`) | ~5:105 unexpanded_reference steps[1].command: `{{ steps.before.stdout }}` is not replaced by a value (write `${before.stdout}`) | ~5:131 unexpanded_reference steps[1].command: `{{ inputs.who }}` is not replaced by a value (write `${args.who}`) | ok
            docker ps --format "{{.Names}}" {{ json . }} {{ unknown }} {{ args.who => ok
            echo $item ${item} \$item $${item} "$item.name" $items => ~5:82 unexpanded_reference steps[1].command: `$item` is not replaced by a value (write `${item}`) | ~5:113 unexpanded_reference steps[1].command: `$item.name` is not replaced by a value (write `${item.name}`) | ok
            for item in a b; do echo $item; done => ok
            item=1; echo $item => ok
            echo $index $args.who $args.whom $before.stdout $before $PATH => ~5:82 unexpanded_reference steps[1].command: `$index` is not replaced by a value (write `${index}`) | ~5:89 unexpanded_reference steps[1].command: `$args.who` is not replaced by a value (write `${args.who}`) | ~5:110 unexpanded_reference steps[1].command: `$before.stdout` is not replaced by a value (write `${before.stdout}`) | ok
        "#]],
    );
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: one, command: 'the price is $item and {{ item }}'}
          - {id: two, agent: shell, command: 'echo $item', env: {item: x}, for_each: [a]}
        ",
    )
    .check(expect![[r#"
        ~3:48 unexpanded_reference steps[0].command: `{{ item }}` is not replaced by a value (write `${item}`)
        ok
    "#]]);
}

#[test]
fn a_branch_for_a_rejection_that_never_runs() {
    let branches = [
        "condition: not $ask.approved",
        "condition: '!ask.outputs.approved and args.go'",
        "condition: ask.approved != true",
        "condition: ask.approved == false",
        "condition: not $ask.approved, depends_on: [draft]",
        "condition: ask.approved == false, depends_on: [draft]",
        "condition: not $ask.approved, depends_on: [between]",
        "condition: not $ask.approved, on_parent_failure: substitute_default",
        "condition: not $ask.approved or args.go",
        "condition: not ($ask.approved and args.go)",
        "condition: $ask.approved",
        "condition: not $draft.risky",
    ];
    let document = "
        name: tiny
        args: {go: boolean}
        steps:
          - {id: draft, command: go, outputs: {risky: boolean}}
          - {id: ask, approval: required, depends_on: [draft], on_failure: POLICY}
          - {id: between, command: go, depends_on: [ask]}
          - {id: branch, command: go, @}
        ";
    check_each(
        &document.replace("POLICY", "skip"),
        &[],
        &branches,
        expect![[r#"
        condition: not $ask.approved => ~7:46 unreachable_rejection steps[3].condition: `branch` is skipped with `ask` when that is rejected (let `branch` also depend on a step that is done by then) | ok
        condition: '!ask.outputs.approved and args.go' => ~7:44 unreachable_rejection steps[3].condition: `branch` is skipped with `ask` when that is rejected (let `branch` also depend on a step that is done by then) | ok
        condition: ask.approved != true => ~7:42 unreachable_rejection steps[3].condition: `branch` is skipped with `ask` when that is rejected (let `branch` also depend on a step that is done by then) | ok
        condition: ask.approved == false => ~7:42 unreachable_rejection steps[3].condition: `ask.approved` is true or null, never false (write `not $ask.approved`) | ok
        condition: not $ask.approved, depends_on: [draft] => ok
        condition: ask.approved == false, depends_on: [draft] => ~7:42 unreachable_rejection steps[3].condition: `ask.approved` is true or null, never false (write `not $ask.approved`) | ok
        condition: not $ask.approved, depends_on: [between] => ~7:46 unreachable_rejection steps[3].condition: `branch` is skipped with `ask` when that is rejected (let `branch` also depend on a step that is done by then) | ok
        condition: not $ask.approved, on_parent_failure: substitute_default => ~7:46 unreachable_rejection steps[3].condition: `branch` is skipped with `ask` when that is rejected (let `branch` also depend on a step that is done by then) | ok
        condition: not $ask.approved or args.go => ok
        condition: not ($ask.approved and args.go) => ok
        condition: $ask.approved => ok
        condition: not $draft.risky => ok
    "#]],
    );
    check_each(
        &document.replace("POLICY", "halt"),
        &[],
        &branches,
        expect![[r#"
        condition: not $ask.approved => ~7:46 unreachable_rejection steps[3].condition: `branch` does not run when `ask` is rejected: that fails the run (set `on_failure: skip` on `ask`, and let `branch` also depend on a step that is done by then) | ok
        condition: '!ask.outputs.approved and args.go' => ~7:44 unreachable_rejection steps[3].condition: `branch` does not run when `ask` is rejected: that fails the run (set `on_failure: skip` on `ask`, and let `branch` also depend on a step that is done by then) | ok
        condition: ask.approved != true => ~7:42 unreachable_rejection steps[3].condition: `branch` does not run when `ask` is rejected: that fails the run (set `on_failure: skip` on `ask`, and let `branch` also depend on a step that is done by then) | ok
        condition: ask.approved == false => ~7:42 unreachable_rejection steps[3].condition: `ask.approved` is true or null, never false (write `not $ask.approved`) | ok
        condition: not $ask.approved, depends_on: [draft] => ~7:46 unreachable_rejection steps[3].condition: `branch` does not run when `ask` is rejected: that fails the run (set `on_failure: skip` on `ask`, and let `branch` also depend on a step that is done by then) | ok
        condition: ask.approved == false, depends_on: [draft] => ~7:42 unreachable_rejection steps[3].condition: `ask.approved` is true or null, never false (write `not $ask.approved`) | ok
        condition: not $ask.approved, depends_on: [between] => ~7:46 unreachable_rejection steps[3].condition: `branch` does not run when `ask` is rejected: that fails the run (set `on_failure: skip` on `ask`, and let `branch` also depend on a step that is done by then) | ok
        condition: not $ask.approved, on_parent_failure: substitute_default => ok
        condition: not $ask.approved or args.go => ok
        condition: not ($ask.approved and args.go) => ok
        condition: $ask.approved => ok
        condition: not $draft.risky => ok
    "#]],
    );
}
