use super::*;
use crate::limits::TEMPLATE_TEXT_BYTES_MAX;
use proptest::prelude::*;
use serde_json::json;

fn bindings() -> BTreeMap<String, Value> {
    let pairs = [
        ("topic", json!("Rust")),
        ("main_topic", json!("Main")),
        ("n", json!(5)),
        ("none", json!(null)),
        ("trick", json!("[[topic]] {{topic}} [ topic ]")),
    ];
    pairs.map(|(label, value)| (label.to_owned(), value)).into()
}

/// Renders with `known` declared and `maybe` optional in the contract.
fn render(source: &str) -> Result<String, String> {
    let template = LensTemplate::parse(source).unwrap();
    let declared = |label: &str| label == "known" || label == "maybe";
    let rendered = template.render(&bindings(), declared, |label| label == "maybe");
    rendered.map_err(|unbound| unbound.to_string())
}

#[test]
fn placeholders_become_the_text_of_their_values() {
    for (source, expected) in [
        ("On [[topic]].", "On Rust."),
        ("{{topic}}{{ topic }}[[ Topic ]]", "RustRustRust"),
        ("[[Main Topic]] [[main_topic]] {{MAIN\ttopic}}", "Main Main Main"),
        ("[ topic ] [ Main Topic ]", "Rust Main"),
        ("[[n]]", "5"),
        ("<[[none]]>", "<>"),
        ("[[topic:string]] [[topic!]] {{topic:any!}} [[topic!:url]]", "Rust Rust Rust Rust"),
        ("[[[topic]]]", "[Rust]"),
        ("{{{topic}}}", "{Rust}"),
        ("{[[topic]]}", "{Rust}"),
        ("é[[topic]]é", "éRusté"),
        ("", ""),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn a_spaced_label_is_a_placeholder_only_when_something_knows_it() {
    assert_eq!(render("[ other ] [ topic ]").as_deref(), Ok("[ other ] Rust"));
    assert_eq!(render("[ known ]"), Err("`known` has no value".to_owned()));
    assert_eq!(render("<[ maybe ]>").as_deref(), Ok("<>"));
}

#[test]
fn an_unbound_placeholder_is_named_unless_it_is_optional() {
    assert_eq!(render("[[Some Label]]"), Err("`some_label` has no value".to_owned()));
    assert_eq!(render("{{other}}"), Err("`other` has no value".to_owned()));
    assert_eq!(render("[[other:json]]"), Err("`other` has no value".to_owned()));
    for source in
        ["<[[other!]]>", "<{{other!}}>", "<[[other:json!]]>", "<[[other!:json]]>", "<[[maybe]]>"]
    {
        assert_eq!(render(source).as_deref(), Ok("<>"), "{source}");
    }
    let unbound = LensTemplate::parse("[[A b]]")
        .unwrap()
        .render(&BTreeMap::new(), |_| true, |_| false)
        .unwrap_err();
    assert_eq!(unbound, Unbound { label: "a_b".to_owned(), reason: Reason::Missing });
}

#[test]
fn inserted_values_are_never_expanded() {
    assert_eq!(render("[[trick]]").as_deref(), Ok("[[topic]] {{topic}} [ topic ]"));
}

#[test]
fn other_brackets_are_text() {
    for source in [
        r#"{"a": [1, 2]}"#,
        r#"{"topic": {"topic": "topic"}}"#,
        "[[1, 2], [3, 4]]",
        "[[1]] {{2}}",
        r#"[["topic"]]"#,
        "[[topic, n]]",
        "[topic]",
        "[ topic]",
        "[topic ]",
        "[topic](https://example.com)",
        "[ topic ](https://example.com)",
        "- [ ] task\n- [x] done",
        "[[]] [[ ]] {{}} {{ }} [[!]] [[:string]] [[!:string]]",
        "[[topic",
        "[[topic]",
        "[[topic\n]]",
        "[ topic\n ]",
        "{{topic}",
        "{topic}",
        "{{topic]]",
        "[[topic}}",
        "]] }} ]",
        "[",
        "fn main() { let a = b[0]; }",
    ] {
        assert_eq!(render(source).as_deref(), Ok(source));
    }
}

#[test]
fn placeholders_are_listed_with_all_their_marks() {
    let source = "é [[ Main  Topic : json ! ]] {{a!}} [ Some label ] [[b : x:any]]";
    let template = LensTemplate::parse(source).unwrap();
    let found: Vec<_> = template
        .placeholders()
        .map(|p| {
            let text = &source[p.span.range()];
            (p.label.as_str(), p.written.as_str(), p.optional, p.kind, p.certainty, text)
        })
        .collect();
    let only = Certainty::OnlyIfDeclared;
    let certain = Certainty::Certain;
    assert_eq!(
        found,
        [
            (
                "main__topic",
                "Main  Topic",
                true,
                Some(ContractType::Json),
                certain,
                "[[ Main  Topic : json ! ]]"
            ),
            ("a", "a", true, None, certain, "{{a!}}"),
            ("some_label", "Some label", false, None, only, "[ Some label ]"),
            ("b_:_x", "b : x", false, Some(ContractType::Any), certain, "[[b : x:any]]"),
        ]
    );
}

#[test]
fn every_type_is_known_and_no_other() {
    for (word, kind) in ContractType::WORDS {
        let template = LensTemplate::parse(&format!("[[a:{word}]]")).unwrap();
        assert_eq!(template.placeholders().next().unwrap().kind, Some(*kind));
    }
    let source = "[[a:object]] [[b:]] [[c:String]]";
    let faults = LensTemplate::parse(source).unwrap_err();
    let shown: Vec<_> =
        faults.iter().map(|fault| (&source[fault.span.range()], fault.message.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("[[a:object]]", "unknown placeholder type `object`"),
            ("[[b:]]", "unknown placeholder type ``"),
            ("[[c:String]]", "unknown placeholder type `String`"),
        ]
    );
    let hint = "the types are string, number, integer, boolean, url, json, array, any";
    assert_eq!(faults[0].hint.as_deref(), Some(hint));
}

#[test]
fn a_lens_template_is_its_source() {
    let template = LensTemplate::parse("a [[b]]").unwrap();
    assert_eq!(template.source(), "a [[b]]");
    assert_eq!(template.to_string(), "a [[b]]");
    assert_eq!(serde_json::to_value(&template).unwrap(), json!("a [[b]]"));
    assert_eq!(template, LensTemplate::parse("a [[b]]").unwrap());
    assert_ne!(template, LensTemplate::parse("a {{b}}").unwrap());
}

#[test]
fn lens_templates_are_bounded() {
    let label = "é".repeat(NAME_CHARS_MAX);
    assert!(render(&format!("[[{label}]]")).is_err());
    assert!(render(&format!("[[{label}x]]")).is_ok());

    let most = "[[a]]".repeat(TEMPLATE_REFERENCES_MAX);
    assert!(LensTemplate::parse(&most).is_ok());
    let faults = LensTemplate::parse(&format!("{most}[[b]][[c]]")).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message, "template has over 1000 placeholders");
    assert_eq!(faults[0].span.range(), 5000..5005);

    let long = BTreeMap::from([("a".to_owned(), json!("x".repeat(TEMPLATE_TEXT_BYTES_MAX)))]);
    let render = |source| LensTemplate::parse(source).unwrap().render(&long, |_| true, |_| true);
    assert!(render("[[a]]").is_ok());
    let unbound = render(".[[a]]").unwrap_err();
    assert_eq!(unbound.to_string(), "`a` makes the text longer than 16777216 bytes");
}

#[test]
fn a_text_of_opening_brackets_is_read_in_linear_time() {
    let source = "[[a ".repeat(250_000);
    assert!(LensTemplate::parse(&source).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_a_lens_template_or_faults_inside_it(
        text in r#"(\[\[|\]\]|\{\{|\}\}|[\[\]{}!:,"\n a-c]|string|\PC){0,20}"#,
    ) {
        match LensTemplate::parse(&text) {
            Ok(template) => {
                // Without declarations, certain placeholders are empty and the
                // rest stays.
                let rendered = template.render(&BTreeMap::new(), |_| false, |_| true).unwrap();
                prop_assert!(rendered.len() <= text.len());
            }
            Err(faults) => for fault in faults {
                prop_assert!(text.get(fault.span.range()).is_some(), "{:?}", fault);
            }
        }
    }

    #[test]
    fn a_value_arrives_as_it_is(value in r"(\[\[v\]\]|\{\{v\}\}|\[ v \]|\PC){0,10}") {
        let bound = BTreeMap::from([("v".to_owned(), json!(value))]);
        let template = LensTemplate::parse("[[v]]|{{V}}|[ v ]").unwrap();
        let rendered = template.render(&bound, |_| false, |_| false).unwrap();
        prop_assert_eq!(rendered, format!("{value}|{value}|{value}"));
    }
}
