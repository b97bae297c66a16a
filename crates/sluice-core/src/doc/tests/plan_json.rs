//! Plans read back from their pinned JSON.

use super::Script;
use super::lobsterx_plan::FULL;
use crate::canonical;
use crate::outputs::schema::{FieldSchema, FieldType};
use crate::plan::Plan;
use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A lens document that uses every field.
const LENS: &str = r#"
    name: everything
    version: 2
    description: all of it
    args: {topic: {type: string, required: true}, depth: {default: 1, enum: [1, ~]}}
    default_model: m
    budget: {max_cost_cents: 0.000001}
    max_parallel: 3
    timeout: 1h
    scheduling: waves
    recovery: {max: 2, after: 5m}
    outputs: {report: "${w.output} $${kept}"}
    team: {members: [{id: ada}], failure_policy: {mode: halt}}
    lenses:
      gather:
        versions:
          "1":
            template: "find [[topic]] {{depth:number!}} [ tone ]"
            kind: routing
            output_contract:
              kind: k
              artifact_kind: a
              schema:
                found: {type: array, itemType: url, required: false}
                text: {type: string, minLength: 1, maxLength: 9, pattern: "^[a-z]+$", enum: [a, b]}
                number: {type: number, min: -1.5, max: 1e300}
      write:
        versions:
          "1":
            template: "write [[notes]]"
            input_contract: {kind: k, fields: {notes: {}, Other Notes: {}}, requireAnyOf: [[notes, x]], strict: true}
          "2": {template: "write [[notes]]", output_contract: {schema: {}}, input_contract: {}}
    nodes:
      - {id: g, lens_id: gather, label: Gather, ordinal: -1, config: {on_failure: halt}}
      - {id: w, lens_id: write, version_id: 1, config: {param_overrides: {x: [1, {b: 1, a: ~}], other notes: 0.1}, merge: array}}
      - {id: v, lens_id: write}
      - {id: u, lens_id: elsewhere}
    edges:
      - {source_node_id: g, target_node_id: w, target_param_label: notes, merge_strategy: concat, condition: {type: equals, value: ''}}
      - {source_node_id: g, target_node_id: v, source_output_key: found.0, target_param_label: notes, condition: {type: equals, value: {b: 1, a: 2.0}}}
      - {source_node_id: w, target_node_id: u, target_param_label: a, condition: {type: contains, value: x}}
      - {source_node_id: w, target_node_id: u, target_param_label: b, condition: {type: present}}
      - {source_node_id: v, target_node_id: u, target_param_label: c, condition: {type: truthy}}
      - {source_node_id: v, target_node_id: u, target_param_label: d, condition: {type: expression, expr: "value == 'go' and w.output > 7"}}
    "#;

/// For every plan: its JSON, in any order of keys, gives the plan.
pub(super) fn assert_reads_back(plan: &Plan) {
    let json = serde_json::to_string(plan).expect("a plan is JSON");
    let read = Plan::from_json(&json).unwrap_or_else(|error| panic!("{error}\n{json}"));
    assert_eq!(&read, plan);
    assert_eq!(read.hash(), plan.hash());
    // Equality ignores the order of keys, the text does not.
    assert_eq!(serde_json::to_string(&read).expect("a plan is JSON"), json);
    assert_eq!(Plan::from_json(&canonical::to_string(plan)).as_ref(), Ok(plan));
}

fn json(script: &Script) -> Value {
    serde_json::to_value(script.plan()).expect("a plan is JSON")
}

#[test]
fn a_plan_that_uses_every_field_is_read_back() {
    assert_reads_back(&Script::lobsterx(FULL).plan());
    let plan = Script::lens(LENS).plan();
    assert_reads_back(&plan);
    assert_eq!(plan.graph.layers().len(), 3);
}

#[test]
fn rare_values_are_read_back() {
    for lines in [
        "args: {a: {default: ~}, b: {enum: [~, -0.0, 1e300, 18446744073709551615, -9223372036854775808]}}\nsteps: [{id: a, command: x}]",
        "steps: [{id: a, library_step: gone}]",
        "steps: [{id: a, command: x}, {id: b, command: y, inputs: {i: {from: a.stdout, default: ~}}}]",
        "steps: [{id: a, command: x, for_each: [~, {b: 1, a: 2}, [1.0, 1]]}]",
        "steps: [{id: a, command: x, for_each: []}]",
        "steps: [{id: a, command: x, outputs: {o: {type: object, required: []}, p: {required: false}}}]",
        "steps: [{id: a, command: x, outputs: {o: {type: object, enum: [{b: 1, a: ~}]}}}]",
        "steps: [{id: a, agent: shell, command: 'printf \"%s\" \"${b}\" $${HOME} $(date) # \\n'}]",
        "steps: [{id: a, command: \"é\\u2028 \\u0007 ${args}\"}]",
        "steps: [{id: a, workflow_ref: w, args: {a: ~, b: [], c: {}, d: '', e: {f: ['${x}', 1.0]}}}]",
    ] {
        let text = format!("name: a\n{lines}\n");
        assert_reads_back(&Script::lobsterx(&text).plan());
    }
}

