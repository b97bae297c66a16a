//! Names that nothing has, and the typed arguments of one tool.

use super::*;
use crate::catalog::{Catalog, Definitions, ServerDeclaration, ToolDeclaration, ToolDefinition};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::borrow::Cow;

fn listed(schema: Value) -> Definitions {
    let definition = ToolDefinition {
        digest: String::new(),
        description: String::new(),
        input_schema: schema.into(),
    };
    Definitions { accepted: Some(definition.into()), changed: None }
}

/// Three servers: `pay` and `mail` were listed, `files` never was.
fn catalog() -> Catalog {
    let labelled = |label: &str| ToolDeclaration {
        labels: Some(vec![label.into()]),
        ..ToolDeclaration::default()
    };
    let server = |name: &str, tools: &[(&str, &str)]| ServerDeclaration {
        name: name.into(),
        defaults: ToolDeclaration::default(),
        tools: tools.iter().map(|(name, label)| ((*name).to_owned(), labelled(label))).collect(),
    };
    let servers = [
        server("pay", &[("refund", "pays")]),
        server("mail", &[("send", "sends")]),
        server("files", &[("write_file", "changes")]),
    ];
    let refund = json!({
        "type": "object",
        "properties": {
            "order": {"type": "string"},
            "amount": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {},
        },
        "required": ["order", "amount"],
    });
    let send = json!({"type": "object", "properties": {"recipients": {"type": "array", "items": {"type": "string"}}}});
    let tools = [("pay.refund", refund), ("mail.send", send)];
    Catalog::new(&servers, tools.map(|(name, schema)| (name.to_owned(), listed(schema))))
}

fn files(text: &str) -> Vec<(String, String)> {
    vec![("a.cedar".to_owned(), format!("{text}\n{}", DEFAULT.1))]
}

