//! The places of problems: lines, columns in characters, places inside text.

use super::{Script, check_each};
use expect_test::expect;

#[test]
fn columns_count_characters() {
    Script::lobsterx(
        "
        name: tiny
        description: größer
        steps:
          - {id: one, description: 'žluťoučký 🐴', command: 'äöü ${absent}', timeout: 0}
          - {id: two, model: '日本語', comand: go}
        ",
    )
    .check(expect![[r#"
        4:15 unknown_field steps[0].description: unknown field `description`
        ~4:59 unknown_variable steps[0].command: nothing sets `absent`
        4:78 bad_duration steps[0].timeout: a duration cannot be zero
        5:10 missing_command steps[1]: step `two` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
        5:29 unknown_field steps[1].comand: unknown field `comand` (did you mean `command`?)
    "#]]);
}

#[test]
fn places_inside_text_of_every_style() {
    Script::lobsterx(
        r#"
        name: tiny
        steps:
          - id: plain
            command: say ${first} and ${second}
          - id: single
            command: 'say ${first} and ${second}'
          - id: double
            command: "say ${first} and ${second}"
          - id: escaped
            command: "say \"${first}\" and\t${second}"
          - id: doubled
            command: 'it''s ${first} and ${second}'
          - id: literal
            command: |
              say ${first}
                ä and ${second}
          - id: folded
            command: >
              say ${first}
              and ${second}
          - id: spread
            command: say ${first}
              and ${second}
        "#,
    )
    .check(expect![[r#"
        ~4:20 unknown_variable steps[0].command: nothing sets `first`
        ~4:33 unknown_variable steps[0].command: nothing sets `second`
        ~6:21 unknown_variable steps[1].command: nothing sets `first`
        ~6:34 unknown_variable steps[1].command: nothing sets `second`
        ~8:21 unknown_variable steps[2].command: nothing sets `first`
        ~8:34 unknown_variable steps[2].command: nothing sets `second`
        ~10:14 unknown_variable steps[3].command: nothing sets `first`
        ~10:14 unknown_variable steps[3].command: nothing sets `second`
        ~12:14 unknown_variable steps[4].command: nothing sets `first`
        ~12:14 unknown_variable steps[4].command: nothing sets `second`
        ~15:13 unknown_variable steps[5].command: nothing sets `first`
        ~16:17 unknown_variable steps[5].command: nothing sets `second`
        ~19:7 unknown_variable steps[6].command: nothing sets `second`
        ~19:13 unknown_variable steps[6].command: nothing sets `first`
        ~22:14 unknown_variable steps[7].command: nothing sets `second`
        ~22:20 unknown_variable steps[7].command: nothing sets `first`
        ok
    "#]]);
}

#[test]
fn places_inside_expressions() {
    check_each(
        "
        name: tiny
        steps:
          - id: one
            command: go
            @
        ",
        &[],
        &[
            "condition: 1 == 1 and absent == 2",
            "condition: (\"ä\" == \"ö\") and absent == 2",
            "condition: \"1 == 1 and absent == 2\"",
            "condition: |\n              1 == 1 and\n              absent == 2",
            "condition: 1 == 1 and and",
            "success_criteria: [1 == 1, 2 == absent]",
            "success_criteria:\n              - 5\n              - 2 == absent",
            "approval: {summary: 'see ${absent}'}",
            "agent: shell\n            cwd: a\n            stdin: nonsense",
        ],
        expect![[r#"
            condition: 1 == 1 and absent == 2 => 5:27 unknown_identifier steps[0].condition: `absent` is not a step, variable or argument
            condition: ("ä" == "ö") and absent == 2 => 5:33 unknown_identifier steps[0].condition: `absent` is not a step, variable or argument
            condition: "1 == 1 and absent == 2" => 5:28 unknown_identifier steps[0].condition: `absent` is not a step, variable or argument
            condition: |
                          1 == 1 and
                          absent == 2 => 7:7 unknown_identifier steps[0].condition: `absent` is not a step, variable or argument
            condition: 1 == 1 and and => 5:27 bad_expression steps[0].condition: expected a value, found `and`
            success_criteria: [1 == 1, 2 == absent] => 5:37 unknown_identifier steps[0].success_criteria[1]: `absent` is not a step, variable or argument
            success_criteria:
                          - 5
                          - 2 == absent => 6:9 wrong_type steps[0].success_criteria[0]: expected a string, found a number (quote it if it is meant as text) | 7:14 unknown_identifier steps[0].success_criteria[1]: `absent` is not a step, variable or argument
            approval: {summary: 'see ${absent}'} => ~5:32 unknown_variable steps[0].approval.summary: nothing sets `absent` | ok
            agent: shell
                        cwd: a
                        stdin: nonsense => 7:12 bad_reference steps[0].stdin: `nonsense` does not name a step's value (write `$id.stdout`, `$id.json`, `$id.outputs.path` or `$id.approved`)
        "#]],
    );
}

#[test]
fn places_of_references_that_shells_would_not_keep_apart() {
    Script::lobsterx(
        r#"
        name: tiny
        args: {x: string}
        steps:
          - id: one
            agent: shell
            command: |
              echo "${args.x}" ${x}
              echo 'a ${args.x} b' '${x}'
          - id: two
            agent: shell
            command: "echo `date ${x}` $(( ${x} + 1 ))"
        "#,
    )
    .check(expect![[r#"
        8:17 unsafe_reference steps[0].command: `${args.x}` cannot be used inside single quotes (use double quotes, or no quotes at all)
        8:31 unsafe_reference steps[0].command: `${x}` cannot be used inside single quotes (use double quotes, or no quotes at all)
        11:28 unsafe_reference steps[1].command: `${x}` cannot be used inside back-quotes (use `$( )`)
        11:38 unsafe_reference steps[1].command: `${x}` cannot be used inside arithmetic, which may evaluate text as code (compute with `expr`, which takes its arguments as data)
    "#]]);
}

#[test]
fn places_of_json() {
    Script::lobsterx(
        r#"
        {
          "name": "tiny",
          "steps": [
            {"id": "one", "command": "say ${absent}", "timeout": "0s"},
            {"id": "one", "comand": "go"}
          ]
        }
        "#,
    )
    .check(expect![[r#"
        ~4:37 unknown_variable steps[0].command: nothing sets `absent`
        4:59 bad_duration steps[0].timeout: a duration cannot be zero
        5:12 duplicate_step_id steps[1].id: a step called `one` exists already
        5:12 missing_command steps[1]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
        5:19 unknown_field steps[1].comand: unknown field `comand` (did you mean `command`?)
    "#]]);
}

#[test]
fn places_of_what_an_alias_repeats() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: one, command: &c 'say ${absent}', retry: &r {attempts: 0}}
          - {id: two, command: *c, retry: *r}
        ",
    )
    .check(expect![[r#"
        ~3:34 unknown_variable steps[0].command: nothing sets `absent`
        3:65 bad_value steps[0].retry.attempts: 0 is not a whole number from 1 to 100
        ~4:24 unknown_variable steps[1].command: nothing sets `absent`
    "#]]);
}

#[test]
fn paths_name_the_part_that_is_wrong() {
    Script::lobsterx(
        "
        name: tiny
        phases: [early, late, early]
        args: {Bad: string}
        defaults: {id: x}
        outputs: {good: fine, result: 'see ${absent}'}
        team: {members: [{id: ada}, {id: ada}]}
        steps:
          - {id: one, command: go, outputs: {x: string}}
          - id: two
            command: go
            inputs:
              good: one.x
              worse: absent.x
              worst: {from: [one.x, absent.y, z]}
              x y: one.x
              both: one.x
            outputs: {both: string, a b: string}
            env: {'1': x}
            for_each: {max_items: 3, items: $absent.outputs.list}
            depends_on: [5, one, gone]
            success_criteria: [5, absent == 1]
          - id: three
            workflow_ref: other
            args: {a: 1, b: [{c: 'x ${absent}'}, '${', '${']}
        ",
    )
    .check(expect![[r#"
        2:23 duplicate_name phases[2]: the phase `early` is declared twice
        3:8 bad_name args.Bad: `Bad` is not in snake_case (write `bad`)
        4:12 bad_value defaults.id: `id` cannot be a default
        ~5:38 unknown_variable outputs.result: nothing sets `absent`
        6:34 duplicate_name team.members[1]: the member `ada` is declared twice
        13:14 unknown_step steps[1].inputs.worse: there is no step `absent`
        14:29 unknown_step steps[1].inputs.worst: there is no step `absent`
        14:39 bad_reference steps[1].inputs.worst: `z` does not name a step's value (write `worst: id.field`)
        15:7 bad_name steps[1].inputs.x y: `x y` is not a name (write `x_y`)
        ~16:7 input_also_output steps[1].inputs.both: `both` is both an input and an output (an agent that repeats an input may change it; remove it from `outputs` to pass it through)
        17:29 bad_name steps[1].outputs.a b: `a b` is not a name (write `a_b`)
        18:11 bad_value steps[1].env.1: `1` cannot be the name of a variable
        19:37 unknown_step steps[1].for_each: there is no step `absent`
        20:18 wrong_type steps[1].depends_on[0]: expected a string, found a number (quote it if it is meant as text)
        20:26 unknown_step steps[1].depends_on[2]: there is no step `gone` (did you mean `one`?)
        21:24 wrong_type steps[1].success_criteria[0]: expected a string, found a number (quote it if it is meant as text)
        21:27 unknown_identifier steps[1].success_criteria[1]: `absent` is not a step, variable or argument
        ~23:19 unresolved_reference steps[2].workflow_ref: workflow `other` cannot be checked: no registry is loaded
        ~24:31 unknown_variable steps[2].args.b[0].c: nothing sets `absent`
        24:43 bad_template steps[2].args.b[1]: unclosed `${` (write `$${` for a literal `${`)
        24:49 bad_template steps[2].args.b[2]: unclosed `${` (write `$${` for a literal `${`)
    "#]]);
}