#[test]
fn the_private_marks_of_the_json_library_are_plain_keys() {
    for mark in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let value = format!("{{'{mark}': '[1'}}");
        for lines in [
            format!(
                "args: {{a: {{default: {value}, enum: [{value}]}}}}\nsteps: [{{id: a, command: x}}]"
            ),
            format!(
                "steps: [{{id: a, command: x, for_each: [{value}], outputs: {{o: {{enum: [{value}]}}}}}}]"
            ),
            format!("steps: [{{id: a, workflow_ref: w, args: {{x: {value}}}}}]"),
        ] {
            assert_reads_back(&Script::lobsterx(&format!("name: a\n{lines}\n")).plan());
        }
        let lens = LENS
            .replace("x: [1, {b: 1, a: ~}]", &format!("x: {value}"))
            .replace("value: {b: 1, a: 2.0}", &format!("value: {value}"))
            .replace("default: 1, enum: [1, ~]", &format!("default: {value}, enum: [{value}]"));
        assert_reads_back(&Script::lens(&lens).plan());
    }
}

#[test]
fn the_deepest_document_is_read_back() {
    let deepest = (1..crate::limits::DOCUMENT_DEPTH_MAX).rev().find_map(|depth| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text =
            format!("name: a\nsteps: [{{id: a, workflow_ref: w, args: {{x: {open}{close}}}}}]\n");
        Script::lobsterx(&text).checked().plan.map(|_| depth)
    });
    assert!(deepest.is_some_and(|depth| depth > 50), "{deepest:?}");
}

#[test]
fn schemas_that_only_a_program_makes_are_read_back() {
    for required in [true, false] {
        for names in [None, Some(vec![]), Some(vec!["a".to_owned()])] {
            let schema = FieldSchema {
                required,
                required_properties: names,
                ..FieldSchema::of(FieldType::Object)
            };
            let json = serde_json::to_string(&schema).expect("JSON");
            assert_eq!(
                serde_json::from_str::<FieldSchema>(&json).expect("a schema"),
                schema,
                "{json}"
            );
        }
    }
}

#[test]
fn fields_of_later_versions_are_passed_over() {
    for (script, places) in [
        (
            Script::lobsterx(FULL),
            &[
                "",
                "/args/who",
                "/roles/clerk",
                "/roles/clerk/trusted_context",
                "/phases/0",
                "/recovery",
                "/team",
                "/team/members/0",
                "/steps/0",
                "/steps/0/outputs/list",
                "/steps/0/retry",
                "/steps/0/work",
                "/steps/1/approval",
                "/steps/1/work",
                "/steps/2/for_each",
                "/steps/2/for_each/items",
                "/steps/3/work",
                "/steps/3/inputs/note",
            ][..],
        ),
        (
            Script::lens(LENS),
            &[
                "/steps/0/work",
                "/steps/0/work/output_contract",
                "/steps/0/work/output_contract/schema/found",
                "/steps/1/work/input_contract",
                "/steps/1/edges/0",
                "/steps/1/edges/0/condition",
                "/steps/3/work",
                "/steps/3/edges/1/condition",
                "/steps/3/edges/3/condition",
            ][..],
        ),
    ] {
        let mut later = json(&script);
        for place in places {
            let object = later.pointer_mut(place).and_then(Value::as_object_mut);
            let object = object.unwrap_or_else(|| panic!("{place} is no object"));
            object.insert("later".to_owned(), json!({"x": [1, null]}));
        }
        assert_eq!(Plan::from_json(&later.to_string()), Ok(script.plan()));
    }
}