fn loaded(text: &str) -> Policies {
    Policies::load_with(&files(text), &catalog()).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn refused(texts: &[&str], expected: Expect) {
    let mut told = String::new();
    for text in texts {
        match Policies::load_with(&files(text), &catalog()) {
            Ok(_) => told.push_str(&format!("ok: {text}\n")),
            Err(errors) => errors.iter().for_each(|error| told.push_str(&format!("{error}\n"))),
        }
    }
    expected.assert_eq(&told);
}

#[test]
fn a_policy_about_a_name_that_nothing_has_is_refused() {
    refused(
        &[
            r#"forbid (principal, action, resource == Tool::"mail.sned");"#,
            r#"forbid (principal, action, resource == Tool::"mail.archive");"#,
            r#"forbid (principal, action, resource == Tool::"post.send");"#,
            r#"forbid (principal, action, resource == Tool::"calendar.book");"#,
            r#"forbid (principal, action, resource == Tool::"mail.*");"#,
            r#"forbid (principal, action, resource in Tool::"mail.send");"#,
            r#"forbid (principal, action, resource in Label::"send");"#,
            r#"forbid (principal, action, resource in ToolServer::"male");"#,
            r#"forbid (principal, action == Action::"use_tool", resource)
               when { resource in [Label::"sends", Label::"paid"] };"#,
            r#"forbid (principal, action == Action::"use_tool", resource)
               unless { [Tool::"pay.refnd"].contains(resource) };"#,
        ],
        expect![[r#"
            a.cedar:1: there is no tool `mail.sned`; did you mean "mail.send"?
            a.cedar:1: there is no tool `mail.archive`
            a.cedar:1: there is no tool `post.send`: there is no server of tools `post`
            a.cedar:1: there is no tool `calendar.book`: there is no server of tools `calendar`
            a.cedar:1: a tool's name has no wildcards: write `resource in ToolServer::"mail"`
            a.cedar:1: a tool contains no tools: write `resource == Tool::"mail.send"`
            a.cedar:1: there is no label `send`; did you mean "sends"?
            a.cedar:1: there is no server of tools `male`; did you mean "mail"?
            a.cedar:1: there is no label `paid`; did you mean "pays"?
            a.cedar:1: there is no tool `pay.refnd`; did you mean "pay.refund"?
        "#]],
    );
}

#[test]
fn names_that_exist_or_may_exist_are_accepted() {
    loaded(
        r#"
        forbid (principal, action, resource == Tool::"mail.send");
        forbid (principal, action, resource == Tool::"files.write_file");
        forbid (principal, action, resource == Tool::"files.read_text_file");
        forbid (principal, action, resource == Tool::"search");
        forbid (principal, action, resource in Label::"changes");
        forbid (principal, action, resource in ToolServer::"files");
        "#,
    );
    // Without servers of tools, all tools may be those of a remote bridge.
    let text = files(r#"forbid (principal, action, resource == Tool::"far.send");"#);
    Policies::load_with(&text, &Catalog::default()).unwrap();
}

#[test]
fn a_word_that_an_attribute_never_has_is_refused() {
    let rule = |condition: &str| {
        format!(
            "forbid (principal is Agent, action == Action::\"use_tool\", resource) when {{ {condition} }};"
        )
    };
    let texts = [
        r#"context.posture == "advisry""#,
        r#"["retrieval", "reading"].contains(context.posture)"#,
        r#"context.time.weekday != "Monday""#,
        r#"principal.status == "idling""#,
        r#"context.inputs.classes.contains("stranger")"#,
        r#"!["prompt", "record"].containsAll(context.call.to.seen)"#,
        r#"context.call.all.carries.contains("prompt")"#,
        r#"context.call.hasTag("amount") && context.call.getTag("amount").mentions.contains("strangers")"#,
        r#"context.call.hasTag("amount") && context.call.getTag("amount") has role && "what" == context.call.getTag("amount").role"#,
        r#"resource.sends_to == "outside""#,
        r#"context.flow.origins.contains("Web Pages")"#,
    ]
    .map(rule);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    refused(
        &texts,
        expect![[r#"
        a.cedar:1: `context.posture`: "advisry" is not one of bounded_autonomous, approval_required, retrieval, advisory; did you mean "advisory"?
        a.cedar:1: `context.posture`: "reading" is not one of bounded_autonomous, approval_required, retrieval, advisory
        a.cedar:1: `context.time.weekday`: "Monday" is not one of sunday, monday, tuesday, wednesday, thursday, friday, saturday; did you mean "monday"?
        a.cedar:1: `principal.status`: "idling" is not one of idle, running, paused, terminated, error, deprecated
        a.cedar:1: `context.inputs.classes`: "stranger" is not one of caller, agent, tool, human
        a.cedar:1: `context.call.to.seen`: "record" is not one of prompt, records, private, stranger, nowhere; did you mean "records"?
        a.cedar:1: `context.call.all.carries`: "prompt" is not one of private, stranger
        a.cedar:1: `context.call.(tag).mentions`: "strangers" is not one of prompt, records, private, stranger, nowhere; did you mean "stranger"?
        ok: forbid (principal is Agent, action == Action::"use_tool", resource) when { context.call.hasTag("amount") && context.call.getTag("amount") has role && "what" == context.call.getTag("amount").role };
        a.cedar:1: `resource.sends_to`: "outside" is not one of external, internal, none
        a.cedar:1: `context.flow.origins` never contains "Web Pages": names of origins and secrets have lower-case letters, digits and `_ . -`
    "#]],
    );
}

#[test]
fn a_tag_of_an_argument_that_no_tool_in_scope_has_is_refused() {
    refused(
        &[
            r#"forbid (principal, action == Action::"use_tool", resource in ToolServer::"pay")
               when { context.call.hasTag("amont") };"#,
            // A tool of `files`, which was never listed, may have the label.
            r#"forbid (principal, action == Action::"use_tool", resource in Label::"pays")
               when { context.call.hasTag("amont") };"#,
            r#"forbid (principal, action == Action::"use_tool", resource in ToolServer::"mail")
               when { context.call.hasTag("amount") };"#,
            r#"forbid (principal, action == Action::"use_tool", resource == Tool::"mail.send")
               when { context.call.hasTag("recipients") };"#,
            r#"forbid (principal, action == Action::"use_tool", resource)
               when { context.call.hasTag("path") };"#,
        ],
        expect![[r#"
            a.cedar:1: there is no argument of a tool in scope `amont`; did you mean "amount"?
            ok: forbid (principal, action == Action::"use_tool", resource in Label::"pays")
                           when { context.call.hasTag("amont") };
            a.cedar:1: there is no argument of a tool in scope `amount`
            ok: forbid (principal, action == Action::"use_tool", resource == Tool::"mail.send")
                           when { context.call.hasTag("recipients") };
            ok: forbid (principal, action == Action::"use_tool", resource)
                           when { context.call.hasTag("path") };
        "#]],
    );
}

/// A call of `pay.refund`.
fn call(input: Value) -> PolicyFacts<'static> {
    let Value::Object(input) = input else { panic!("an object") };
    let tool = catalog().tool("pay.refund").unwrap().facts.as_ref().clone();
    PolicyFacts {
        verb: Verb::UseTool,
        what: Resource::Tool("pay.refund".into()),
        tool: Some(Cow::Owned(tool)),
        input: Some(Cow::Owned(input)),
        ..facts()
    }
}

#[test]
fn a_refund_over_500_asks_and_over_5000_is_forbidden() {
    let typed = r#"
        @id("over-500") @action("require_approval")
        forbid (principal, action == Action::"use_tool", resource == Tool::"pay.refund")
        when { context.input.amount.greaterThan(decimal("500.0")) };
        @id("over-5000")
        forbid (principal, action == Action::"use_tool", resource == Tool::"pay.refund")
        when { context.input.amount.greaterThan(decimal("5000.0")) };"#;
    let tagged = r#"
        @id("over-500") @action("require_approval")
        forbid (principal, action == Action::"use_tool", resource in Label::"pays")
        unless { context.call.hasTag("amount") && context.call.getTag("amount") has number
            && context.call.getTag("amount").number.lessThanOrEqual(decimal("500.0")) };
        @id("over-5000")
        forbid (principal, action == Action::"use_tool", resource in Label::"pays")
        unless { context.call.hasTag("amount") && context.call.getTag("amount") has number
            && context.call.getTag("amount").number.lessThanOrEqual(decimal("5000.0")) };"#;
    for (name, rules) in [("typed", typed), ("tagged", tagged)] {
        let policies = loaded(rules);
        for (amount, expected) in [
            (json!(500), Disposition::Allow),
            (json!(500.00), Disposition::Allow),
            (json!("499.99"), Disposition::Allow),
            (json!(500.01), Disposition::Hold),
            (json!(500.000_001), Disposition::Hold),
            (json!("600"), Disposition::Hold),
            (json!(5000), Disposition::Hold),
            (json!(5001), Disposition::Block),
            (json!(1e30), Disposition::Block),
            (json!("600 EUR"), Disposition::Block),
            (json!([600]), Disposition::Block),
            (json!(null), Disposition::Block),
        ] {
            let call = call(json!({"order": "o-1", "amount": amount}));
            let disposition = replay(&policies, &call).disposition;
            assert_eq!(disposition, expected, "{name}: {amount}");
        }
    }
}

#[test]
fn an_argument_of_another_type_than_declared_blocks_and_says_so() {
    let policies = loaded(
        r#"@id("tagged")
        forbid (principal, action == Action::"use_tool", resource == Tool::"pay.refund")
        when { context.input has tags && context.input.tags.contains("x") };"#,
    );
    let because = |input: Value| replay(&policies, &call(input)).because.unwrap_or_default();
    assert_eq!(because(json!({"order": "o", "amount": 5, "tags": ["a"]})), "");
    assert_eq!(
        because(json!({"order": "o", "amount": 5, "tags": ["x"]})),
        "policy a.cedar/tagged forbids it"
    );
    let why = because(json!({"order": "o", "amount": 5, "tags": "x"}));
    assert!(why.ends_with("argument `tags` is not a list, as the tool's definition says"), "{why}");
    let missing = PolicyFacts { input: None, ..call(json!({})) };
    assert_eq!(replay(&policies, &missing).disposition, Disposition::Block);
}

#[test]
fn typed_arguments_are_checked_against_the_definition() {
    refused(
        &[
            r#"forbid (principal, action, resource == Tool::"pay.refund")
               when { context.input.amont > 5 };"#,
            r#"forbid (principal, action, resource == Tool::"pay.refund")
               when { context.input.amount > 5 };"#,
            r#"forbid (principal, action, resource == Tool::"pay.refund")
               when { context.input.note == "x" };"#,
            r#"forbid (principal, action, resource == Tool::"pay.refund")
               when { context.input.tags.contains("x") };"#,
            r#"forbid (principal, action, resource == Tool::"files.write_file")
               when { context.input.path == "x" };"#,
            r#"forbid (principal, action == Action::"use_tool", resource in Label::"pays")
               when { context.input.amount == decimal("1.0") };"#,
        ],
        expect![[r#"
            a.cedar:1: the definition of tool `pay.refund` has no typed argument `amont`; did you mean "amount"?
            a.cedar:1: unexpected type: expected Long but saw decimal
            a.cedar:1: the definition of tool `pay.refund` has no typed argument `note`
            a.cedar:1: unable to guarantee safety of access to optional attribute `input.tags` in context
            a.cedar:1: the definition of tool `files.write_file` is not known, so `context.input` has no type: list the tools of its server first, or read `context.call.getTag("ARGUMENT")`
            a.cedar:1: `context.input` is for a policy about one tool (`resource == Tool::"NAME"`); others read `context.call.getTag("ARGUMENT")`
        "#]],
    );
}

#[test]
fn a_stored_set_stays_when_a_name_disappears_and_fails_closed() {
    let text = format!(
        "{}\n{}",
        r#"
        @id("label") forbid (principal, action == Action::"use_tool", resource in Label::"gone");
        @id("condition") @action("require_approval")
        forbid (principal == Agent::"clerk", action == Action::"use_tool", resource)
            when { resource in ToolServer::"gone" };
        @id("audit") @enforcement("audit") forbid (principal, action, resource in ToolServer::"gone");
        @id("tool") forbid (principal, action, resource == Tool::"pay.repay");
        @id("typed") forbid (principal, action, resource == Tool::"pay.repay") when { context.input.amount > 1 };
        @id("word") forbid (principal, action, resource) when { context.posture == "gone" };"#,
        DEFAULT.1
    );
    let stored = |text: &str| {
        Policies::load_stored(&[("a.cedar".to_owned(), text.to_owned())], &catalog()).unwrap()
    };
    let policies = stored(&text);
    let notes: Vec<String> = policies.notes().iter().map(ToString::to_string).collect();
    expect![[r#"
        a.cedar:2: there is no label `gone`
        a.cedar:3: there is no server of tools `gone`
        a.cedar:6: there is no server of tools `gone`
        a.cedar:7: there is no tool `pay.repay`
        a.cedar:8: there is no tool `pay.repay`
        a.cedar:8: the definition of tool `pay.repay` is not known, so `context.input` has no type: list the tools of its server first, or read `context.call.getTag("ARGUMENT")`
        a.cedar:9: `context.posture`: "gone" is not one of bounded_autonomous, approval_required, retrieval, advisory"#]].assert_eq(&notes.join("\n"));
    let why = |policies: &Policies, facts: &PolicyFacts<'_>| replay(policies, facts).because;
    let refund = call(json!({"order": "o", "amount": 1}));
    assert_eq!(
        why(&policies, &refund).unwrap(),
        "policy a.cedar/label could not be evaluated: there is no label `gone`"
    );
    // Steps go on.
    assert_eq!(why(&policies, &facts()), None);
    let only_clerk =
        stored(&text.replace("resource in Label::\"gone\"", "resource in Label::\"sends\""));
    assert_eq!(why(&only_clerk, &refund), None);
    let Principal::Agent { role, trust, phase, status, model, capabilities, .. } = facts().who
    else {
        panic!("an agent")
    };
    let who =
        Principal::Agent { name: "clerk".into(), role, trust, phase, status, model, capabilities };
    let clerk = PolicyFacts { who, ..refund.clone() };
    assert!(why(&only_clerk, &clerk).unwrap().contains("there is no server of tools `gone`"));
    let repay = PolicyFacts { what: Resource::Tool("pay.repay".into()), ..refund.clone() };
    let typed =
        stored(&text.replace("@id(\"tool\") forbid", "@id(\"tool\") @action(\"log\") forbid"));
    assert!(why(&typed, &repay).is_some());
    // A permit with a missing name permits nothing.
    let permits = stored(
        "permit (principal, action == Action::\"dispatch_step\", resource);\n\
         permit (principal, action == Action::\"use_tool\", resource in Label::\"gone\");",
    );
    assert_eq!(why(&permits, &refund).unwrap(), "no policy permits it");
}

/// The guide's policies load, with these tools.
#[test]
fn the_policies_of_the_guide_load() {
    let guide = include_str!("../../../../../docs/guide/policies.md");
    let labelled = |labels: &[&str]| ToolDeclaration {
        labels: Some(labels.iter().map(|&label| label.into()).collect()),
        ..ToolDeclaration::default()
    };
    let server = |name: &str, tools: &[(&str, &[&str])]| ServerDeclaration {
        name: name.into(),
        defaults: ToolDeclaration::default(),
        tools: tools.iter().map(|(name, labels)| ((*name).to_owned(), labelled(labels))).collect(),
    };
    let servers = [
        server("pay", &[("refund", &["pays"])]),
        server("mail", &[("send", &["sends"]), ("purge", &["deletes"])]),
    ];
    let text = json!({"type": "string"});
    let refund = json!({
        "type": "object",
        "properties": {"amount": {"type": "number"}, "reason": text},
        "required": ["amount"],
    });
    let send = json!({"type": "object", "properties": {"subject": text, "recipients": text}});
    let tools = [
        ("pay.refund", refund),
        ("mail.send", send),
        ("mail.purge", json!({"type": "object", "properties": {}})),
    ];
    let catalog =
        Catalog::new(&servers, tools.map(|(name, schema)| (name.to_owned(), listed(schema))));
    let blocks: Vec<&str> =
        guide.split("```cedar\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() > 5);
    for block in blocks {
        let loaded = Policies::load_with(&files(block), &catalog);
        assert!(loaded.is_ok(), "{block}: {:?}", loaded.err());
    }
}

#[test]
fn the_reference_names_the_tools_and_types_the_arguments_of_one() {
    let all = reference(&catalog(), None).unwrap();
    let head: String = all
        .lines()
        .take_while(|line| line.starts_with("//"))
        .fold(String::new(), |text, line| text + line + "\n");
    expect![[r#"
        // What a policy may refer to.
        //
        // Tool::"files.write_file": unseen, sends_to external, labels "changes"
        // Tool::"mail.send": accepted, sends_to external, labels "sends"
        // Tool::"pay.refund": accepted, sends_to external, labels "pays"
        // labels: Label::"changes", Label::"pays", Label::"sends"
        // servers: ToolServer::"files", ToolServer::"mail", ToolServer::"pay"
        // origins: "unknown"
        // secrecy: none
    "#]]
    .assert_eq(&head);
    let one = reference(&catalog(), Some("pay.refund")).unwrap();
    let head: String = one
        .lines()
        .take_while(|line| line.starts_with("//"))
        .fold(String::new(), |text, line| text + line + "\n");
    expect![[r#"
        // What a policy may refer to.
        //
        // Tool::"pay.refund": accepted, sends_to external, labels "pays"
        //   context.call.getTag("amount")
        //   context.call.getTag("note")
        //   context.call.getTag("order")
        //   context.call.getTag("tags")
        //   further arguments are not known
        // labels: Label::"changes", Label::"pays", Label::"sends"
        // servers: ToolServer::"files", ToolServer::"mail", ToolServer::"pay"
        // origins: "unknown"
        // secrecy: none
    "#]]
    .assert_eq(&head);
    assert!(one.contains("    input: {\n        \"amount\": decimal,\n"), "{one}");
    assert!(cedar_policy::Schema::from_cedarschema_str(&one).is_ok());
    assert!(cedar_policy::Schema::from_cedarschema_str(&all).is_ok());
    for unknown in ["nowhere.tool", "pay.refnud"] {
        assert_eq!(reference(&catalog(), Some(unknown)), None);
    }
}

#[test]
fn the_shipped_rule_records_a_secret_that_leaves_with_data_from_outside() {
    let policies = Policies::permit_all();
    let label = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
    for (origins, secrecy, sends_to, matches) in [
        (&["web"][..], &["payroll"][..], None, true),
        (&["web", "caller"], &["payroll"], Some(SendsTo::External), true),
        (&["web"], &["payroll"], Some(SendsTo::Internal), false),
        (&["web"], &[], None, false),
        (&["caller", "operator"], &["payroll"], None, false),
        (&[], &["payroll"], None, false),
    ] {
        let mut call = call(json!({}));
        call.flow = FlowFacts { origins: label(origins), secrecy: label(secrecy), control: false };
        call.tool.as_mut().unwrap().to_mut().sends_to = sends_to;
        let replayed = replay(&policies, &call);
        assert_eq!(replayed.disposition, Disposition::Allow);
        assert_eq!(
            replayed.matched.len(),
            usize::from(matches),
            "{origins:?} {secrecy:?} {sends_to:?}"
        );
    }
}
