//! Policies about the values of an action, its tool and its labels.

use super::*;
use crate::facts::ArgumentRole;
use serde_json::{Map, Value, json};

fn names(policies: &Policies, facts: &PolicyFacts<'_>) -> Vec<String> {
    let matches = policies.matches(facts);
    assert!(matches.errors.is_empty(), "{:?}", matches.errors);
    matches
        .rules
        .iter()
        .filter_map(|rule| rule.name.strip_prefix("a.cedar/").map(str::to_owned))
        .collect()
}

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

fn tool() -> ToolFacts {
    ToolFacts {
        server: "mail".into(),
        labels: vec!["sends".into(), "final".into()],
        read_only: false,
        sends_to: Some(SendsTo::Internal),
        roles: [("recipients".to_owned(), ArgumentRole::To), ("cc".to_owned(), ArgumentRole::To)]
            .into(),
    }
}

/// A call of `mail.send`, of which nothing but the arguments is known.
fn call(input: Value) -> PolicyFacts<'static> {
    PolicyFacts {
        verb: Verb::UseTool,
        what: Resource::Tool("mail.send".into()),
        tool: Some(std::borrow::Cow::Owned(tool())),
        input: Some(std::borrow::Cow::Owned(map(input))),
        ..facts()
    }
}

fn seen(classes: &[SeenIn]) -> ArgumentFacts {
    ArgumentFacts { seen: classes.iter().copied().collect(), ..ArgumentFacts::default() }
}

#[test]
fn a_rule_is_about_a_tool_a_label_or_a_server() {
    let policies = with_default(
        r#"
        @id("tool") forbid (principal, action, resource == Tool::"mail.send");
        @id("label") forbid (principal, action, resource in Label::"sends");
        @id("agent-label") forbid (principal == Agent::"scribe", action == Action::"use_tool", resource in Label::"final");
        @id("other-label") forbid (principal, action, resource in Label::"pays");
        @id("server") forbid (principal is Agent, action, resource is Tool in ToolServer::"mail");
        @id("other-server") forbid (principal, action, resource in ToolServer::"files");
        @id("condition") forbid (principal, action == Action::"use_tool", resource)
            when { resource in Label::"sends" && resource in ToolServer::"mail" };
        @id("writes") forbid (principal, action == Action::"use_tool", resource) unless { resource.read_only };
        @id("outside") forbid (principal, action == Action::"use_tool", resource)
            when { resource.sends_to == "external" };
        @id("inside") forbid (principal, action, resource in Label::"sends")
            when { resource is Tool && resource.sends_to == "internal" };
        "#,
    );
    let declared = call(json!({}));
    let all = ["tool", "label", "agent-label", "server", "condition", "writes", "inside"];
    assert_eq!(names(&policies, &declared), all);
    // A tool that declares nothing has no labels, changes something and sends it outside.
    let undeclared = PolicyFacts { tool: None, ..declared.clone() };
    assert_eq!(names(&policies, &undeclared), ["tool", "server", "writes", "outside"]);
    let reads = ToolFacts { read_only: true, labels: Vec::new(), sends_to: None, ..tool() };
    let reads = PolicyFacts { tool: Some(std::borrow::Cow::Owned(reads)), ..declared };
    assert_eq!(names(&policies, &reads), ["tool", "server", "outside"]);
}

#[test]
fn a_label_or_a_server_is_never_equal_to_a_tool() {
    for scope in [
        "resource == Label::\"sends\"",
        "resource == ToolServer::\"mail\"",
        "resource is Gateway in Label::\"sends\"",
        "resource is Tool in Gateway::\"local\"",
    ] {
        let text = format!("{} forbid (principal, action, {scope});", DEFAULT.1);
        assert!(set(&[&text]).is_err(), "{scope}");
    }
}

