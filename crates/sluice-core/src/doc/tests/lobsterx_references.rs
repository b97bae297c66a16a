//! What a step may refer to: steps, arguments, variables, phases, roles, workflows.

use super::{Script, check_each};
use expect_test::expect;

/// A step `gather_data`, an argument, a variable, and a second step with a line of its own.
pub(super) const TWO: &str = "
    name: tiny
    args: {who: string, list: array}
    phases: [early, late]
    roles: {clerk: {}}
    steps:
      - {id: gather_data, role: clerk, command: go, outputs: {risk: string}}
      - id: use_it
        command: go
        @
    ";

#[test]
fn dependencies_must_exist() {
    check_each(
        TWO,
        &["steps.1.depends_on"],
        &[
            "depends_on: [gather_data]",
            "depends_on: []",
            "depends_on: [gather_data, gather_data]",
            "depends_on: [gather_dta]",
            "depends_on: [gather]",
            "depends_on: [args]",
            "depends_on: [risk]",
            "depends_on: ['']",
            "depends_on: gather_data",
            "depends_on: [5, absent]",
            "depends_on: [[gather_data]]",
            "depends_on: [Gather_data]",
            "depends_on: ['gather_data ']",
            "depends_on: [$gather_data]",
            "depends_on: {a: b}",
        ],
        expect![[r#"
            depends_on: [gather_data] => ok | steps.1.depends_on = ["gather_data"]
            depends_on: [] => ok | steps.1.depends_on = -
            depends_on: [gather_data, gather_data] => ok | steps.1.depends_on = ["gather_data"]
            depends_on: [gather_dta] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `gather_dta` (did you mean `gather_data`?)
            depends_on: [gather] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `gather` (did you mean `gather_data`?)
            depends_on: [args] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `args`
            depends_on: [risk] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `risk`
            depends_on: [''] => 9:18 unknown_step steps[1].depends_on[0]: there is no step ``
            depends_on: gather_data => 9:17 wrong_type steps[1].depends_on: expected a list, found a string
            depends_on: [5, absent] => 9:18 wrong_type steps[1].depends_on[0]: expected a string, found a number (quote it if it is meant as text) | 9:21 unknown_step steps[1].depends_on[1]: there is no step `absent`
            depends_on: [[gather_data]] => 9:18 wrong_type steps[1].depends_on[0]: expected a string, found a list
            depends_on: [Gather_data] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `Gather_data` (did you mean `gather_data`?)
            depends_on: ['gather_data '] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `gather_data ` (did you mean `gather_data`?)
            depends_on: [$gather_data] => 9:18 unknown_step steps[1].depends_on[0]: there is no step `$gather_data` (did you mean `gather_data`?)
            depends_on: {a: b} => 9:17 wrong_type steps[1].depends_on: expected a list, found a map
        "#]],
    );
}

#[test]
fn what_is_piped_in() {
    check_each(
        TWO,
        &["steps.1.stdin", "steps.1.depends_on"],
        &[
            "stdin: $gather_data.stdout",
            "stdin: $gather_data.json",
            "stdin: $gather_data.approved",
            "stdin: $gather_data.outputs.risk",
            "stdin: $gather_data.outputs.a.b[0]['c d']",
            "stdin: $gather_data.outputs",
            "stdin: gather_data.stdout",
            "stdin: $gather_data",
            "stdin: $gather_data.risk",
            "stdin: $gather_data.stdout.x",
            "stdin: $gather_data.json.x",
            "stdin: $gather_data.approved.x",
            "stdin: $gather_data[0]",
            "stdin: '${gather_data.stdout}'",
            "stdin: $gather_dta.stdout",
            "stdin: $args.who",
            "stdin: $args.outputs.x",
            "stdin: some text",
            "stdin: ''",
            "stdin: 5",
            "stdin: [a]",
            "stdin: $gather_data.stdout | sort",
            "stdin: $absent.stdout",
        ],
        expect![[r#"
            stdin: $gather_data.stdout => ok | steps.1.stdin = "$gather_data.stdout" | steps.1.depends_on = ["gather_data"]
            stdin: $gather_data.json => ok | steps.1.stdin = "$gather_data.json" | steps.1.depends_on = ["gather_data"]
            stdin: $gather_data.approved => ok | steps.1.stdin = "$gather_data.approved" | steps.1.depends_on = ["gather_data"]
            stdin: $gather_data.outputs.risk => ok | steps.1.stdin = "$gather_data.outputs.risk" | steps.1.depends_on = ["gather_data"]
            stdin: $gather_data.outputs.a.b[0]['c d'] => ok | steps.1.stdin = "$gather_data.outputs.a.b[0]['c d']" | steps.1.depends_on = ["gather_data"]
            stdin: $gather_data.outputs => ok | steps.1.stdin = "$gather_data.outputs" | steps.1.depends_on = ["gather_data"]
            stdin: gather_data.stdout => 9:12 bad_reference steps[1].stdin: `gather_data.stdout` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_data => 9:12 bad_reference steps[1].stdin: `$gather_data` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_data.risk => 9:12 bad_reference steps[1].stdin: `$gather_data.risk` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_data.stdout.x => 9:12 bad_reference steps[1].stdin: `$gather_data.stdout.x` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_data.json.x => 9:12 bad_reference steps[1].stdin: `$gather_data.json.x` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_data.approved.x => 9:12 bad_reference steps[1].stdin: `$gather_data.approved.x` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_data[0] => 9:12 bad_reference steps[1].stdin: `$gather_data[0]` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: '${gather_data.stdout}' => 9:12 bad_reference steps[1].stdin: `${gather_data.stdout}` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $gather_dta.stdout => 9:12 unknown_step steps[1].stdin: there is no step `gather_dta` (did you mean `gather_data`?)
            stdin: $args.who => 9:12 bad_reference steps[1].stdin: `$args.who` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $args.outputs.x => 9:12 unknown_step steps[1].stdin: there is no step `args`
            stdin: some text => 9:12 bad_reference steps[1].stdin: `some text` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: '' => 9:12 bad_reference steps[1].stdin: `` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: 5 => 9:12 wrong_type steps[1].stdin: expected a string, found a number (quote it if it is meant as text)
            stdin: [a] => 9:12 wrong_type steps[1].stdin: expected a string, found a list
            stdin: $gather_data.stdout | sort => 9:12 bad_reference steps[1].stdin: `$gather_data.stdout | sort` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
            stdin: $absent.stdout => 9:12 unknown_step steps[1].stdin: there is no step `absent`
        "#]],
    );
}

#[test]
fn inputs_and_their_sources() {
    check_each(
        TWO,
        &["steps.1.inputs.x", "steps.1.depends_on"],
        &[
            "inputs: {x: gather_data.risk}",
            "inputs: {x: {from: gather_data.risk}}",
            "inputs: {x: $gather_data.outputs.risk}",
            "inputs: {x: {from: gather_data.risk, type: integer, default: 5}}",
            "inputs: {x: [gather_data.risk, args.who]}",
            "inputs: {x: {from: [gather_data.risk, gather_data.stdout]}}",
            "inputs: {x: args.who}",
            "inputs: {x: args.wh}",
            "inputs: {x: args}",
            "inputs: {x: gather_data}",
            "inputs: {x: gather_dta.risk}",
            "inputs: {x: {from: [gather_data.risk, absent.y]}}",
            "inputs: {x: risk}",
            "inputs: {x: 'some text'}",
            "inputs: {x: ''}",
            "inputs: {x: }",
            "inputs: {x: {}}",
            "inputs: {x: {type: string}}",
            "inputs: {x: []}",
            "inputs: {x: {from: []}}",
            "inputs: {x: [5]}",
            "inputs: {x: 5}",
            "inputs: {x: {from: gather_data.risk, type: strng}}",
            "inputs: {x: {from: gather_data.risk, type: integer, default: many}}",
            "inputs: {x: {from: gather_data.risk, default: null}}",
            "inputs: [gather_data.risk]",
            "inputs: {x: '${gather_data.risk}'}",
        ],
        expect![[r#"
            inputs: {x: gather_data.risk} => ok | steps.1.inputs.x = {"from":["gather_data.risk"]} | steps.1.depends_on = ["gather_data"]
            inputs: {x: {from: gather_data.risk}} => ok | steps.1.inputs.x = {"from":["gather_data.risk"]} | steps.1.depends_on = ["gather_data"]
            inputs: {x: $gather_data.outputs.risk} => ok | steps.1.inputs.x = {"from":["$gather_data.outputs.risk"]} | steps.1.depends_on = ["gather_data"]
            inputs: {x: {from: gather_data.risk, type: integer, default: 5}} => ok | steps.1.inputs.x = {"default":5,"from":["gather_data.risk"],"schema":{"type":"integer"}} | steps.1.depends_on = ["gather_data"]
            inputs: {x: [gather_data.risk, args.who]} => ok | steps.1.inputs.x = {"from":["gather_data.risk","args.who"]} | steps.1.depends_on = ["gather_data"]
            inputs: {x: {from: [gather_data.risk, gather_data.stdout]}} => ok | steps.1.inputs.x = {"from":["gather_data.risk","gather_data.stdout"]} | steps.1.depends_on = ["gather_data"]
            inputs: {x: args.who} => ok | steps.1.inputs.x = {"from":["args.who"]} | steps.1.depends_on = -
            inputs: {x: args.wh} => 9:17 unknown_identifier steps[1].inputs.x: there is no argument `wh` (did you mean `who`?)
            inputs: {x: args} => 9:17 bad_reference steps[1].inputs.x: `args` does not name a step's value (write `x: id.field`)
            inputs: {x: gather_data} => 9:17 bad_reference steps[1].inputs.x: `gather_data` does not name a step's value (write `x: id.field`)
            inputs: {x: gather_dta.risk} => 9:17 unknown_step steps[1].inputs.x: there is no step `gather_dta` (did you mean `gather_data`?)
            inputs: {x: {from: [gather_data.risk, absent.y]}} => 9:43 unknown_step steps[1].inputs.x: there is no step `absent`
            inputs: {x: risk} => 9:17 bad_reference steps[1].inputs.x: `risk` does not name a step's value (write `x: id.field`)
            inputs: {x: 'some text'} => 9:17 bad_reference steps[1].inputs.x: `some text` does not name a step's value (write `x: id.field`)
            inputs: {x: ''} => 9:17 bad_reference steps[1].inputs.x: `` does not name a step's value (write `x: id.field`)
            inputs: {x: } => 9:15 wrong_type steps[1].inputs.x: expected a string, found nothing
            inputs: {x: {}} => 9:17 missing_field steps[1].inputs.x: `from` is missing
            inputs: {x: {type: string}} => 9:17 missing_field steps[1].inputs.x: `from` is missing
            inputs: {x: []} => 9:17 bad_value steps[1].inputs.x: an input needs at least one source
            inputs: {x: {from: []}} => 9:24 bad_value steps[1].inputs.x.from: an input needs at least one source
            inputs: {x: [5]} => 9:18 wrong_type steps[1].inputs.x[0]: expected a string, found a number (quote it if it is meant as text)
            inputs: {x: 5} => 9:17 wrong_type steps[1].inputs.x: expected a string, found a number (quote it if it is meant as text)
            inputs: {x: {from: gather_data.risk, type: strng}} => 9:48 bad_value steps[1].inputs.x.type: `strng` is not a type (did you mean `string`?)
            inputs: {x: {from: gather_data.risk, type: integer, default: many}} => 9:66 bad_schema steps[1].inputs.x.default: the default is a string, not an integer
            inputs: {x: {from: gather_data.risk, default: null}} => ok | steps.1.inputs.x = {"from":["gather_data.risk"]} | steps.1.depends_on = ["gather_data"]
            inputs: [gather_data.risk] => 9:13 wrong_type steps[1].inputs: expected a map, found a list
            inputs: {x: '${gather_data.risk}'} => 9:17 bad_reference steps[1].inputs.x: `${gather_data.risk}` does not name a step's value (write `x: id.field`)
        "#]],
    );
}

#[test]
fn phases_and_roles_must_be_declared() {
    check_each(
        TWO,
        &["steps.1.phase", "steps.1.role"],
        &[
            "phase: early",
            "phase: erly",
            "phase: never",
            "phase: 5",
            "phase: [early]",
            "role: clerk",
            "role: clrk",
            "role: absent",
            "role: {clerk: 1}",
            "role: ''",
        ],
        expect![[r#"
            phase: early => ok | steps.1.phase = "early" | steps.1.role = -
            phase: erly => 9:12 unknown_phase steps[1].phase: the phase `erly` is not declared (did you mean `early`?)
            phase: never => 9:12 unknown_phase steps[1].phase: the phase `never` is not declared (declare it under `phases`)
            phase: 5 => 9:12 wrong_type steps[1].phase: expected a string, found a number (quote it if it is meant as text)
            phase: [early] => 9:12 wrong_type steps[1].phase: expected a string, found a list
            role: clerk => ok | steps.1.phase = - | steps.1.role = "clerk"
            role: clrk => 9:11 unknown_role steps[1].role: the role `clrk` is not declared (did you mean `clerk`?)
            role: absent => 9:11 unknown_role steps[1].role: the role `absent` is not declared (declare it under `roles`)
            role: {clerk: 1} => 9:11 wrong_type steps[1].role: expected a string, found a map
            role: '' => 9:11 unknown_role steps[1].role: the role `` is not declared (declare it under `roles`)
        "#]],
    );
}

#[test]
fn other_workflows() {
    let text = "
        name: tiny
        steps:
          - {id: one, workflow_ref: @}
        ";
    let lines = [
        "credit-check",
        "credit-check@2",
        "credit-check@3",
        "credit-chek",
        "nothing-alike",
        "credit-check@",
        "credit-check@latest",
        "credit-check@-1",
        "credit-check@+2",
        "credit-check@2@2",
        "'@2'",
        "Credit-Check",
        "''",
        "5",
        "credit-check@02",
        "credit-check@99999999999999999999",
    ];
    check_each(
        text,
        &["steps.0.work"],
        &lines,
        expect![[r#"
            credit-check => ~3:29 unresolved_reference steps[0].workflow_ref: workflow `credit-check` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"credit-check"}
            credit-check@2 => ~3:29 unresolved_reference steps[0].workflow_ref: workflow `credit-check` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"credit-check","version":2}
            credit-check@3 => ~3:29 unresolved_reference steps[0].workflow_ref: workflow `credit-check` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"credit-check","version":3}
            credit-chek => ~3:29 unresolved_reference steps[0].workflow_ref: workflow `credit-chek` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"credit-chek"}
            nothing-alike => ~3:29 unresolved_reference steps[0].workflow_ref: workflow `nothing-alike` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"nothing-alike"}
            credit-check@ => 3:29 bad_reference steps[0].workflow_ref: `` is not a version number (write `name` or `name@3`)
            credit-check@latest => 3:29 bad_reference steps[0].workflow_ref: `latest` is not a version number (write `name` or `name@3`)
            credit-check@-1 => 3:29 bad_reference steps[0].workflow_ref: `-1` is not a version number (write `name` or `name@3`)
            credit-check@+2 => 3:29 bad_reference steps[0].workflow_ref: `+2` is not a version number (write `name` or `name@3`)
            credit-check@2@2 => 3:29 bad_reference steps[0].workflow_ref: `2@2` is not a version number (write `name` or `name@3`)
            '@2' => 3:29 bad_name steps[0].workflow_ref: `` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first) | ~3:29 unresolved_reference steps[0].workflow_ref: workflow `` cannot be checked: no registry is loaded
            Credit-Check => 3:29 bad_name steps[0].workflow_ref: `Credit-Check` is not in kebab-case (write `credit-check`) | ~3:29 unresolved_reference steps[0].workflow_ref: workflow `Credit-Check` cannot be checked: no registry is loaded
            '' => 3:29 bad_name steps[0].workflow_ref: `` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first) | ~3:29 unresolved_reference steps[0].workflow_ref: workflow `` cannot be checked: no registry is loaded
            5 => 3:29 wrong_type steps[0].workflow_ref: expected a string, found a number (quote it if it is meant as text)
            credit-check@02 => ~3:29 unresolved_reference steps[0].workflow_ref: workflow `credit-check` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"credit-check","version":2}
            credit-check@99999999999999999999 => 3:29 bad_reference steps[0].workflow_ref: `99999999999999999999` is not a version number (write `name` or `name@3`)
        "#]],
    );
    let mut out = String::new();
    for line in lines {
        let script = Script::lobsterx(&text.replace('@', line).replace("''2'", "'@2'"))
            .registry("{workflows: {credit-check: [1, 2]}, library: {}}");
        out.push_str(&format!("{line} => {}", script.transcript()));
    }
    expect![[r#"
        credit-check => ok
        credit-check@2 => ok
        credit-check@3 => 3:29 unknown_workflow steps[0].workflow_ref: the registry has no version 3 of `credit-check`
        credit-chek => 3:29 unknown_workflow steps[0].workflow_ref: the registry has no workflow `credit-chek` (did you mean `credit-check`?)
        nothing-alike => 3:29 unknown_workflow steps[0].workflow_ref: the registry has no workflow `nothing-alike`
        credit-check@ => 3:29 bad_reference steps[0].workflow_ref: `` is not a version number (write `name` or `name@3`)
        credit-check@latest => 3:29 bad_reference steps[0].workflow_ref: `latest` is not a version number (write `name` or `name@3`)
        credit-check@-1 => 3:29 bad_reference steps[0].workflow_ref: `-1` is not a version number (write `name` or `name@3`)
        credit-check@+2 => 3:29 bad_reference steps[0].workflow_ref: `+2` is not a version number (write `name` or `name@3`)
        credit-check@2@2 => 3:29 bad_reference steps[0].workflow_ref: `2@2` is not a version number (write `name` or `name@3`)
        '@2' => 3:29 bad_name steps[0].workflow_ref: `` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first)
        3:29 unknown_workflow steps[0].workflow_ref: the registry has no workflow ``
        Credit-Check => 3:29 bad_name steps[0].workflow_ref: `Credit-Check` is not in kebab-case (write `credit-check`)
        3:29 unknown_workflow steps[0].workflow_ref: the registry has no workflow `Credit-Check` (did you mean `credit-check`?)
        '' => 3:29 bad_name steps[0].workflow_ref: `` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first)
        3:29 unknown_workflow steps[0].workflow_ref: the registry has no workflow ``
        5 => 3:29 wrong_type steps[0].workflow_ref: expected a string, found a number (quote it if it is meant as text)
        credit-check@02 => ok
        credit-check@99999999999999999999 => 3:29 bad_reference steps[0].workflow_ref: `99999999999999999999` is not a version number (write `name` or `name@3`)
    "#]].assert_eq(&out);
}

#[test]
fn outputs_of_the_run() {
    let text = "
        name: tiny
        args: {who: string}
        outputs: {result: @}
        steps:
          - {id: gather_data, command: go, outputs: {risk: string}}
        ";
    check_each(
        text,
        &["outputs"],
        &[
            "'${risk}'",
            "'${gather_data.outputs.risk}'",
            "'${args.who}'",
            "'${who}'",
            "plain",
            "'${rsk}'",
            "'${args.wh}'",
            "'${gather_dta.outputs.x}'",
            "'a ${b} c ${d}'",
            "'${'",
            "5",
            "[a]",
            "{a: '${risk}'}",
            "null",
        ],
        expect![[r#"
            '${risk}' => ok | outputs = {"result":"${risk}"}
            '${gather_data.outputs.risk}' => ok | outputs = {"result":"${gather_data.outputs.risk}"}
            '${args.who}' => ok | outputs = {"result":"${args.who}"}
            '${who}' => ok | outputs = {"result":"${who}"}
            plain => ok | outputs = {"result":"plain"}
            '${rsk}' => ~3:22 unknown_variable outputs.result: nothing sets `rsk` (did you mean `risk`?) | ok | outputs = {"result":"${rsk}"}
            '${args.wh}' => ~3:22 unknown_variable outputs.result: there is no argument `wh` (did you mean `who`?) | ok | outputs = {"result":"${args.wh}"}
            '${gather_dta.outputs.x}' => ~3:22 unknown_variable outputs.result: nothing sets `gather_dta` (did you mean `gather_data`?) | ok | outputs = {"result":"${gather_dta.outputs.x}"}
            'a ${b} c ${d}' => ~3:24 unknown_variable outputs.result: nothing sets `b` | ~3:31 unknown_variable outputs.result: nothing sets `d` | ok | outputs = {"result":"a ${b} c ${d}"}
            '${' => 3:20 bad_template outputs.result: unclosed `${` (write `$${` for a literal `${`)
            5 => 3:19 wrong_type outputs.result: expected a string, found a number (quote it if it is meant as text)
            [a] => 3:19 wrong_type outputs.result: expected a string, found a list
            {a: '${risk}'} => 3:19 wrong_type outputs.result: expected a string, found a map
            null => 3:19 wrong_type outputs.result: expected a string, found nothing
        "#]],
    );
}

#[test]
fn a_declaration_that_is_wrong_is_still_a_declaration() {
    // A mistake in a declaration is not reported again at every use of the name.
    Script::lobsterx(
        "
        name: tiny
        args: {who: strng}
        roles: {clerk: 5}
        phases: [{id: early, nme: Early}]
        steps:
          - {id: one, role: clerk, phase: early, command: '${args.who}', outputs: {risk: txt}}
          - {id: two, command: '${risk}', condition: one.risk == args.who}
        ",
    )
    .check(expect![[r#"
        2:13 bad_value args.who: `strng` is not a type (did you mean `string`?)
        3:16 wrong_type roles.clerk: expected a map, found a number
        4:22 unknown_field phases[0].nme: unknown field `nme` (did you mean `name`?)
        6:82 bad_value steps[0].outputs.risk: `txt` is not a type (use one of: string, number, integer, boolean, object, array)
    "#]]);
}
