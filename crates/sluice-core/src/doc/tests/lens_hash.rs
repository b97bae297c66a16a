//! Documents with one meaning have one hash.

use super::Script;
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeMap;

const DOCUMENT: &str = r#"
    name: reports
    version: 3
    args: {topic: {type: string, required: true}}
    lenses:
      gather:
        versions:
          1: {template: "find [[topic]]", output_contract: {schema: {found: {type: array, required: true}}}}
      write:
        versions:
          1: {template: "write [[notes]] [[tone!]]", input_contract: {fields: {notes: {type: json, required: true}}}}
    nodes:
      - {id: g, lens_id: gather, label: Gather, ordinal: 1, config: {timeout_ms: 5000}}
      - {id: h, lens_id: gather}
      - {id: w, lens_id: write, config: {param_overrides: {tone: dry}}}
    edges:
      - {id: e1, source_node_id: g, target_node_id: w, source_output_key: found, target_param_label: notes}
      - {id: e2, source_node_id: h, target_node_id: w, source_output_key: found, target_param_label: notes, condition: {type: present}}
    outputs: {report: "${w.output}"}
    "#;

#[test]
fn a_plan_keeps_its_hash_from_release_to_release() {
    expect!["99cd6e449c548ecf645a7a42b3bf55fec6cf747cb3b4a3c68b5618bd237ffcc2"]
        .assert_eq(&Script::lens(DOCUMENT).plan().hash());
}

#[test]
fn the_same_graph_in_json_has_the_same_hash() {
    let text = super::dedent(DOCUMENT);
    let node = crate::yaml::parse(&text, &mut crate::diagnostic::Problems::default());
    let value = node.expect("a tree").to_value();
    let expected = Script::lens(DOCUMENT).plan().hash();
    for json in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
        assert_eq!(Script::lens(&json).plan().hash(), expected);
    }
}

#[test]
fn what_means_the_same_has_the_same_hash() {
    let expected = Script::lens(DOCUMENT).plan().hash();
    for (from, to) in [
        ("name: reports", "# a comment\n    name:   'reports'"),
        ("timeout_ms: 5000", "timeoutMs: 0x1388"),
        (
            "{id: h, lens_id: gather}",
            "{lensId: gather, id: h, version_id: '1', config: {retry: {attempts: 1}}}",
        ),
        (
            "source_output_key: found, target_param_label: notes}",
            "targetParamLabel: notes, sourceOutputKey: found}",
        ),
        (
            "{id: w, lens_id: write, config: {",
            "{id: w, lens_id: write, config: {moderation: 'off', ",
        ),
        (
            "version: 3",
            "version: 3\n    max_parallel: 64\n    scheduling: eager\n    description: ~",
        ),
        ("{type: array, required: true}", "{required: true, type: array}"),
    ] {
        assert!(DOCUMENT.contains(from), "{from}");
        let told = Script::lens(&DOCUMENT.replacen(from, to, 1)).plan().hash();
        assert_eq!(told, expected, "{to}");
    }
}

#[test]
fn what_means_something_else_has_another_hash() {
    let mut seen = BTreeMap::from([(Script::lens(DOCUMENT).plan().hash(), "the document")]);
    for (from, to) in [
        ("name: reports", "name: report"),
        ("config: {param_overrides", "config: {on_failure: halt, param_overrides"),
        ("version: 3", "version: 4"),
        ("version: 3", "description: x"),
        ("version: 3", "version: 3\n    max_parallel: 63"),
        ("version: 3", "version: 3\n    scheduling: waves"),
        ("version: 3", "version: 3\n    default_model: m"),
        ("version: 3", "version: 3\n    budget: {max_cost_cents: 1}"),
        ("version: 3", "version: 3\n    timeout: 5"),
        ("version: 3", "version: 3\n    recovery: {max: 1}"),
        ("version: 3", "version: 3\n    team: {members: [{id: m}]}"),
        ("required: true", "required: false"),
        ("find [[topic]]", "find [[Topic]]"),
        ("1: {template: \"find", "2: {template: \"find"),
        ("{type: array, required: true}", "{type: any, required: true}"),
        ("{type: json, required: true}", "{type: json}"),
        ("label: Gather", "label: gather"),
        ("ordinal: 1", "ordinal: 2"),
        ("timeout_ms: 5000", "timeout_ms: 5001"),
        ("timeout_ms: 5000", "timeout_ms: 5000, retry: {attempts: 2}"),
        ("timeout_ms: 5000", "timeout_ms: 5000, on_failure: skip"),
        ("timeout_ms: 5000", "timeout_ms: 5000, on_parent_failure: propagate"),
        ("timeout_ms: 5000", "timeout_ms: 5000, moderation: input"),
        ("timeout_ms: 5000", "timeout_ms: 5000, memory: m"),
        ("timeout_ms: 5000", "timeout_ms: 5000, required_tools: [t]"),
        ("timeout_ms: 5000", "timeout_ms: 5000, required_tier: t"),
        ("timeout_ms: 5000", "timeout_ms: 5000, merge: concat"),
        ("tone: dry", "tone: wry"),
        ("id: e1", "id: e0"),
        ("condition: {type: present}", "condition: {type: truthy}"),
        ("condition: {type: present}", "condition: {type: equals, value: 5}"),
        ("condition: {type: present}", "condition: {type: equals, value: '5'}"),
        ("condition: {type: present}", "merge_strategy: concat"),
        ("source_output_key: found", "source_output_key: output"),
        ("target_param_label: notes", "target_param_label: Notes"),
        ("report: \"${w.output}\"", "report: \"${g.output}\""),
    ] {
        assert!(DOCUMENT.contains(from), "{from}");
        let hash = Script::lens(&DOCUMENT.replacen(from, to, 1)).plan().hash();
        if let Some(other) = seen.insert(hash, to) {
            panic!("`{to}` has the hash of `{other}`");
        }
    }
    // The order of edges is the order of merging.
    let (one, two) = ("- {id: e1, source_node_id: g,", "- {id: e2, source_node_id: h,");
    let swapped = DOCUMENT.replace(one, "@").replace(two, one).replace('@', two);
    assert!(!seen.contains_key(&Script::lens(&swapped).plan().hash()), "swapped edges");
}

/// Valid pieces of documents, to be put where they do not belong.
const PIECES: [&str; 24] = [
    "", "a", "g", "w", "[", "]", "{", "}", ": ", ", ", "- ", "\n", "~", "5", "1e999", "*x", "&x ",
    "!t ", "'", "\"", "[[x]]", "[[x:y]]", "${", "value",
];

proptest! {
    #[test]
    fn any_damage_to_a_document_is_answered(
        cuts in prop::collection::vec((0usize..1200, 0usize..12, 0usize..24), 1..4),
    ) {
        let mut text = super::dedent(DOCUMENT);
        for (at, length, piece) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.replace_range(at..end, PIECES[piece]);
        }
        Script::lens(&text).transcript();
        crate::doc::Registry::parse(&text);
    }
}
