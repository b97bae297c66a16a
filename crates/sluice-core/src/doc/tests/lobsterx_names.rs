//! Names: of workflows, steps, arguments, inputs, outputs, phases, roles, members.

use super::{Script, check_each, check_step, check_top};
use expect_test::expect;

#[test]
fn workflows_are_named_in_kebab_case() {
    check_each(
        "
        name: @
        steps: [{id: one, command: go}]
        ",
        &["name"],
        &[
            "a",
            "a1-b2",
            "credit-check",
            "Credit-Check",
            "creditCheck",
            "credit_check",
            "1a",
            "-a",
            "a-",
            "a--b",
            "'a b'",
            "''",
            "a.b",
            "5",
            "[a]",
            "null",
            "café",
            "\u{430}bc",
            "'!'",
        ],
        expect![[r#"
            a => ok | name = "a"
            a1-b2 => ok | name = "a1-b2"
            credit-check => ok | name = "credit-check"
            Credit-Check => 1:7 bad_name name: `Credit-Check` is not in kebab-case (write `credit-check`)
            creditCheck => 1:7 bad_name name: `creditCheck` is not in kebab-case (write `credit-check`)
            credit_check => 1:7 bad_name name: `credit_check` is not in kebab-case (write `credit-check`)
            1a => 1:7 bad_name name: `1a` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first)
            -a => 1:7 bad_name name: `-a` is not in kebab-case (write `a`)
            a- => 1:7 bad_name name: `a-` is not in kebab-case (write `a`)
            a--b => 1:7 bad_name name: `a--b` is not in kebab-case (write `a-b`)
            'a b' => 1:7 bad_name name: `a b` is not in kebab-case (write `a-b`)
            '' => 1:7 bad_name name: `` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first)
            a.b => 1:7 bad_name name: `a.b` is not in kebab-case (write `a-b`)
            5 => 1:7 wrong_type name: expected a string, found a number (quote it if it is meant as text)
            [a] => 1:7 wrong_type name: expected a string, found a list
            null => 1:1 missing_field: `name` is missing
            café => 1:7 bad_name name: `café` has a character outside ASCII: U+00E9 (names are lower-case letters, digits and single dashes, a letter first)
            аbc => 1:7 bad_name name: `аbc` has a character outside ASCII: U+0430 (names are lower-case letters, digits and single dashes, a letter first)
            '!' => 1:7 bad_name name: `!` is not in kebab-case (names are lower-case letters, digits and single dashes, a letter first)
        "#]],
    );
}

