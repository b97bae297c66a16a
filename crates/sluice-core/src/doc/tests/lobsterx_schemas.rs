//! Declarations of arguments and outputs.

use super::{Script, check_step, check_top};
use expect_test::expect;

#[test]
fn arguments() {
    check_top(
        &["args"],
        &[
            "args: {a: }",
            "args: {a: string}",
            "args: {a: {}}",
            "args: {a: {type: integer, required: true, default: 5, enum: [5, 6], description: d}}",
            "args: {a: {type: strng}}",
            "args: {a: strng}",
            "args: {a: 5}",
            "args: {a: [string]}",
            "args: {a: {required: 'yes'}}",
            "args: {a: {type: integer, default: x}}",
            "args: {a: {enum: [a, b], default: c}}",
            "args: {a: {enum: a}}",
            "args: {a: {type: integer, enum: [a]}}",
            "args: {a: {default: null}}",
            "args: {a: {default: false}}",
            "args: {a: {minimum: 1}}",
            "args:",
        ],
        expect![[r#"
            args: {a: } => ok | args = {"a":{}}
            args: {a: string} => ok | args = {"a":{"type":"string"}}
            args: {a: {}} => ok | args = {"a":{}}
            args: {a: {type: integer, required: true, default: 5, enum: [5, 6], description: d}} => ok | args = {"a":{"type":"integer","required":true,"default":5,"enum":[5,6],"description":"d"}}
            args: {a: {type: strng}} => 2:18 bad_value args.a.type: `strng` is not a type (did you mean `string`?)
            args: {a: strng} => 2:11 bad_value args.a: `strng` is not a type (did you mean `string`?)
            args: {a: 5} => 2:11 wrong_type args.a: expected a string, found a number (quote it if it is meant as text)
            args: {a: [string]} => 2:11 wrong_type args.a: expected a string, found a list
            args: {a: {required: 'yes'}} => 2:22 wrong_type args.a.required: expected `true` or `false`, found a string
            args: {a: {type: integer, default: x}} => 2:36 bad_schema args.a.default: the default is a string, not an integer
            args: {a: {enum: [a, b], default: c}} => 2:35 bad_schema args.a.default: the default is "c", not one of "a", "b"
            args: {a: {enum: a}} => 2:18 wrong_type args.a.enum: expected a list, found a string
            args: {a: {type: integer, enum: [a]}} => 2:33 bad_schema args.a.enum.0: allowed value is a string, not an integer
            args: {a: {default: null}} => ok | args = {"a":{}}
            args: {a: {default: false}} => ok | args = {"a":{"default":false}}
            args: {a: {minimum: 1}} => 2:12 unknown_field args.a.minimum: unknown field `minimum`
            args: => ok | args = -
        "#]],
    );
}

#[test]
fn field_schemas_of_outputs() {
    check_step(
        &["steps.0.outputs"],
        &[
            "outputs: {a: , b: string, c: {}}",
            "outputs: {a: {type: string, required: false, minLength: 1, maxLength: 2, pattern: '^a', enum: [a, ab], description: d}}",
            "outputs: {a: {type: number, minimum: 1, maximum: 2.5}}",
            "outputs: {a: {type: array, items: string}}",
            "outputs: {a: {type: object, required: [x], properties: {x: integer, y: {required: false}}}}",
            "outputs: {a: strng}",
            "outputs: {a: 5}",
            "outputs: {a: {type: [string]}}",
            "outputs: {a: {type: number, minimum: 3, maximum: 2}}",
            "outputs: {a: {type: string, minLength: 3, maxLength: 2}}",
            "outputs: {a: {pattern: '('}}",
            "outputs: {a: {type: string, minLength: -1}}",
            "outputs: {a: {required: 1}}",
            "outputs: {a: {enum: x}}",
            "outputs: {a: {type: integer, enum: [x]}}",
            "outputs: {a: {minimum: '1'}}",
        ],
        expect![[r#"
            outputs: {a: , b: string, c: {}} => ok | steps.0.outputs = {"a":{},"b":{"type":"string"},"c":{}}
            outputs: {a: {type: string, required: false, minLength: 1, maxLength: 2, pattern: '^a', enum: [a, ab], description: d}} => ok | steps.0.outputs = {"a":{"type":"string","required":false,"enum":["a","ab"],"minLength":1,"maxLength":2,"pattern":"^a","description":"d"}}
            outputs: {a: {type: number, minimum: 1, maximum: 2.5}} => ok | steps.0.outputs = {"a":{"type":"number","minimum":1,"maximum":2.5}}
            outputs: {a: {type: array, items: string}} => ok | steps.0.outputs = {"a":{"type":"array","items":{"type":"string"}}}
            outputs: {a: {type: object, required: [x], properties: {x: integer, y: {required: false}}}} => ok | steps.0.outputs = {"a":{"type":"object","required":["x"],"properties":{"x":{"type":"integer"},"y":{"required":false}}}}
            outputs: {a: strng} => 5:18 bad_value steps[0].outputs.a: `strng` is not a type (did you mean `string`?)
            outputs: {a: 5} => 5:18 wrong_type steps[0].outputs.a: expected a string, found a number (quote it if it is meant as text)
            outputs: {a: {type: [string]}} => 5:25 wrong_type steps[0].outputs.a.type: expected a string, found a list
            outputs: {a: {type: number, minimum: 3, maximum: 2}} => 5:42 bad_schema steps[0].outputs.a.minimum: `minimum` 3 is above `maximum` 2
            outputs: {a: {type: string, minLength: 3, maxLength: 2}} => 5:44 bad_schema steps[0].outputs.a.minLength: `minLength` 3 is above `maxLength` 2
            outputs: {a: {pattern: '('}} => 5:29 bad_pattern steps[0].outputs.a.pattern: bad regular expression: unclosed group
            outputs: {a: {type: string, minLength: -1}} => 5:44 bad_value steps[0].outputs.a.minLength: -1 is not a whole number from 0 to 1048576
            outputs: {a: {required: 1}} => 5:29 wrong_type steps[0].outputs.a.required: expected `true`, `false` or a list of property names, found a number
            outputs: {a: {enum: x}} => 5:25 wrong_type steps[0].outputs.a.enum: expected a list, found a string
            outputs: {a: {type: integer, enum: [x]}} => 5:40 bad_schema steps[0].outputs.a.enum.0: allowed value is a string, not an integer
            outputs: {a: {minimum: '1'}} => 5:28 wrong_type steps[0].outputs.a.minimum: expected a number, found a string
        "#]],
    );
}

#[test]
fn schemas_nest_to_a_bound() {
    let nested = |levels: usize| {
        let open = "{type: array, items: ".repeat(levels);
        let text = format!(
            "name: tiny\nsteps: [{{id: one, command: go, outputs: {{x: {open}string{}}}}}]\n",
            "}".repeat(levels)
        );
        Script::lobsterx(&text).transcript()
    };
    assert_eq!(nested(16), "ok\n");
    let told = nested(17);
    assert!(told.contains("bad_schema") && told.contains("deeper than 16 levels"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn contradictions_deep_inside_are_told_once_where_they_stand() {
    check_step(
        &[],
        &[
            "outputs: {a: {type: object, properties: {b: {type: array, items: {minimum: 3, maximum: 2}}}}}",
            "outputs: {a: {type: object, required: [z], properties: {b: string}}}",
            "outputs: {a: {type: string, minimum: 1}}",
            "outputs: {a: {type: object, properties: {b: {typ: x}, c: strng}}}",
        ],
        expect![[r#"
            outputs: {a: {type: object, properties: {b: {type: array, items: {minimum: 3, maximum: 2}}}}} => 5:80 bad_schema steps[0].outputs.a.properties.b.items.minimum: `minimum` 3 is above `maximum` 2
            outputs: {a: {type: object, required: [z], properties: {b: string}}} => ok
            outputs: {a: {type: string, minimum: 1}} => 5:42 bad_schema steps[0].outputs.a.minimum: `minimum` applies to numbers, not to a string
            outputs: {a: {type: object, properties: {b: {typ: x}, c: strng}}} => 5:50 unknown_field steps[0].outputs.a.properties.b.typ: unknown field `typ` (did you mean `type`?) | 5:62 bad_value steps[0].outputs.a.properties.c: `strng` is not a type (did you mean `string`?)
        "#]],
    );
}
