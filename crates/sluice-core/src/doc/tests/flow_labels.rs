//! Flow labels of arguments, outputs and contracts.

use super::{Script, check_step, check_top};
use expect_test::expect;

#[test]
fn arguments_declare_where_they_come_from_and_what_they_contain() {
    check_top(
        &["args.a"],
        &[
            "args: {a: {origin: [web, inbound_mail], sensitive: [customer]}}",
            "args: {a: {origin: [], sensitive: ~}}",
            "args: {a: {sensitive: customer}}",
            "args: {a: {sensitive: [Customer]}}",
            "args: {a: {sensitive: [customer data, ok]}}",
            "args: {a: {origin: [web, web]}}",
            "args: {a: {origin: [1]}}",
            "args: {a: {endorse: [web]}}",
        ],
        expect![[r#"
            args: {a: {origin: [web, inbound_mail], sensitive: [customer]}} => ok | args.a = {"origin":["web","inbound_mail"],"sensitive":["customer"]}
            args: {a: {origin: [], sensitive: ~}} => ok | args.a = {}
            args: {a: {sensitive: customer}} => 2:23 wrong_type args.a.sensitive: expected a list, found a string
            args: {a: {sensitive: [Customer]}} => 2:24 bad_name args.a.sensitive[0]: `Customer` is not a label (write `customer`)
            args: {a: {sensitive: [customer data, ok]}} => 2:24 bad_name args.a.sensitive[0]: `customer data` is not a label (write `customer_data`)
            args: {a: {origin: [web, web]}} => 2:26 duplicate_name args.a.origin[1]: the label `web` is declared twice
            args: {a: {origin: [1]}} => 2:21 wrong_type args.a.origin[0]: expected a string, found a number (quote it if it is meant as text)
            args: {a: {endorse: [web]}} => 2:12 unknown_field args.a.endorse: unknown field `endorse`
        "#]],
    );
}

#[test]
fn a_declaration_has_bounds() {
    let long = "x".repeat(65);
    let many: Vec<String> = (0..17).map(|n| format!("label_{n}")).collect();
    let lines = [
        format!("args: {{a: {{origin: [{long}]}}}}"),
        format!("args: {{a: {{origin: [{}]}}}}", many.join(", ")),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check_top(
        &[],
        &lines,
        expect![[r#"
        args: {a: {origin: [xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]}} => 2:21 bad_name args.a.origin[0]: the label has 65 characters; the limit is 64
        args: {a: {origin: [label_0, label_1, label_2, label_3, label_4, label_5, label_6, label_7, label_8, label_9, label_10, label_11, label_12, label_13, label_14, label_15, label_16]}} => 2:20 bad_value args.a.origin: there are 17 labels; the limit is 16
    "#]],
    );
    let mut text = "name: tiny\nsteps: [{id: one, command: go}]\nargs:\n".to_owned();
    for number in 0..129 {
        text.push_str(&format!("  a{number}: {{origin: [origin_{number}]}}\n"));
    }
    Script::lobsterx(&text).check(expect![[r#"
        132:19 bad_value: the document uses 129 labels; the limit is 128
    "#]]);
}

#[test]
fn outputs_declare_labels_and_endorse_only_what_is_bounded() {
    check_step(
        &["steps.0.outputs.o"],
        &[
            "outputs: {o: {type: string, origin: [web], sensitive: [customer]}}",
            "outputs: {o: {enum: [yes, no], endorse: [web]}}",
            "outputs: {o: {type: boolean, endorse: [web], sensitive: [payroll]}}",
            "outputs: {o: {type: integer, minimum: 0, maximum: 9, endorse: [web]}}",
            "outputs: {o: {type: integer, minimum: 0, endorse: [web]}}",
            "outputs: {o: {type: number, minimum: 0, maximum: 9, endorse: [web]}}",
            "outputs: {o: {type: string, maxLength: 3, endorse: [web]}}",
            "outputs: {o: {endorse: [web]}}",
            "outputs: {o: {type: string, endorse: []}}",
            "outputs: {o: {type: array, items: {type: boolean, endorse: [web]}}}",
            "outputs: {o: {type: object, properties: {p: {origin: [web]}}}}",
        ],
        expect![[r#"
            outputs: {o: {type: string, origin: [web], sensitive: [customer]}} => ok | steps.0.outputs.o = {"type":"string","origin":["web"],"sensitive":["customer"]}
            outputs: {o: {enum: [yes, no], endorse: [web]}} => ok | steps.0.outputs.o = {"enum":["yes","no"],"endorse":["web"]}
            outputs: {o: {type: boolean, endorse: [web], sensitive: [payroll]}} => ok | steps.0.outputs.o = {"type":"boolean","sensitive":["payroll"],"endorse":["web"]}
            outputs: {o: {type: integer, minimum: 0, maximum: 9, endorse: [web]}} => ok | steps.0.outputs.o = {"type":"integer","minimum":0,"maximum":9,"endorse":["web"]}
            outputs: {o: {type: integer, minimum: 0, endorse: [web]}} => 5:55 cannot_endorse steps[0].outputs.o.endorse: the values of this output could carry any text from `web` (declare its values with `enum`, `type: boolean`, or `type: integer` with both bounds)
            outputs: {o: {type: number, minimum: 0, maximum: 9, endorse: [web]}} => 5:66 cannot_endorse steps[0].outputs.o.endorse: the values of this output could carry any text from `web` (declare its values with `enum`, `type: boolean`, or `type: integer` with both bounds)
            outputs: {o: {type: string, maxLength: 3, endorse: [web]}} => 5:56 cannot_endorse steps[0].outputs.o.endorse: the values of this output could carry any text from `web` (declare its values with `enum`, `type: boolean`, or `type: integer` with both bounds)
            outputs: {o: {endorse: [web]}} => 5:28 cannot_endorse steps[0].outputs.o.endorse: the values of this output could carry any text from `web` (declare its values with `enum`, `type: boolean`, or `type: integer` with both bounds)
            outputs: {o: {type: string, endorse: []}} => ok | steps.0.outputs.o = {"type":"string"}
            outputs: {o: {type: array, items: {type: boolean, endorse: [web]}}} => 5:39 bad_schema steps[0].outputs.o.items: only an output as a whole has labels: declare them on the output
            outputs: {o: {type: object, properties: {p: {origin: [web]}}}} => 5:49 bad_schema steps[0].outputs.o.properties.p: only an output as a whole has labels: declare them on the output
        "#]],
    );
}

#[test]
fn a_label_like_another_one_is_a_warning() {
    check_top(
        &[],
        &[
            "args: {a: {sensitive: [customer]}, b: {sensitive: [custmer]}}",
            "args: {a: {sensitive: [custmer]}, b: {sensitive: [customer]}, c: {sensitive: [customer]}}",
            "args: {a: {sensitive: [team1]}, b: {sensitive: [team2]}}",
            "args: {a: {origin: [inbound]}, b: {origin: [inbound_mail, outbound]}}",
        ],
        expect![[r#"
            args: {a: {sensitive: [customer]}, b: {sensitive: [custmer]}} => ~2:52 similar_label args.b.sensitive[0]: the label `custmer` looks like `customer` (write `customer`, or choose a name that differs more) | ok
            args: {a: {sensitive: [custmer]}, b: {sensitive: [customer]}, c: {sensitive: [customer]}} => ~2:24 similar_label args.a.sensitive[0]: the label `custmer` looks like `customer` (write `customer`, or choose a name that differs more) | ok
            args: {a: {sensitive: [team1]}, b: {sensitive: [team2]}} => ok
            args: {a: {origin: [inbound]}, b: {origin: [inbound_mail, outbound]}} => ok
        "#]],
    );
}

#[test]
fn labels_of_defaults_are_checked_once() {
    let text = "
        name: tiny
        defaults: {outputs: {o: {type: string, sensitive: [customer]}}}
        args: {a: {sensitive: [custmer]}}
        steps:
          - {id: one, command: go}
          - {id: two, command: go, depends_on: [one]}
        ";
    Script::lobsterx(text).show("steps.1.outputs.o.sensitive").check(expect![[r#"
        ~3:24 similar_label args.a.sensitive[0]: the label `custmer` looks like `customer` (write `customer`, or choose a name that differs more)
        ok
        steps.1.outputs.o.sensitive = ["customer"]
    "#]]);
}

#[test]
fn output_contracts_and_requested_values_declare_labels() {
    let text = "
        name: tiny
        lenses:
          read:
            versions:
              1:
                template: Read it
                output_contract:
                  sensitive: [customer]
                  schema:
                    mood: {type: string, enum: [good, bad], endorse: [web]}
                    text: {type: string, origin: [web]}
        nodes:
          - {id: a, lens_id: read}
          - id: b
            config: {human_input: {schema: {sum: {type: integer, sensitive: [payroll]}}}}
        ";
    Script::lens(text)
        .show("steps.0.work.output_contract")
        .show("steps.1.outputs.sum")
        .check(expect![[r#"
            ok
            steps.0.work.output_contract = {"schema":{"mood":{"type":"string","required":false,"enum":["good","bad"],"endorse":["web"]},"text":{"type":"string","required":false,"origin":["web"]}},"sensitive":["customer"]}
            steps.1.outputs.sum = {"type":"integer","sensitive":["payroll"]}
        "#]]);
    Script::lens(&text.replace("enum: [good, bad], ", "")).check(expect![[r#"
        10:43 cannot_endorse lenses.read.versions.1.output_contract.schema.mood.endorse: the values of this output could carry any text from `web` (declare its values with `enum`, `type: boolean`, or `type: integer` with both bounds)
    "#]]);
    let input = text.replace(
        "output_contract:\n                  sensitive: [customer]\n                  schema:",
        "input_contract:\n                  fields:",
    );
    Script::lens(&input).check(expect![[r#"
        9:19 bad_schema lenses.read.versions.1.input_contract.fields.mood: an input has the labels of its sources: declare them on the output
        10:19 bad_schema lenses.read.versions.1.input_contract.fields.text: an input has the labels of its sources: declare them on the output
    "#]]);
}