/// Why the plan is rejected if the value at `place` is replaced.
fn refused(mut plan: Value, place: &str, value: &Value) -> String {
    match plan.pointer_mut(place) {
        Some(found) => *found = value.clone(),
        None => panic!("nothing at {place}"),
    }
    match Plan::from_json(&plan.to_string()) {
        Ok(_) => format!("{place} = {value}: read\n"),
        Err(error) => {
            // The column refers to one long line, so it is left out.
            let told = error.to_string();
            format!("{place} = {value}: {}\n", told.split(" at line").next().unwrap_or_default())
        }
    }
}

#[test]
fn what_is_no_plan_is_refused() {
    let plan = json(&Script::lobsterx(FULL));
    let lens = json(&Script::lens(LENS));
    let mut out = String::new();
    for (plan, place, value) in [
        (&plan, "/family", json!("lobster")),
        (&plan, "/max_parallel", json!(-1)),
        (&plan, "/max_cost", json!(1.5)),
        (&plan, "/outputs/result", json!("${")),
        (&plan, "/steps", json!({})),
        (&plan, "/steps/0/id", json!("ask")),
        (&plan, "/steps/0/id", json!("other")),
        (&plan, "/steps/1/depends_on", json!(["gather", "gone"])),
        (&plan, "/steps/1/depends_on", json!(["ask"])),
        (&plan, "/steps/1/depends_on", json!(["child"])),
        (&plan, "/steps/1/depends_on", json!(["gather", "gather"])),
        (&plan, "/steps/2/condition", json!("ask ==")),
        (&plan, "/steps/2/condition", json!("(".repeat(40))),
        (&plan, "/steps/2/stdin", json!("a..b")),
        (&plan, "/steps/2/on_failure", json!("continue")),
        (&plan, "/steps/2/for_each/items", json!({})),
        (&plan, "/steps/2/for_each/items", json!({"from": "a", "list": []})),
        (&plan, "/steps/0/outputs/note/pattern", json!("(")),
        (&plan, "/steps/0/outputs/more/required", json!("yes")),
        (&plan, "/steps/0/outputs/risk/enum", json!("low")),
        (&plan, "/steps/0/work", json!({"kind": "spell"})),
        (&plan, "/steps/0/work", json!({"command": "x"})),
        (&plan, "/steps/0/work", json!({"kind": "unresolved", "what": "book", "name": "n"})),
        (&plan, "/steps/3/work/args", json!({"deep": [{"text": "${"}]})),
        (&lens, "/steps/0/work/template", json!("[[a:secret]]")),
        (&lens, "/steps/0/work/lens_kind", json!(null)),
        (&lens, "/steps/1/edges/0/source", json!("u")),
        (&lens, "/steps/1/edges/0/condition", json!({"type": "near"})),
        (&lens, "/steps/1/edges/0/condition", json!({"type": "equals"})),
        (&lens, "/steps/1/edges/0/condition", json!({"expr": "a or"})),
        (&lens, "/steps/1/edges/0/condition", json!("truthy")),
        (&lens, "/steps/1/work/param_overrides", json!([])),
    ] {
        out.push_str(&refused(plan.clone(), place, &value));
    }
    expect![[r#"
        /family = "lobster": plan cannot be read: `lobster` is not a family
        /max_parallel = -1: plan cannot be read: invalid value: integer `-1`, expected u32
        /max_cost = 1.5: plan cannot be read: invalid type: floating point `1.5`, expected u64
        /outputs/result = "${": plan cannot be read: `${` is not a template: unclosed `${`
        /steps = {}: plan cannot be read: invalid type: map, expected a sequence
        /steps/0/id = "ask": plan cannot be read: two steps have the id `ask`
        /steps/0/id = "other": plan cannot be read: step `ask` depends on `gather`, which is not a step
        /steps/1/depends_on = ["gather","gone"]: plan cannot be read: step `ask` depends on `gone`, which is not a step
        /steps/1/depends_on = ["ask"]: plan cannot be read: the dependencies of `ask` form a cycle
        /steps/1/depends_on = ["child"]: plan cannot be read: the dependencies of `ask` form a cycle
        /steps/1/depends_on = ["gather","gather"]: read
        /steps/2/condition = "ask ==": plan cannot be read: `ask ==` is not an expression: expected a value, found the end
        /steps/2/condition = "((((((((((((((((((((((((((((((((((((((((": plan cannot be read: `((((((((((((((((((((((((((((((((((((((((` is not an expression: expression is nested over 32 deep
        /steps/2/stdin = "a..b": plan cannot be read: `a..b` is not a path: expected a name or an index after `.`, found `.`
        /steps/2/on_failure = "continue": plan cannot be read: `continue` is not a failure policy
        /steps/2/for_each/items = {}: plan cannot be read: expected either `from` or `list`
        /steps/2/for_each/items = {"from":"a","list":[]}: plan cannot be read: expected either `from` or `list`
        /steps/0/outputs/note/pattern = "(": plan cannot be read: `(` is not a pattern: bad regular expression: unclosed group
        /steps/0/outputs/more/required = "yes": plan cannot be read: `required` is neither true or false nor a list of names
        /steps/0/outputs/risk/enum = "low": plan cannot be read: expected a list
        /steps/0/work = {"kind":"spell"}: plan cannot be read: unknown variant `spell`, expected one of `approval`, `command`, `workflow`, `lens`, `unresolved`
        /steps/0/work = {"command":"x"}: plan cannot be read: missing field `kind`
        /steps/0/work = {"kind":"unresolved","what":"book","name":"n"}: plan cannot be read: `book` is not a thing that is looked up
        /steps/3/work/args = {"deep":[{"text":"${"}]}: plan cannot be read: `${` is not a template: unclosed `${`
        /steps/0/work/template = "[[a:secret]]": plan cannot be read: `[[a:secret]]` is not a lens template: unknown placeholder type `secret`
        /steps/0/work/lens_kind = null: plan cannot be read: invalid type: null, expected a string
        /steps/1/edges/0/source = "u": plan cannot be read: edge `edge_0` comes from `u`, on which `w` does not depend
        /steps/1/edges/0/condition = {"type":"near"}: plan cannot be read: unknown variant `near`, expected one of `equals`, `contains`, `present`, `truthy`
        /steps/1/edges/0/condition = {"type":"equals"}: plan cannot be read: missing field `value`
        /steps/1/edges/0/condition = {"expr":"a or"}: plan cannot be read: `a or` is not an expression: expected a value, found the end
        /steps/1/edges/0/condition = "truthy": plan cannot be read: expected a map
        /steps/1/work/param_overrides = []: plan cannot be read: expected a map
    "#]].assert_eq(&out);
}

#[test]
fn rubbish_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let plan = json(&Script::lobsterx(FULL)).to_string();
    let mut out = String::new();
    for text in ["", "null", "[]", "{", "{}", "\u{0}", "plan", "{\"steps\": 1e999}", &deep] {
        let error = Plan::from_json(text).expect_err("no plan");
        out.push_str(&format!("{error}\n"));
    }
    expect![[r#"
        plan cannot be read: EOF while parsing a value at line 1 column 0
        plan cannot be read: invalid type: null, expected a plan at line 1 column 4
        plan cannot be read: invalid length 0, expected a plan at line 1 column 2
        plan cannot be read: EOF while parsing an object at line 1 column 1
        plan cannot be read: missing field `family` at line 1 column 2
        plan cannot be read: expected value at line 1 column 1
        plan cannot be read: expected value at line 1 column 1
        plan cannot be read: number out of range at line 1 column 15
        plan cannot be read: invalid type: sequence, expected a string at line 1 column 1
    "#]]
    .assert_eq(&out);
    let nested = plan.replacen("[1,{\"deep\":true}]", &deep, 1);
    assert_ne!(nested, plan);
    let error = Plan::from_json(&nested).expect_err("too deep").to_string();
    assert!(error.contains("recursion limit exceeded"), "{error}");
    // A truncated text, at any position.
    for (end, _) in plan.char_indices() {
        assert!(Plan::from_json(&plan[..end]).is_err(), "{end}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,3}", inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_read_back(value in any_value()) {
        let mut plan = json(&Script::lens(LENS));
        for (place, key) in [
            ("/args/depth", "default"),
            ("/steps/1/work/param_overrides", "x"),
            ("/steps/1/edges/0/condition", "value"),
        ] {
            let object = plan.pointer_mut(place).and_then(Value::as_object_mut);
            object.expect("an object").insert(key.to_owned(), value.clone());
        }
        let text = plan.to_string();
        let read = Plan::from_json(&text).expect("a plan");
        prop_assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    }

    #[test]
    fn no_damage_makes_reading_panic(at in 0usize..10_000, byte in 0u8..128) {
        let mut text = serde_json::to_string(&Script::lobsterx(FULL).plan()).expect("JSON");
        let at = at % text.len();
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            text.replace_range(at..=at, std::str::from_utf8(&[byte]).expect("ASCII"));
        }
        if let Ok(plan) = Plan::from_json(&text) {
            assert_reads_back(&plan);
        }
    }
}
