//! Contracts, kinds and templates of lens versions.

use super::Script;
use expect_test::expect;

/// One node that applies a lens of this version.
fn version(written: &str) -> Script {
    let written = super::dedent(written).replace('\n', "\n        ");
    Script::lens(&format!(
        "name: g\nlenses:\n  l:\n    versions:\n      1:\n        {written}\nnodes: [{{id: a, lens_id: l}}]\n"
    ))
    .show("steps.0.work.input_contract")
    .show("steps.0.work.output_contract")
}

#[test]
fn every_constraint_of_a_contract_is_in_the_plan() {
    version(
        r#"
        template: go
        input_contract:
          kind: brief
          strict: true
          requireAnyOf: [[a, b]]
          fields:
            a: {type: string, required: false, minLength: 1, maxLength: 9, pattern: '^x', enum: [xy, xz]}
            b: {type: number, min: -1.5, max: 9007199254740993}
            c: {type: array, itemType: integer}
            d: {type: url}
            e: {type: json}
            f: {type: boolean}
            g: {}
        output_contract:
          kind: text
          artifactKind: report
          schema: {summary: {type: string}, score: {type: integer, required: false}}
        "#,
    )
    .check(expect![[r#"
        ok
        steps.0.work.input_contract = {"kind":"brief","fields":{"a":{"type":"string","required":false,"minLength":1,"maxLength":9,"pattern":"^x","enum":["xy","xz"]},"b":{"type":"number","required":false,"min":-1.5,"max":9007199254740993},"c":{"type":"array","required":false,"itemType":"integer"},"d":{"type":"url","required":false},"e":{"type":"json","required":false},"f":{"type":"boolean","required":false},"g":{"required":false}},"requireAnyOf":[["a","b"]],"strict":true}
        steps.0.work.output_contract = {"kind":"text","artifactKind":"report","schema":{"summary":{"type":"string","required":false},"score":{"type":"integer","required":false}}}
    "#]]);
}

#[test]
fn a_contract_may_be_written_in_either_spelling() {
    let camel = version(
        "
        template: go
        inputContract: {requireAnyOf: [[a]], fields: {a: {type: array, itemType: url}, b: {minLength: 1, maxLength: 2}}}
        outputContract: {artifactKind: x}
        ",
    );
    let snake = version(
        "
        template: go
        input_contract: {require_any_of: [[a]], fields: {a: {type: array, item_type: url}, b: {min_length: 1, max_length: 2}}}
        output_contract: {artifact_kind: x}
        ",
    );
    assert_eq!(camel.plan().hash(), snake.plan().hash());
}

#[test]
fn what_a_contract_cannot_mean_is_told_at_the_part_that_says_it() {
    version(
        r#"
        template: go
        input_contract:
          require_any_of: [[a], []]
          fields:
            a: {type: string, min: 1}
            b: {type: number, minLength: 1, pattern: x}
            c: {type: string, min_length: 5, max_length: 4}
            d: {type: number, min: 2, max: 1}
            e: {type: string, itemType: string}
            f: {type: integer, enum: [1, x, 3]}
            g g: {}
            G_G: {}
        output_contract:
          schema:
            h: {type: boolean, max: 1}
        "#,
    )
    .check(expect![[r#"
        8:33 bad_schema lenses.l.versions.1.input_contract.require_any_of[1]: an empty group can never be given
        10:36 bad_schema lenses.l.versions.1.input_contract.fields.a.min: `min` applies to numbers, not to a string
        11:42 bad_schema lenses.l.versions.1.input_contract.fields.b.minLength: `minLength` applies to text, not to a number
        11:54 bad_schema lenses.l.versions.1.input_contract.fields.b.pattern: `pattern` applies to text, not to a number
        12:43 bad_schema lenses.l.versions.1.input_contract.fields.c.min_length: `minLength` 5 is above `maxLength` 4
        13:36 bad_schema lenses.l.versions.1.input_contract.fields.d.min: `min` 2 is above `max` 1
        14:41 bad_schema lenses.l.versions.1.input_contract.fields.e.itemType: `itemType` needs `type: array`
        15:42 bad_schema lenses.l.versions.1.input_contract.fields.f.enum[1]: allowed value is a string, not an integer
        17:18 bad_schema lenses.l.versions.1.input_contract.fields.G_G: `G_G` is declared twice: labels ignore case and blanks
        20:37 bad_schema lenses.l.versions.1.output_contract.schema.h.max: `max` applies to numbers, not to a boolean
    "#]]);
}

#[test]
fn fields_of_the_wrong_shape_are_told_where_they_stand() {
    version(
        r#"
        template: go
        kind: pictures
        input_contract:
          strict: yes
          fields:
            a: {type: text}
            b: {type: string, pattern: 'a('}
            c: {minLength: -1}
            d: {maxLength: 1048577}
            e: string
            f: {enum: x}
            g: {minimum: 1}
            h: {min: '1'}
        output_contract: [x]
        "#,
    )
    .check(expect![[r#"
        7:15 bad_value lenses.l.versions.1.kind: `pictures` is not a lens kind (use one of: text, image, video, audio, music, research, pdf, transform, orchestration, validation, routing)
        9:19 wrong_type lenses.l.versions.1.input_contract.strict: expected `true` or `false`, found a string
        11:23 bad_value lenses.l.versions.1.input_contract.fields.a.type: `text` is not a contract type (use one of: string, number, integer, boolean, url, json, array, any)
        12:41 bad_pattern lenses.l.versions.1.input_contract.fields.b.pattern: bad regular expression: unclosed group
        13:28 bad_value lenses.l.versions.1.input_contract.fields.c.minLength: -1 is not a whole number from 0 to 1048576
        14:28 bad_value lenses.l.versions.1.input_contract.fields.d.maxLength: 1048577 is not a whole number from 0 to 1048576
        15:16 wrong_type lenses.l.versions.1.input_contract.fields.e: expected a map, found a string
        16:23 wrong_type lenses.l.versions.1.input_contract.fields.f.enum: expected a list, found a string
        17:17 unknown_field lenses.l.versions.1.input_contract.fields.g.minimum: unknown field `minimum`
        18:22 wrong_type lenses.l.versions.1.input_contract.fields.h.min: expected a number, found a string
        19:26 wrong_type lenses.l.versions.1.output_contract: expected a map, found a list
    "#]]);
}

#[test]
fn a_typed_placeholder_declares_a_field() {
    version("template: '[[n:number]] [[o:url!]] {{p}} [[N:string]]'").check(expect![[r#"
        ok
        steps.0.work.input_contract = {"fields":{"n":{"type":"number"},"o":{"type":"url","required":false}}}
        steps.0.work.output_contract = -
    "#]]);
    version("{template: '[[A b:number]] [[c:json]]', input_contract: {strict: true, fields: {a_b: {type: string}}}}")
        .check(expect![[r#"
            ok
            steps.0.work.input_contract = {"fields":{"a_b":{"type":"string","required":false},"c":{"type":"json"}},"strict":true}
            steps.0.work.output_contract = -
        "#]]);
    for kind in ["string", "number", "integer", "boolean", "url", "json", "array"] {
        let told = version(&format!("template: '[[x:{kind}]]'")).transcript();
        assert!(told.contains(&format!(r#"{{"fields":{{"x":{{"type":"{kind}"}}}}}}"#)), "{told}");
    }
    assert!(version("template: '[[x:any]]'").transcript().contains(r#"{"fields":{"x":{}}}"#));
}

#[test]
fn the_faults_of_a_template_are_told_where_they_stand() {
    version("template: 'one [[a:txt]] two {{b:c}}'").check(expect![[r#"
        6:24 bad_template lenses.l.versions.1.template: unknown placeholder type `txt` (the types are string, number, integer, boolean, url, json, array, any)
        6:38 bad_template lenses.l.versions.1.template: unknown placeholder type `c` (the types are string, number, integer, boolean, url, json, array, any)
    "#]]);
    version("template: |\n  one\n  two [[a:txt]]\n").check(expect![[r#"
        8:15 bad_template lenses.l.versions.1.template: unknown placeholder type `txt` (the types are string, number, integer, boolean, url, json, array, any)
    "#]]);
    version("template: \"tab\\t[[a:txt]]\"").check(expect![[r#"
        6:19 bad_template lenses.l.versions.1.template: unknown placeholder type `txt` (the types are string, number, integer, boolean, url, json, array, any)
    "#]]);
    version("template: 5").check(expect![[r#"
        6:19 wrong_type lenses.l.versions.1.template: expected a string, found a number (quote it if it is meant as text)
    "#]]);
}

#[test]
fn ten_thousand_faults_of_a_template_are_counted_not_sought() {
    let told = version(&format!("template: '{}'", "[[a:b]]".repeat(100_000))).transcript();
    assert_eq!(told.lines().count(), 201);
    assert!(told.ends_with("more_problems: 99800 more problems are not shown\n"), "{told}");
}

#[test]
fn kinds() {
    for kind in [
        "text",
        "image",
        "video",
        "audio",
        "music",
        "research",
        "pdf",
        "transform",
        "orchestration",
    ] {
        let told = version(&format!("{{template: go, kind: {kind}}}"))
            .show("steps.0.work.lens_kind")
            .transcript();
        assert!(
            told.starts_with("ok\n") && told.contains(&format!("lens_kind = \"{kind}\"")),
            "{told}"
        );
    }
}