#[test]
fn a_rule_reads_the_values_of_arguments() {
    let policies = with_default(
        r#"
        @id("over-500") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("amount") }
            unless { context.call.getTag("amount") has number
                && context.call.getTag("amount").number.lessThanOrEqual(decimal("500.0")) };
        @id("house") forbid (principal, action == Action::"use_tool", resource)
            unless { context.call.to has texts && ["ada@house.org", "bob@house.org"].containsAll(context.call.to.texts) };
        @id("urgent") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("more.note") && context.call.getTag("more.note") has text
                && context.call.getTag("more.note").text like "*urgent*" };
        @id("flag") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("all") && context.call.getTag("all") has text
                && context.call.getTag("all").text == "true" };
        @id("names") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.arguments.contains("bcc") };
        "#,
    );
    for (input, expected) in [
        (json!({}), &[][..]),
        (json!({"amount": 500}), &[]),
        (json!({"amount": 500.0001}), &["over-500"]),
        (json!({"amount": 500.000_000_1}), &["over-500"]),
        (json!({"amount": "501"}), &["over-500"]),
        (json!({"amount": "500"}), &[]),
        (json!({"amount": "5 thousand"}), &["over-500"]),
        (json!({"amount": [1]}), &["over-500"]),
        (json!({"amount": 1e30}), &["over-500"]),
        (json!({"recipients": ["ada@house.org"], "cc": "bob@house.org"}), &[]),
        (json!({"recipients": ["ada@house.org", "eve@else.org"]}), &["house"]),
        (json!({"cc": "eve@else.org"}), &["house"]),
        (json!({"recipients": vec![json!("x"); 257]}), &["house"]),
        (json!({"more": {"note": "this is urgent!"}}), &["urgent"]),
        (json!({"more": [{"note": "this is urgent!"}]}), &[]),
        (json!({"more.note": "urgent", "more": {"note": "urgent"}}), &[]),
        (json!({"all": true}), &["flag"]),
        (json!({"all": false, "bcc": null}), &[]),
        (json!({"bcc": []}), &["names"]),
    ] {
        assert_eq!(names(&policies, &call(input.clone())), expected, "{input}");
    }
}

#[test]
fn long_texts_are_cut_and_say_so() {
    let policies = with_default(
        r#"
        @id("cut") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("body") && context.call.getTag("body").truncated && context.call.text.truncated == false };
        @id("end") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("body") && context.call.getTag("body") has text && context.call.getTag("body").text like "*end" };
        "#,
    );
    let body = |length: usize| json!({"body": format!("{}end", "x".repeat(length))});
    assert_eq!(names(&policies, &call(body(4093))), ["end"]);
    assert_eq!(names(&policies, &call(body(4094))), ["cut"]);
}

#[test]
fn a_rule_reads_where_a_value_was_seen() {
    let policies = with_default(
        r#"
        @id("known") @action("require_approval")
        forbid (principal, action == Action::"use_tool", resource in Label::"sends")
            unless { ["prompt", "records"].containsAll(context.call.to.seen) };
        @id("tag") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("body") && context.call.getTag("body").carries.contains("private") };
        @id("role") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("cc") && context.call.getTag("cc") has role && context.call.getTag("cc").role == "to"
                && context.call.to.arguments.containsAll(["recipients", "cc"]) };
        @id("exposed") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.exposed && context.call.all.mentions.contains("stranger") };
        "#,
    );
    let arguments = |recipients: &[SeenIn], body: ArgumentFacts| CallFacts {
        arguments: [("recipients".to_owned(), seen(recipients)), ("body".to_owned(), body)].into(),
        exposed: false,
    };
    let input = json!({"recipients": ["ada"], "body": "hi"});
    let with = |facts: CallFacts| PolicyFacts { call: Some(facts), ..call(input.clone()) };
    let fine = arguments(&[SeenIn::Prompt, SeenIn::Records], seen(&[SeenIn::Nowhere]));
    assert_eq!(names(&policies, &with(fine.clone())), [""; 0]);
    let stranger = arguments(&[SeenIn::Prompt, SeenIn::Stranger], ArgumentFacts::default());
    assert_eq!(names(&policies, &with(stranger)), ["known"]);
    let private = ArgumentFacts { carries: [SeenIn::Private].into(), ..ArgumentFacts::default() };
    assert_eq!(names(&policies, &with(arguments(&[], private))), ["tag"]);
    // The facts may name an argument whose value is not recorded.
    let mut more = fine;
    more.arguments.insert("cc".to_owned(), seen(&[SeenIn::Prompt]));
    assert_eq!(names(&policies, &with(more)), ["role"]);
    // Without these facts a value may be anything.
    assert_eq!(names(&policies, &call(input.clone())), ["known", "tag", "exposed"]);
}

