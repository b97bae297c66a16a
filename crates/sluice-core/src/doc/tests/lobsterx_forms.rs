//! The values that the fields for adapter, shell and fan-out allow.

use super::{check_each, check_step};
use expect_test::expect;

#[test]
fn numbers_and_words_for_the_adapter() {
    check_step(
        &["steps.0.max_output_tokens", "steps.0.max_cost", "steps.0.moderation"],
        &[
            "max_output_tokens: 0",
            "max_output_tokens: 1",
            "max_output_tokens: 9007199254740991",
            "max_output_tokens: 9007199254740992",
            "max_cost_cents: 0",
            "max_cost_cents: 0.25",
            "max_cost_cents: -0.01",
            "max_cost_cents: free",
            "moderation: off",
            "moderation: 'off'",
            "moderation: input",
            "moderation: output",
            "moderation: both",
            "moderation: none",
            "moderation: false",
        ],
        expect![[r#"
            max_output_tokens: 0 => 5:24 bad_value steps[0].max_output_tokens: 0 is not a whole number from 1 to 9007199254740991
            max_output_tokens: 1 => ok | steps.0.max_output_tokens = 1 | steps.0.max_cost = - | steps.0.moderation = "off"
            max_output_tokens: 9007199254740991 => ok | steps.0.max_output_tokens = 9007199254740991 | steps.0.max_cost = - | steps.0.moderation = "off"
            max_output_tokens: 9007199254740992 => 5:24 bad_value steps[0].max_output_tokens: 9007199254740992 is not a whole number from 1 to 9007199254740991
            max_cost_cents: 0 => ok | steps.0.max_output_tokens = - | steps.0.max_cost = 0 | steps.0.moderation = "off"
            max_cost_cents: 0.25 => ok | steps.0.max_output_tokens = - | steps.0.max_cost = 250000 | steps.0.moderation = "off"
            max_cost_cents: -0.01 => 5:21 bad_value steps[0].max_cost_cents: an amount of money cannot be negative
            max_cost_cents: free => 5:21 wrong_type steps[0].max_cost_cents: expected a number, found a string
            moderation: off => ok | steps.0.max_output_tokens = - | steps.0.max_cost = - | steps.0.moderation = "off"
            moderation: 'off' => ok | steps.0.max_output_tokens = - | steps.0.max_cost = - | steps.0.moderation = "off"
            moderation: input => ok | steps.0.max_output_tokens = - | steps.0.max_cost = - | steps.0.moderation = "input"
            moderation: output => ok | steps.0.max_output_tokens = - | steps.0.max_cost = - | steps.0.moderation = "output"
            moderation: both => ok | steps.0.max_output_tokens = - | steps.0.max_cost = - | steps.0.moderation = "both"
            moderation: none => 5:17 bad_value steps[0].moderation: `none` is not a moderation (use one of: off, input, output, both)
            moderation: false => 5:17 wrong_type steps[0].moderation: expected a string, found a boolean (quote it if it is meant as text)
        "#]],
    );
}

#[test]
fn lists_of_words() {
    check_step(
        &["steps.0.model", "steps.0.tools", "steps.0.capabilities", "steps.0.memory"],
        &[
            "model: m1",
            "model: 4",
            "model: [m1]",
            "tools: []",
            "tools: [a, b]",
            "tools: a",
            "tools: [1, a, true]",
            "capabilities: [gpu]",
            "capabilities: {gpu: 1}",
            "memory: short",
            "memory: 1",
        ],
        expect![[r#"
            model: m1 => ok | steps.0.model = "m1" | steps.0.tools = - | steps.0.capabilities = - | steps.0.memory = -
            model: 4 => 5:12 wrong_type steps[0].model: expected a string, found a number (quote it if it is meant as text)
            model: [m1] => 5:12 wrong_type steps[0].model: expected a string, found a list
            tools: [] => ok | steps.0.model = - | steps.0.tools = - | steps.0.capabilities = - | steps.0.memory = -
            tools: [a, b] => ok | steps.0.model = - | steps.0.tools = ["a","b"] | steps.0.capabilities = - | steps.0.memory = -
            tools: a => 5:12 wrong_type steps[0].tools: expected a list, found a string
            tools: [1, a, true] => 5:13 wrong_type steps[0].tools[0]: expected a string, found a number (quote it if it is meant as text) | 5:19 wrong_type steps[0].tools[2]: expected a string, found a boolean (quote it if it is meant as text)
            capabilities: [gpu] => ok | steps.0.model = - | steps.0.tools = - | steps.0.capabilities = ["gpu"] | steps.0.memory = -
            capabilities: {gpu: 1} => 5:19 wrong_type steps[0].capabilities: expected a list, found a map
            memory: short => ok | steps.0.model = - | steps.0.tools = - | steps.0.capabilities = - | steps.0.memory = "short"
            memory: 1 => 5:13 wrong_type steps[0].memory: expected a string, found a number (quote it if it is meant as text)
        "#]],
    );
}

#[test]
fn repair_merge_and_idempotence() {
    check_step(
        &["steps.0.reask", "steps.0.merge", "steps.0.idempotent"],
        &[
            "repair: {reask: 0}",
            "repair: {reask: 1}",
            "repair: {reask: 10}",
            "repair: {reask: 11}",
            "repair: {}",
            "repair: {re_ask: 1}",
            "repair: 2",
            "merge: last_write_wins",
            "merge: concat",
            "merge: array",
            "merge: json_object",
            "merge: json",
            "merge: concatt",
            "idempotent: true",
            "idempotent: false",
            "idempotent: 'false'",
            "idempotent: 0",
        ],
        expect![[r#"
            repair: {reask: 0} => ok | steps.0.reask = - | steps.0.merge = - | steps.0.idempotent = true
            repair: {reask: 1} => ok | steps.0.reask = 1 | steps.0.merge = - | steps.0.idempotent = true
            repair: {reask: 10} => ok | steps.0.reask = 10 | steps.0.merge = - | steps.0.idempotent = true
            repair: {reask: 11} => 5:21 bad_value steps[0].repair.reask: 11 is not a whole number from 0 to 10
            repair: {} => 5:13 missing_field steps[0].repair: `reask` is missing
            repair: {re_ask: 1} => 5:13 missing_field steps[0].repair: `reask` is missing | 5:14 unknown_field steps[0].repair.re_ask: unknown field `re_ask` (did you mean `reask`?)
            repair: 2 => 5:13 wrong_type steps[0].repair: expected a map, found a number
            merge: last_write_wins => ok | steps.0.reask = - | steps.0.merge = "last_write_wins" | steps.0.idempotent = true
            merge: concat => ok | steps.0.reask = - | steps.0.merge = "concat" | steps.0.idempotent = true
            merge: array => ok | steps.0.reask = - | steps.0.merge = "array" | steps.0.idempotent = true
            merge: json_object => ok | steps.0.reask = - | steps.0.merge = "json_object" | steps.0.idempotent = true
            merge: json => 5:12 bad_value steps[0].merge: `json` is not a merge strategy (did you mean `json_object`?)
            merge: concatt => 5:12 bad_value steps[0].merge: `concatt` is not a merge strategy (did you mean `concat`?)
            idempotent: true => ok | steps.0.reask = - | steps.0.merge = - | steps.0.idempotent = true
            idempotent: false => ok | steps.0.reask = - | steps.0.merge = - | steps.0.idempotent = false
            idempotent: 'false' => 5:17 wrong_type steps[0].idempotent: expected `true` or `false`, found a string
            idempotent: 0 => 5:17 wrong_type steps[0].idempotent: expected `true` or `false`, found a number
        "#]],
    );
}

#[test]
fn working_directories_and_variables() {
    check_step(
        &["steps.0.cwd", "steps.0.env"],
        &[
            "cwd: a/b",
            "cwd: .",
            "cwd: ..",
            "cwd: a/../b",
            "cwd: a/..",
            "cwd: ../a",
            "cwd: /etc",
            "cwd: a..b/..c",
            "cwd: \"a\\0b\"",
            "cwd: 5",
            "env: {A: b, _B2: 1.10, c: true}",
            "env: {A: null}",
            "env: {A: [1]}",
            "env: {2A: x}",
            "env: {'': x}",
            "env: {A-B: x}",
            "env: {é: x}",
            "env: {SLUICE_V1: x}",
            "env: {SLUICE: x}",
            "env: {A: \"a\\0b\"}",
            "env: [A]",
            "env: {A: &v 1.10, B: *v}",
            "env: {A: '1.10', B: 0x10, C: 1e3, D: True}",
        ],
        expect![[r#"
            cwd: a/b => ok | steps.0.cwd = "a/b" | steps.0.env = -
            cwd: . => ok | steps.0.cwd = "." | steps.0.env = -
            cwd: .. => 5:10 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            cwd: a/../b => 5:10 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            cwd: a/.. => 5:10 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            cwd: ../a => 5:10 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            cwd: /etc => 5:10 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            cwd: a..b/..c => ok | steps.0.cwd = "a..b/..c" | steps.0.env = -
            cwd: "a\0b" => 5:10 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            cwd: 5 => 5:10 wrong_type steps[0].cwd: expected a string, found a number (quote it if it is meant as text)
            env: {A: b, _B2: 1.10, c: true} => ok | steps.0.cwd = - | steps.0.env = {"A":"b","_B2":"1.10","c":"true"}
            env: {A: null} => 5:14 wrong_type steps[0].env.A: expected a string, found nothing
            env: {A: [1]} => 5:14 wrong_type steps[0].env.A: expected a string, found a list
            env: {2A: x} => 5:11 bad_value steps[0].env.2A: `2A` cannot be the name of a variable
            env: {'': x} => 5:11 bad_value steps[0].env.: `` cannot be the name of a variable
            env: {A-B: x} => 5:11 bad_value steps[0].env.A-B: `A-B` cannot be the name of a variable
            env: {é: x} => 5:11 bad_value steps[0].env.é: `é` cannot be the name of a variable
            env: {SLUICE_V1: x} => 5:11 bad_value steps[0].env.SLUICE_V1: names that begin with `SLUICE_` are reserved for the engine
            env: {SLUICE: x} => ok | steps.0.cwd = - | steps.0.env = {"SLUICE":"x"}
            env: {A: "a\0b"} => 5:11 bad_value steps[0].env.A: a variable cannot hold a NUL character
            env: [A] => 5:10 wrong_type steps[0].env: expected a map, found a list
            env: {A: &v 1.10, B: *v} => 5:26 wrong_type steps[0].env.B: expected a string, found a number (quote it if it is meant as text)
            env: {A: '1.10', B: 0x10, C: 1e3, D: True} => ok | steps.0.cwd = - | steps.0.env = {"A":"1.10","B":"0x10","C":"1e3","D":"True"}
        "#]],
    );
}

#[test]
fn items_of_a_fan_out() {
    check_each(
        "
        name: tiny
        args: {list: array}
        steps:
          - id: one
            command: go
            @
        ",
        &["steps.0.for_each"],
        &[
            "for_each: [a, 2, {b: c}, null]",
            "for_each: []",
            "for_each: $args.list",
            "for_each: args.list",
            "for_each: '${ args.list }'",
            "for_each: $args.lst",
            "for_each: {items: [a]}",
            "for_each: {items: [a], max_parallel: 2, max_items: 3}",
            "for_each: {items: $args.list}",
            "for_each: {item: [a]}",
            "for_each: {}",
            "for_each: 5",
            "for_each: true",
            "for_each: 'a, b'",
            "for_each: ''",
            "for_each: {items: 5}",
            "for_each: {items: $args.lst}",
            "for_each: {items: [a], max_items: 0}",
            "for_each: {items: [a], max_items: 1}",
            "for_each: {items: [a], max_items: 10000}",
            "for_each: {items: [a], max_items: 10001}",
            "for_each: {items: [a], max_parallel: 0}",
            "for_each: {items: [a], max_parallel: 1024}",
            "for_each: {items: [a], max_parallel: 1025}",
        ],
        expect![[r#"
            for_each: [a, 2, {b: c}, null] => ok | steps.0.for_each = {"items":{"list":["a",2,{"b":"c"},null]},"max_items":1000}
            for_each: [] => ok | steps.0.for_each = {"items":{"list":[]},"max_items":1000}
            for_each: $args.list => ok | steps.0.for_each = {"items":{"from":"$args.list"},"max_items":1000}
            for_each: args.list => ok | steps.0.for_each = {"items":{"from":"args.list"},"max_items":1000}
            for_each: '${ args.list }' => ok | steps.0.for_each = {"items":{"from":"args.list"},"max_items":1000}
            for_each: $args.lst => 6:15 unknown_identifier steps[0].for_each: there is no argument `lst` (did you mean `list`?)
            for_each: {items: [a]} => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":1000}
            for_each: {items: [a], max_parallel: 2, max_items: 3} => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":3,"max_parallel":2}
            for_each: {items: $args.list} => ok | steps.0.for_each = {"items":{"from":"$args.list"},"max_items":1000}
            for_each: {item: [a]} => 6:15 missing_field steps[0].for_each: `items` is missing | 6:16 unknown_field steps[0].for_each.item: unknown field `item` (did you mean `items`?)
            for_each: {} => 6:15 missing_field steps[0].for_each: `items` is missing
            for_each: 5 => 6:15 wrong_type steps[0].for_each: expected a list, or a reference such as `$id.outputs.list`, found a number
            for_each: true => 6:15 wrong_type steps[0].for_each: expected a list, or a reference such as `$id.outputs.list`, found a boolean
            for_each: 'a, b' => 6:15 bad_reference steps[0].for_each: expected the end of the path, found `,` (write `$id.outputs.list`, `$args.list` or a literal list)
            for_each: '' => 6:15 bad_reference steps[0].for_each: expected a name, found the end (write `$id.outputs.list`, `$args.list` or a literal list)
            for_each: {items: 5} => 6:23 wrong_type steps[0].for_each.items: expected a list, or a reference such as `$id.outputs.list`, found a number
            for_each: {items: $args.lst} => 6:23 unknown_identifier steps[0].for_each: there is no argument `lst` (did you mean `list`?)
            for_each: {items: [a], max_items: 0} => 6:39 bad_value steps[0].for_each.max_items: 0 is not a whole number from 1 to 10000
            for_each: {items: [a], max_items: 1} => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":1}
            for_each: {items: [a], max_items: 10000} => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":10000}
            for_each: {items: [a], max_items: 10001} => 6:39 bad_value steps[0].for_each.max_items: 10001 is not a whole number from 1 to 10000
            for_each: {items: [a], max_parallel: 0} => 6:42 bad_value steps[0].for_each.max_parallel: 0 is not a whole number from 1 to 1024
            for_each: {items: [a], max_parallel: 1024} => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":1000,"max_parallel":1024}
            for_each: {items: [a], max_parallel: 1025} => 6:42 bad_value steps[0].for_each.max_parallel: 1025 is not a whole number from 1 to 1024
        "#]],
    );
}

#[test]
fn bounds_stand_beside_the_items_or_inside() {
    check_each(
        "
        name: tiny
        steps:
          - {id: one, command: go, @}
        ",
        &["steps.0.for_each"],
        &[
            "for_each: [a], max_items: 1, max_parallel: 1",
            "for_each: [a], max_items: 10000, max_parallel: 1024",
            "for_each: [a], max_items: 10001, max_parallel: 1025",
            "for_each: [a], max_items: 0, max_parallel: 0",
            "for_each: {items: [a]}, max_items: 5",
            "for_each: {items: [a], max_items: 4}, max_items: 5",
            "for_each: {items: [a], max_parallel: 4}, max_parallel: 5",
            "for_each: {items: [a], max_parallel: 4}, max_items: 5",
            "max_items: 5",
            "max_parallel: 5",
        ],
        expect![[r#"
            for_each: [a], max_items: 1, max_parallel: 1 => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":1,"max_parallel":1}
            for_each: [a], max_items: 10000, max_parallel: 1024 => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":10000,"max_parallel":1024}
            for_each: [a], max_items: 10001, max_parallel: 1025 => 3:54 bad_value steps[0].max_items: 10001 is not a whole number from 1 to 10000 | 3:75 bad_value steps[0].max_parallel: 1025 is not a whole number from 1 to 1024
            for_each: [a], max_items: 0, max_parallel: 0 => 3:54 bad_value steps[0].max_items: 0 is not a whole number from 1 to 10000 | 3:71 bad_value steps[0].max_parallel: 0 is not a whole number from 1 to 1024
            for_each: {items: [a]}, max_items: 5 => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":5}
            for_each: {items: [a], max_items: 4}, max_items: 5 => 3:77 conflicting_fields steps[0].max_items: `max_items` is also set inside `for_each`
            for_each: {items: [a], max_parallel: 4}, max_parallel: 5 => 3:83 conflicting_fields steps[0].max_parallel: `max_parallel` is also set inside `for_each`
            for_each: {items: [a], max_parallel: 4}, max_items: 5 => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":5,"max_parallel":4}
            max_items: 5 => 3:39 conflicting_fields steps[0].max_items: `max_items` belongs to `for_each`, which is not set
            max_parallel: 5 => 3:42 conflicting_fields steps[0].max_parallel: `max_parallel` belongs to `for_each`, which is not set
        "#]],
    );
}
