use super::*;
use crate::limits::EXPRESSION_BYTES_MAX;
use crate::scope::names::Names;
use proptest::prelude::*;
use serde_json::json;

fn names() -> Names {
    Names::new()
        .with_step(
            "init",
            json!({"n": 7, "list": [1, {"a": null}], "nothing": null}),
            Some("raw ${n}"),
        )
        .with_skipped_step("gone")
        .with_variable("name", json!("Ada"))
        .with_variable("trick", json!("${name} $${name} ${init.n}"))
        .with_args(json!({"x": true}))
}

fn render(source: &str) -> Result<String, String> {
    let template = Template::parse(source).unwrap();
    template.render(&names()).map_err(|unresolved| unresolved.to_string())
}

#[test]
fn references_become_the_text_of_their_values() {
    for (source, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("${name}", "Ada"),
        ("Hi ${name}!", "Hi Ada!"),
        ("${ name }${name}", "AdaAda"),
        ("${init.n} ${init.outputs.n} ${$init.n}", "7 7 7"),
        ("${init.list}", r#"[1,{"a":null}]"#),
        ("<${init.nothing}>", "<>"),
        ("${args.x}", "true"),
        ("<${gone.a.b}${gone}>", "<>"),
        ("${name.length}", "3"),
        ("${init.list[0]}", "1"),
        ("é${name}é", "éAdaé"),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn a_doubled_dollar_is_a_literal_brace() {
    for (source, expected) in [
        ("$${name}", "${name}"),
        ("$${", "${"),
        ("$$${name}", "$${name}"),
        ("$$", "$$"),
        ("$5 and $name", "$5 and $name"),
        ("$", "$"),
        ("a{name}", "a{name}"),
        ("$${a}${name}$", "${a}Ada$"),
    ] {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn inserted_values_are_never_expanded() {
    assert_eq!(render("${trick}").as_deref(), Ok("${name} $${name} ${init.n}"));
    assert_eq!(render("${$init.stdout}").as_deref(), Ok("raw ${n}"));
}

#[test]
fn what_has_no_value_is_an_error_that_names_it() {
    for (source, path) in [
        ("${unknown}", "unknown"),
        ("a ${name} ${init.missing.x} ${unknown}", "init.missing.x"),
        ("${args.y}", "args.y"),
    ] {
        let template = Template::parse(source).unwrap();
        let unresolved = template.render(&names()).unwrap_err();
        assert_eq!(unresolved.path.as_str(), path);
        assert_eq!(unresolved.reason, Reason::Missing);
        assert_eq!(unresolved.to_string(), format!("`{path}` has no value"));
        assert!(template.value(&names()).is_err());
    }
}

#[test]
fn a_template_that_is_one_reference_keeps_the_type() {
    for (source, expected) in [
        ("${init.n}", json!(7)),
        ("${ init.list }", json!([1, {"a": null}])),
        ("${init.nothing}", json!(null)),
        ("${gone.x}", json!(null)),
        ("${$init.stdout}", json!("raw ${n}")),
        ("${name.length}", json!(3)),
        (" ${init.n}", json!(" 7")),
        ("${init.n}${init.n}", json!("77")),
        ("text", json!("text")),
        ("", json!("")),
        ("$${x}", json!("${x}")),
    ] {
        let template = Template::parse(source).unwrap();
        assert_eq!(template.value(&names()), Ok(expected), "{source}");
    }
}

#[test]
fn references_are_listed_with_their_places() {
    let source = "a ${x.y} $${z} ${ $init.stdout }";
    let template = Template::parse(source).unwrap();
    let found: Vec<_> = template
        .references()
        .map(|reference| (reference.path.as_str(), &source[reference.span.range()]))
        .collect();
    assert_eq!(found, [("x.y", "x.y"), ("$init.stdout", "$init.stdout")]);
    assert!(template.references().next().is_some());
    assert!(Template::parse("$${x}").unwrap().references().next().is_none());
}

#[test]
fn a_template_is_its_source() {
    let template = Template::parse("a ${b}").unwrap();
    assert_eq!(template.source(), "a ${b}");
    assert_eq!(template.to_string(), "a ${b}");
    assert_eq!(serde_json::to_value(&template).unwrap(), json!("a ${b}"));
    assert_eq!(template, Template::parse("a ${b}").unwrap());
    assert_ne!(template, Template::parse("a ${ b }").unwrap());
}

#[test]
fn everything_that_is_not_a_path_is_refused_at_once() {
    let source = "${} ${ } ${a b} ${x:-1} ${ok} ${1+1} ${a.} ${unclosed";
    let faults = Template::parse(source).unwrap_err();
    let shown: Vec<String> = faults
        .iter()
        .map(|fault| format!("{} -> {}", &source[fault.span.range()], fault.message))
        .collect();
    assert_eq!(
        shown,
        [
            "${} -> expected a path in `${…}`, found `}`",
            "${ } -> expected a path in `${…}`, found `}`",
            "${a b} -> `${a b}` is not a reference: expected `}` after the path, found `b`",
            "${x:-1} -> `${x:-1}` is not a reference: expected `}` after the path, found `:`",
            "${1+1} -> `${1+1}` is not a reference: expected `}` after the path, found `+`",
            "${a.} -> `${a.}` is not a reference: expected a name or an index after `.`, found `}`",
            "${unclosed -> unclosed `${`",
        ]
    );
    for fault in &faults {
        assert_eq!(fault.hint.as_deref(), Some("write `$${` for a literal `${`"));
    }
}

#[test]
fn a_long_mistake_is_shown_in_part() {
    let message = |length: usize| {
        let source = format!("${{a {}}}", "x".repeat(length));
        Template::parse(&source).unwrap_err().remove(0).message
    };
    let rest = "is not a reference: expected `}` after the path, found `x`";
    assert_eq!(message(55), format!("`${{a {}}}` {rest}", "x".repeat(55)));
    assert_eq!(message(56), format!("`${{a {}…` {rest}", "x".repeat(56)));
}

#[test]
fn templates_are_bounded() {
    // A short path is short at any position.
    let late = format!("{}${{name.length}}", " ".repeat(EXPRESSION_BYTES_MAX));
    assert!(render(&late).is_ok());

    let most = "${a}".repeat(TEMPLATE_REFERENCES_MAX);
    assert!(Template::parse(&most).is_ok());
    let faults = Template::parse(&format!("{most}.${{a}}${{a}}")).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message, "template has over 1000 references");
    assert_eq!(faults[0].span.range(), 4001..4003);

    let half = "x".repeat(TEMPLATE_TEXT_BYTES_MAX / 2);
    let scope = Names::new().with_variable("v", json!(half)).with_variable("w", json!("y"));
    let template = Template::parse("${v}${v}").unwrap();
    assert_eq!(template.render(&scope).unwrap().len(), TEMPLATE_TEXT_BYTES_MAX);
    let unresolved = Template::parse("${v}${v}${w}").unwrap().render(&scope).unwrap_err();
    assert_eq!(unresolved.to_string(), "`w` makes the text longer than 16777216 bytes");
}

proptest! {
    #[test]
    fn any_text_is_a_template_or_faults_inside_it(text in "([$]{0,3}[{}]|[a-z.\\[\\]' ]|\\PC){0,20}") {
        match Template::parse(&text) {
            Ok(template) => { let _ = template.render(&names()); }
            Err(faults) => for fault in faults {
                prop_assert!(text.get(fault.span.range()).is_some(), "{:?}", fault);
            }
        }
    }

    #[test]
    fn a_value_arrives_as_it_is(value in "([$]{0,3}[{}]|name|\\PC){0,20}", before in "[a-z ]{0,5}") {
        let scope = Names::new().with_variable("v", json!(value)).with_variable("name", json!("!"));
        let template = Template::parse(&format!("{before}${{v}}|${{v}}")).unwrap();
        prop_assert_eq!(template.render(&scope).unwrap(), format!("{before}{value}|{value}"));
    }
}
