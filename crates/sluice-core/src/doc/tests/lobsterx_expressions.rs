//! The names that conditions, success criteria, templates and `for_each` may contain.

use super::{Script, check_each, lobsterx_references::TWO};
use expect_test::expect;

#[test]
fn names_of_a_condition() {
    check_each(
        TWO,
        &["steps.1.depends_on"],
        &[
            "condition: gather_data.outputs.risk == 'low'",
            "condition: gather_data.risk == 'low'",
            "condition: $gather_data.stdout == ''",
            "condition: $gather_data.json.risk == ''",
            "condition: risk == 'low'",
            "condition: risk.level == 'low'",
            "condition: args.who == 'x'",
            "condition: who == 'x'",
            "condition: '${risk} == true'",
            "condition: true",
            "condition: false",
            "condition: exists(gather_data.outputs.risk)",
            "condition: gather_dta.risk == 1",
            "condition: nothing_alike == 1",
            "condition: args.wh == 'x'",
            "condition: args.zzzzz == 'x'",
            "condition: wh == 'x'",
            "condition: item == 1",
            "condition: index == 1",
            "condition: outputs.risk == 1",
            "condition: value == 1",
            "condition: gather_data.outputs.rsk == 1",
            "condition: gather_data.outputs['ri sk'] == 1",
            "condition: gather_data[0] == 1",
            "condition: risk ==",
            "condition: ''",
            "condition: 5",
            "condition: [a]",
            "condition: matches(risk, '(')",
            "condition: shout(risk)",
        ],
        expect![[r#"
            condition: gather_data.outputs.risk == 'low' => ok | steps.1.depends_on = ["gather_data"]
            condition: gather_data.risk == 'low' => ok | steps.1.depends_on = ["gather_data"]
            condition: $gather_data.stdout == '' => ok | steps.1.depends_on = ["gather_data"]
            condition: $gather_data.json.risk == '' => ok | steps.1.depends_on = ["gather_data"]
            condition: risk == 'low' => ok | steps.1.depends_on = -
            condition: risk.level == 'low' => ok | steps.1.depends_on = -
            condition: args.who == 'x' => ok | steps.1.depends_on = -
            condition: who == 'x' => ok | steps.1.depends_on = -
            condition: '${risk} == true' => ok | steps.1.depends_on = -
            condition: true => ok | steps.1.depends_on = -
            condition: false => ok | steps.1.depends_on = -
            condition: exists(gather_data.outputs.risk) => ok | steps.1.depends_on = ["gather_data"]
            condition: gather_dta.risk == 1 => 9:16 unknown_identifier steps[1].condition: `gather_dta` is not a step, variable or argument (did you mean `gather_data`?)
            condition: nothing_alike == 1 => 9:16 unknown_identifier steps[1].condition: `nothing_alike` is not a step, variable or argument
            condition: args.wh == 'x' => 9:16 unknown_identifier steps[1].condition: there is no argument `wh` (did you mean `who`?)
            condition: args.zzzzz == 'x' => 9:16 unknown_identifier steps[1].condition: there is no argument `zzzzz`
            condition: wh == 'x' => 9:16 unknown_identifier steps[1].condition: `wh` is not a step, variable or argument (did you mean `who`?)
            condition: item == 1 => 9:16 unknown_identifier steps[1].condition: `item` is not a step, variable or argument (`item` exists only in a step with `for_each`)
            condition: index == 1 => 9:16 unknown_identifier steps[1].condition: `index` is not a step, variable or argument (`index` exists only in a step with `for_each`)
            condition: outputs.risk == 1 => 9:16 unknown_identifier steps[1].condition: `outputs` is not a step, variable or argument (name the step: `id.outputs.field`)
            condition: value == 1 => 9:16 unknown_identifier steps[1].condition: `value` is not a step, variable or argument
            condition: gather_data.outputs.rsk == 1 => ~9:16 undeclared_output steps[1].condition: step `gather_data` declares no output `rsk` (did you mean `risk`?) | ok | steps.1.depends_on = ["gather_data"]
            condition: gather_data.outputs['ri sk'] == 1 => ~9:16 undeclared_output steps[1].condition: step `gather_data` declares no output `ri sk` (did you mean `risk`?) | ok | steps.1.depends_on = ["gather_data"]
            condition: gather_data[0] == 1 => ok | steps.1.depends_on = ["gather_data"]
            condition: risk == => 9:23 bad_expression steps[1].condition: expected a value, found the end
            condition: '' => 9:17 bad_expression steps[1].condition: expression is empty
            condition: 5 => 9:16 wrong_type steps[1].condition: expected a string, found a number (quote it if it is meant as text)
            condition: [a] => 9:16 wrong_type steps[1].condition: expected a string, found a list
            condition: matches(risk, '(') => 9:30 bad_expression steps[1].condition: bad regular expression: unclosed group
            condition: shout(risk) => 9:16 bad_expression steps[1].condition: unknown function `shout` (the functions are contains, starts_with, matches, exists, lower)
        "#]],
    );
}

#[test]
fn names_of_a_template() {
    let text = "
        name: tiny
        args: {who: string, list: array}
        steps:
          - {id: gather_data, command: go, outputs: {risk: string}}
          - id: use_it
            command: '@'
            inputs: {mine: gather_data.risk}
        ";
    check_each(
        text,
        &["steps.1.depends_on"],
        &[
            "${mine} ${mine.deep}",
            "${risk} ${who} ${args.who}",
            "${gather_data.outputs.nope}",
            "$${absent}",
            "${absent}",
            "${rsk}",
            "${args.wh}",
            "${item} ${index}",
            "${outputs.x}",
            "${",
            "${}",
            "${a b} ${c d}",
            "$absent {absent}",
            "${use_it.outputs.x}",
        ],
        expect![[r#"
            ${mine} ${mine.deep} => ok | steps.1.depends_on = ["gather_data"]
            ${risk} ${who} ${args.who} => ok | steps.1.depends_on = ["gather_data"]
            ${gather_data.outputs.nope} => ~6:17 undeclared_output steps[1].command: step `gather_data` declares no output `nope` | ok | steps.1.depends_on = ["gather_data"]
            $${absent} => ok | steps.1.depends_on = ["gather_data"]
            ${absent} => ~6:17 unknown_variable steps[1].command: nothing sets `absent` | ok | steps.1.depends_on = ["gather_data"]
            ${rsk} => ~6:17 unknown_variable steps[1].command: nothing sets `rsk` (did you mean `risk`?) | ok | steps.1.depends_on = ["gather_data"]
            ${args.wh} => ~6:17 unknown_variable steps[1].command: there is no argument `wh` (did you mean `who`?) | ok | steps.1.depends_on = ["gather_data"]
            ${item} ${index} => ~6:17 unknown_variable steps[1].command: nothing sets `item` (`item` exists only in a step with `for_each`) | ~6:25 unknown_variable steps[1].command: nothing sets `index` (`index` exists only in a step with `for_each`) | ok | steps.1.depends_on = ["gather_data"]
            ${outputs.x} => ~6:17 unknown_variable steps[1].command: nothing sets `outputs` (name the step: `id.outputs.field`) | ok | steps.1.depends_on = ["gather_data"]
            ${ => 6:15 bad_template steps[1].command: unclosed `${` (write `$${` for a literal `${`)
            ${} => 6:15 bad_template steps[1].command: expected a path in `${…}`, found `}` (write `$${` for a literal `${`)
            ${a b} ${c d} => 6:15 bad_template steps[1].command: `${a b}` is not a reference: expected `}` after the path, found `b` (write `$${` for a literal `${`) | 6:22 bad_template steps[1].command: `${c d}` is not a reference: expected `}` after the path, found `d` (write `$${` for a literal `${`)
            $absent {absent} => ok | steps.1.depends_on = ["gather_data"]
            ${use_it.outputs.x} => 5:9 cycle_detected steps[1]: the dependencies form a cycle: use_it -> use_it (each step in the list waits for the next one; remove one of the dependencies) | ~6:17 undeclared_output steps[1].command: step `use_it` declares no output `x`
        "#]],
    );
}

#[test]
fn items_and_success_criteria() {
    check_each(
        TWO,
        &["steps.1.depends_on", "steps.1.success_criteria", "steps.1.for_each.items"],
        &[
            "for_each: $gather_data.outputs.list",
            "for_each: $gather_data",
            "for_each: $risk",
            "for_each: risk.list",
            "for_each: $gather_dta.outputs.list",
            "for_each: $absent.x",
            "for_each: $who",
            "for_each: $args.who.x",
            "for_each: $item",
            "success_criteria: [outputs.a > 1]",
            "success_criteria: [risk == 'low', who == 'x']",
            "success_criteria: [gather_data.risk == 'low']",
            "success_criteria: []",
            "success_criteria: [use_it.outputs.a == 1]",
            "success_criteria: outputs.a == 1",
            "success_criteria: [absent == 1, 5, '(', args.wh == 1]",
            "success_criteria: [true]",
            "success_criteria: [gather_dta.risk == 1]",
            "success_criteria: [item == 1]",
        ],
        expect![[r#"
            for_each: $gather_data.outputs.list => ok | steps.1.depends_on = ["gather_data"] | steps.1.success_criteria = - | steps.1.for_each.items = {"from":"$gather_data.outputs.list"}
            for_each: $gather_data => ok | steps.1.depends_on = ["gather_data"] | steps.1.success_criteria = - | steps.1.for_each.items = {"from":"$gather_data"}
            for_each: $risk => ok | steps.1.depends_on = - | steps.1.success_criteria = - | steps.1.for_each.items = {"from":"$risk"}
            for_each: risk.list => ok | steps.1.depends_on = - | steps.1.success_criteria = - | steps.1.for_each.items = {"from":"risk.list"}
            for_each: $gather_dta.outputs.list => 9:15 unknown_step steps[1].for_each: there is no step `gather_dta` (did you mean `gather_data`?)
            for_each: $absent.x => 9:15 unknown_step steps[1].for_each: there is no step `absent`
            for_each: $who => ok | steps.1.depends_on = - | steps.1.success_criteria = - | steps.1.for_each.items = {"from":"$who"}
            for_each: $args.who.x => ok | steps.1.depends_on = - | steps.1.success_criteria = - | steps.1.for_each.items = {"from":"$args.who.x"}
            for_each: $item => 9:15 unknown_step steps[1].for_each: there is no step `item`
            success_criteria: [outputs.a > 1] => ~9:24 undeclared_output steps[1].success_criteria[0]: step `use_it` declares no output `a` | ok | steps.1.depends_on = - | steps.1.success_criteria = ["outputs.a > 1"] | steps.1.for_each.items = -
            success_criteria: [risk == 'low', who == 'x'] => ok | steps.1.depends_on = - | steps.1.success_criteria = ["risk == 'low'","who == 'x'"] | steps.1.for_each.items = -
            success_criteria: [gather_data.risk == 'low'] => ok | steps.1.depends_on = ["gather_data"] | steps.1.success_criteria = ["gather_data.risk == 'low'"] | steps.1.for_each.items = -
            success_criteria: [] => ok | steps.1.depends_on = - | steps.1.success_criteria = - | steps.1.for_each.items = -
            success_criteria: [use_it.outputs.a == 1] => ~9:24 undeclared_output steps[1].success_criteria[0]: step `use_it` declares no output `a` | ok | steps.1.depends_on = - | steps.1.success_criteria = ["use_it.outputs.a == 1"] | steps.1.for_each.items = -
            success_criteria: outputs.a == 1 => 9:23 wrong_type steps[1].success_criteria: expected a list, found a string
            success_criteria: [absent == 1, 5, '(', args.wh == 1] => 9:24 unknown_identifier steps[1].success_criteria[0]: `absent` is not a step, variable or argument | 9:37 wrong_type steps[1].success_criteria[1]: expected a string, found a number (quote it if it is meant as text) | 9:42 bad_expression steps[1].success_criteria[2]: expected a value, found the end | 9:45 unknown_identifier steps[1].success_criteria[3]: there is no argument `wh` (did you mean `who`?)
            success_criteria: [true] => ok | steps.1.depends_on = - | steps.1.success_criteria = ["true"] | steps.1.for_each.items = -
            success_criteria: [gather_dta.risk == 1] => 9:24 unknown_identifier steps[1].success_criteria[0]: `gather_dta` is not a step, variable or argument (did you mean `gather_data`?)
            success_criteria: [item == 1] => 9:24 unknown_identifier steps[1].success_criteria[0]: `item` is not a step, variable or argument (`item` exists only in a step with `for_each`)
        "#]],
    );
}

#[test]
fn items_give_a_name_to_templates_and_expressions() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - id: one
            for_each: [a, b]
            condition: item != 'a' and index > 0
            command: ${item} ${item.x} ${index}
            outputs: {risk: string}
            success_criteria: [item == 'b']
            approval: {summary: 'go on with ${item}?'}
        ",
    )
    .check(expect![[r#"
        ok
    "#]]);
}

#[test]
fn a_dotted_output_is_a_variable_of_its_full_name() {
    check_each(
        "
        name: tiny
        steps:
          - {id: one, command: go, outputs: {e.f: string, g: object}}
          - {id: two, command: '@'}
        ",
        &["steps.1.depends_on"],
        &["${e.f}", "${e}", "${e.g}", "${e.f.h}", "${g.h}", "${e[\"f\"]}"],
        expect![[r#"
            ${e.f} => ok | steps.1.depends_on = -
            ${e} => ~4:27 unknown_variable steps[1].command: nothing sets `e` | ok | steps.1.depends_on = -
            ${e.g} => ~4:27 unknown_variable steps[1].command: nothing sets `e` | ok | steps.1.depends_on = -
            ${e.f.h} => ~4:27 unknown_variable steps[1].command: nothing sets `e` | ok | steps.1.depends_on = -
            ${g.h} => ok | steps.1.depends_on = -
            ${e["f"]} => ~4:27 unknown_variable steps[1].command: nothing sets `e` | ok | steps.1.depends_on = -
        "#]],
    );
}