#[test]
fn steps_are_named_in_snake_case() {
    check_each(
        "
        name: tiny
        steps: [{id: @, command: go}]
        ",
        &["steps.0.id"],
        &[
            "a",
            "a_1",
            "a__b",
            "a_",
            "_a",
            "1a",
            "A",
            "gatherData",
            "gather-data",
            "gather data",
            "''",
            "5",
            "null",
            "[a]",
            "g\u{430}ther",
            "\u{661}a",
            "__proto__",
            "constructor",
            "stdout",
            "'a\n  b'",
        ],
        expect![[r#"
            a => ok | steps.0.id = "a"
            a_1 => ok | steps.0.id = "a_1"
            a__b => ok | steps.0.id = "a__b"
            a_ => ok | steps.0.id = "a_"
            _a => 2:14 bad_name steps[0].id: `_a` is not in snake_case (write `a`)
            1a => 2:14 bad_name steps[0].id: `1a` is not in snake_case (names are lower-case letters, digits and underscores, a letter first)
            A => 2:14 bad_name steps[0].id: `A` is not in snake_case (write `a`)
            gatherData => 2:14 bad_name steps[0].id: `gatherData` is not in snake_case (write `gather_data`)
            gather-data => 2:14 bad_name steps[0].id: `gather-data` is not in snake_case (write `gather_data`)
            gather data => 2:14 bad_name steps[0].id: `gather data` is not in snake_case (write `gather_data`)
            '' => 2:14 bad_name steps[0].id: `` is not in snake_case (names are lower-case letters, digits and underscores, a letter first)
            5 => 2:14 wrong_type steps[0].id: expected a string, found a number (quote it if it is meant as text)
            null => 2:9 missing_field steps[0]: `id` is missing
            [a] => 2:14 wrong_type steps[0].id: expected a string, found a list
            gаther => 2:14 bad_name steps[0].id: `gаther` has a character outside ASCII: U+0430 (names are lower-case letters, digits and underscores, a letter first)
            ١a => 2:14 bad_name steps[0].id: `١a` has a character outside ASCII: U+0661 (names are lower-case letters, digits and underscores, a letter first)
            __proto__ => 2:14 bad_name steps[0].id: `__proto__` is not in snake_case (write `proto`)
            constructor => ok | steps.0.id = "constructor"
            stdout => ok | steps.0.id = "stdout"
            'a
              b' => 2:20 bad_name steps[0].id: `a b` is not in snake_case (write `a_b`)
        "#]],
    );
}

#[test]
fn a_letter_that_cannot_be_seen_is_named() {
    let text = "{name: tiny, steps: [{id: a\u{200b}b, command: go}]}";
    let told = Script::lobsterx(text).transcript();
    assert!(told.contains("has a character outside ASCII: U+200B"), "{told}");
}

#[test]
fn words_of_expressions_are_no_step_ids() {
    check_each(
        "
        name: tiny
        steps: [{id: '@', command: go}]
        ",
        &[],
        &[
            "args", "outputs", "item", "index", "value", "and", "or", "not", "in", "true", "false",
            "null", "exists", "contains", "input",
        ],
        expect![[r#"
            args => 2:14 reserved_name steps[0].id: `args` already means something in expressions (call the step `args_step`, for example)
            outputs => 2:14 reserved_name steps[0].id: `outputs` already means something in expressions (call the step `outputs_step`, for example)
            item => 2:14 reserved_name steps[0].id: `item` already means something in expressions (call the step `item_step`, for example)
            index => 2:14 reserved_name steps[0].id: `index` already means something in expressions (call the step `index_step`, for example)
            value => 2:14 reserved_name steps[0].id: `value` already means something in expressions (call the step `value_step`, for example)
            and => 2:14 reserved_name steps[0].id: `and` already means something in expressions (call the step `and_step`, for example)
            or => 2:14 reserved_name steps[0].id: `or` already means something in expressions (call the step `or_step`, for example)
            not => 2:14 reserved_name steps[0].id: `not` already means something in expressions (call the step `not_step`, for example)
            in => 2:14 reserved_name steps[0].id: `in` already means something in expressions (call the step `in_step`, for example)
            true => 2:14 reserved_name steps[0].id: `true` already means something in expressions (call the step `true_step`, for example)
            false => 2:14 reserved_name steps[0].id: `false` already means something in expressions (call the step `false_step`, for example)
            null => 2:14 reserved_name steps[0].id: `null` already means something in expressions (call the step `null_step`, for example)
            exists => ok
            contains => ok
            input => ok
        "#]],
    );
}

#[test]
fn names_have_at_most_128_characters() {
    let told = |text: String| Script::lobsterx(&text).transcript();
    let (fits, over) = ("a".repeat(128), "a".repeat(129));
    for name in [&fits, &over] {
        let expected = if name.len() == 128 { "ok\n" } else { "1:7 bad_name name" };
        let text = format!("name: {name}\nsteps: [{{id: one, command: go}}]\n");
        assert!(told(text).starts_with(expected), "a workflow's name");
        let expected = if name.len() == 128 { "ok\n" } else { "2:14 bad_name steps[0].id" };
        let text = format!("name: tiny\nsteps: [{{id: {name}, command: go}}]\n");
        assert!(told(text).starts_with(expected), "a step's id");
        let text =
            format!("name: tiny\nargs: {{{name}: string}}\nsteps: [{{id: one, command: go}}]\n");
        let expected = if name.len() == 128 { "ok\n" } else { "2:8 bad_name args" };
        assert!(told(text).starts_with(expected), "an argument");
        let text =
            format!("name: tiny\nsteps: [{{id: one, command: go, outputs: {{{name}: string}}}}]\n");
        let expected = if name.len() == 128 { "ok\n" } else { "2:42 bad_name steps[0].outputs" };
        assert!(told(text).starts_with(expected), "an output");
    }
    let text = format!("name: tiny\nsteps: [{{id: {over}, command: go}}]\n");
    expect![[r#"
        2:14 bad_name steps[0].id: the name has 129 characters; the limit is 128
    "#]]
    .assert_eq(&told(text));
    // A name that is both too long and wrong is shown shortened.
    let text = format!("name: tiny\nsteps: [{{id: {}, command: go}}]\n", "A".repeat(5000));
    assert!(told(text).len() < 600);
}

#[test]
fn a_letter_that_only_looks_like_another_is_named() {
    // The second `gather` has a Cyrillic letter.
    Script::lobsterx(
        "
        name: tiny
        steps:
          - {id: gather, command: go}
          - {id: g\u{430}ther, command: go}
          - {id: use_it, command: go, depends_on: [g\u{430}ther, gather]}
        ",
    )
    .check(expect![[r#"
        4:10 bad_name steps[1].id: `gаther` has a character outside ASCII: U+0430 (names are lower-case letters, digits and underscores, a letter first)
    "#]]);
}

#[test]
fn arguments_inputs_and_outputs() {
    check_top(
        &["args"],
        &[
            "args: {a_1: string}",
            "args: {__proto__: string}",
            "args: {constructor: string}",
            "args: {A: string}",
            "args: {a-b: string}",
            "args: {'': string}",
            "args: {item: string}",
            "args: {1: string}",
            "args: [a]",
        ],
        expect![[r#"
            args: {a_1: string} => ok | args = {"a_1":{"type":"string"}}
            args: {__proto__: string} => 2:8 bad_name args.__proto__: `__proto__` is not in snake_case (write `proto`)
            args: {constructor: string} => ok | args = {"constructor":{"type":"string"}}
            args: {A: string} => 2:8 bad_name args.A: `A` is not in snake_case (write `a`)
            args: {a-b: string} => 2:8 bad_name args.a-b: `a-b` is not in snake_case (write `a_b`)
            args: {'': string} => 2:8 bad_name args.: `` is not in snake_case (names are lower-case letters, digits and underscores, a letter first)
            args: {item: string} => ok | args = {"item":{"type":"string"}}
            args: {1: string} => 2:8 bad_name args.1: `1` is not in snake_case (names are lower-case letters, digits and underscores, a letter first)
            args: [a] => 2:7 wrong_type args: expected a map, found a list
        "#]],
    );
    check_step(
        &["steps.0.outputs"],
        &[
            "outputs: {a: , B_2: , c-d: , e.f: , __proto__: }",
            "outputs: {1a: }",
            "outputs: {'': }",
            "outputs: {a b: }",
            "outputs: {-a: }",
            "outputs: {\u{430}: }",
            "outputs: {a$: }",
            "outputs: [a]",
        ],
        expect![[r#"
            outputs: {a: , B_2: , c-d: , e.f: , __proto__: } => ok | steps.0.outputs = {"a":{},"B_2":{},"c-d":{},"e.f":{},"__proto__":{}}
            outputs: {1a: } => 5:15 bad_name steps[0].outputs.1a: `1a` is not a name (names are letters, digits and `_ . -`, a letter or `_` first)
            outputs: {'': } => 5:15 bad_name steps[0].outputs.: `` is not a name (names are letters, digits and `_ . -`, a letter or `_` first)
            outputs: {a b: } => 5:15 bad_name steps[0].outputs.a b: `a b` is not a name (write `a_b`)
            outputs: {-a: } => 5:15 bad_name steps[0].outputs.-a: `-a` is not a name (write `a`)
            outputs: {а: } => 5:15 bad_name steps[0].outputs.а: `а` has a character outside ASCII: U+0430 (names are letters, digits and `_ . -`, a letter or `_` first)
            outputs: {a$: } => 5:15 bad_name steps[0].outputs.a$: `a$` is not a name (write `a`)
            outputs: [a] => 5:14 wrong_type steps[0].outputs: expected a map, found a list
        "#]],
    );
    check_each(
        "
        name: tiny
        steps:
          - {id: one, command: go}
          - {id: two, command: go, inputs: {@: one.x}}
        ",
        &["steps.1.inputs"],
        &["a", "B_2", "e.f", "__proto__", "1a", "''", "a b", "\u{430}"],
        expect![[r#"
            a => ok | steps.1.inputs = {"a":{"from":["one.x"]}}
            B_2 => ok | steps.1.inputs = {"B_2":{"from":["one.x"]}}
            e.f => ok | steps.1.inputs = {"e.f":{"from":["one.x"]}}
            __proto__ => ok | steps.1.inputs = {"__proto__":{"from":["one.x"]}}
            1a => 4:37 bad_name steps[1].inputs.1a: `1a` is not a name (names are letters, digits and `_ . -`, a letter or `_` first)
            '' => 4:37 bad_name steps[1].inputs.: `` is not a name (names are letters, digits and `_ . -`, a letter or `_` first)
            a b => 4:37 bad_name steps[1].inputs.a b: `a b` is not a name (write `a_b`)
            а => 4:37 bad_name steps[1].inputs.а: `а` has a character outside ASCII: U+0430 (names are letters, digits and `_ . -`, a letter or `_` first)
        "#]],
    );
}

#[test]
fn no_two_things_of_a_kind_share_a_name() {
    Script::lobsterx(
        "
        name: tiny
        phases: [early, {id: early, name: Late}, late]
        team:
          members: [{id: ada}, {id: bob}, {id: ada}]
        steps:
          - {id: one, command: go}
          - {id: two, command: go}
          - {id: one, command: go}
          - {id: one, command: go}
        ",
    )
    .check(expect![[r#"
        2:22 duplicate_name phases[1]: the phase `early` is declared twice
        4:40 duplicate_name team.members[2]: the member `ada` is declared twice
        8:10 duplicate_step_id steps[2].id: a step called `one` exists already
        9:10 duplicate_step_id steps[3].id: a step called `one` exists already
    "#]]);
}

#[test]
fn keys_that_other_languages_trip_over_are_just_names() {
    Script::lobsterx(
        "
        name: tiny
        steps:
          - id: constructor
            command: go
            outputs: {__proto__: string, toString: string}
          - id: two
            command: ${constructor.__proto__} ${toString}
            condition: constructor.outputs.__proto__ == 'x' and toString != 'y'
        outputs: {__proto__: '${__proto__}'}
        ",
    )
    .show("outputs")
    .order()
    .check(expect![[r#"
        ok
        outputs = {"__proto__":"${__proto__}"}
        constructor <-
        two <- constructor
        wave: constructor
        wave: two
    "#]]);
}