#[test]
fn a_rule_about_values_that_are_not_known_blocks() {
    let policies = with_default(
        r#"@id("known") @action("require_approval")
        forbid (principal, action == Action::"use_tool", resource)
            unless { ["prompt"].containsAll(context.call.to.seen) };"#,
    );
    let facts = PolicyFacts { input: None, ..call(json!({})) };
    let replayed = replay(&policies, &facts);
    assert_eq!(replayed.disposition, Disposition::Block);
    assert!(replayed.because.unwrap().contains("could not be evaluated"));
    // A back-test does not count such a decision.
    assert!(policies.misses_values(&facts));
    assert!(!policies.misses_values(&call(json!({}))));
    let other = PolicyFacts { what: Resource::Tool("mail.send".into()), tool: None, ..facts };
    assert!(policies.misses_values(&other));
    assert!(!Policies::permit_all().misses_values(&other));
}

#[test]
fn a_rule_reads_the_labels_of_the_action() {
    let policies = with_default(
        r#"
        @id("web") forbid (principal, action, resource)
            when { context has flow && context.flow.origins.contains("web") };
        @id("secret") forbid (principal, action == Action::"dispatch_step", resource)
            when { context.flow.secrecy.containsAny(["payroll", "customer"]) };
        @id("control") forbid (principal, action == Action::"dispatch_step", resource)
            when { context.flow.control };
        @id("part") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("body") && context.call.getTag("body").origins.contains("web") && context.call.all.secrecy == ["payroll"] };
        "#,
    );
    let label = |name: &str| -> BTreeSet<Arc<str>> { [name.into()].into() };
    let with = |origins: &str, secrecy: &str, control| PolicyFacts {
        flow: FlowFacts { origins: label(origins), secrecy: label(secrecy), control },
        ..facts()
    };
    assert_eq!(names(&policies, &facts()), [""; 0]);
    assert_eq!(names(&policies, &with("web", "x", false)), ["web"]);
    assert_eq!(names(&policies, &with("mail", "payroll", true)), ["secret", "control"]);
    // The same question is answered from the cache, another one is not.
    assert_eq!(names(&policies, &with("web", "x", false)), ["web"]);
    assert_eq!(names(&policies, &with("web", "customer", false)), ["web", "secret"]);
    let body = ArgumentFacts {
        origins: label("web"),
        secrecy: label("payroll"),
        ..ArgumentFacts::default()
    };
    let call = PolicyFacts {
        call: Some(CallFacts { arguments: [("body".to_owned(), body)].into(), exposed: true }),
        ..call(json!({"body": "x"}))
    };
    assert_eq!(names(&policies, &call), ["part"]);
}

#[test]
fn a_record_of_a_call_gives_the_same_answer() {
    let policies = with_default(
        r#"
        @id("all") forbid (principal, action, resource) when { [context].contains(context) };
        @id("known") forbid (principal, action == Action::"use_tool", resource in Label::"sends")
            unless { ["prompt"].containsAll(context.call.to.seen) && context.call.exposed };
        @id("cut") forbid (principal, action == Action::"use_tool", resource)
            when { context.call.hasTag("body") && context.call.getTag("body").truncated };
        "#,
    );
    let long = map(json!({"recipients": ["ada"], "body": "é".repeat(9000)}));
    let recipients = seen(&[SeenIn::Prompt]);
    let full = PolicyFacts {
        call: Some(CallFacts {
            arguments: [("recipients".to_owned(), recipients)].into(),
            exposed: true,
        }),
        flow: FlowFacts { control: true, ..FlowFacts::default() },
        input: super::super::call::recorded(&long),
        ..call(json!({}))
    };
    let text = serde_json::to_string(&full).unwrap();
    let read: PolicyFacts<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, full);
    assert_eq!(names(&policies, &read), ["all", "cut"]);
    assert_eq!(names(&policies, &full), ["all", "cut"]);
}

#[test]
fn values_are_wanted_only_for_the_actions_that_a_policy_asks_about() {
    let asks = "forbid (principal, action == Action::\"start_run\", resource) \
                when { context.call.hasTag(\"amount\") };";
    let policies = with_default(asks);
    assert!(policies.reads_values(Verb::StartRun));
    assert!(!policies.reads_values(Verb::DispatchStep));
    let policies = Policies::permit_all();
    assert!(!policies.reads_values(Verb::StartRun));
    assert!(policies.with_shadow(with_default(asks)).reads_values(Verb::StartRun));
}
