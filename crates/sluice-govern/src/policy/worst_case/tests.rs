//! Rules that read labels, against worst cases.

use super::*;
use crate::policy::DEFAULT;

fn policies(rules: &str) -> Policies {
    let permits = "permit(principal, action, resource);";
    let files = [("rules.cedar".to_owned(), format!("{permits}\n{rules}"))];
    Policies::load(&files).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn flow(origins: &[&str], secrecy: &[&str], control: bool) -> FlowFacts {
    let names = |all: &[&str]| all.iter().map(|&name| name.into()).collect();
    FlowFacts { origins: names(origins), secrecy: names(secrecy), control }
}

fn mail() -> ToolFacts {
    ToolFacts {
        server: "mail".into(),
        labels: vec!["sends".into()],
        read_only: false,
        sends_to: Some(SendsTo::External),
        roles: Default::default(),
    }
}

/// Whether a condition of `forbid(use_tool)` can match `mail.send` with these labels.
fn can(condition: &str, flow: &FlowFacts) -> bool {
    let rule = format!("forbid(principal, action == Action::\"use_tool\", resource) {condition};");
    matches(&rule, flow)
}

fn matches(rule: &str, flow: &FlowFacts) -> bool {
    let tool = mail();
    let case = case(&tool, flow);
    !policies(rule).worst_matches(&case).is_empty()
}

fn case<'a>(tool: &'a ToolFacts, flow: &'a FlowFacts) -> WorstCase<'a> {
    WorstCase {
        verb: Verb::UseTool,
        agent: Some("ada"),
        role: Some("clerk"),
        resource: WorstResource::Tool("mail.send", Some(tool)),
        sends_to: SendsTo::External,
        workflow: "mailing",
        step: "send",
        flow,
    }
}

#[test]
fn labels_can_be_any_part_of_the_worst_ones() {
    let web = flow(&["web", "caller"], &["customer"], false);
    let none = FlowFacts::default();
    for condition in [
        "when { context.flow.origins.contains(\"web\") }",
        "when { context.flow.origins.containsAny([\"web\", \"mail\"]) }",
        "when { context.flow.origins.containsAll([\"web\", \"caller\"]) }",
        "when { context.flow.secrecy.contains(\"customer\") && resource.sends_to == \"external\" }",
        "when { ![\"caller\"].containsAll(context.flow.origins) }",
        "when { !context.flow.origins.isEmpty() }",
        "unless { context.flow.secrecy.isEmpty() }",
        "when { [\"web\"].containsAny(context.flow.origins) }",
        "when { if context.flow.origins.contains(\"web\") then true else false }",
        "when { context.call.to.origins.contains(\"web\") }",
    ] {
        assert!(can(condition, &web), "{condition}");
        assert!(!can(condition, &none), "{condition}");
    }
    // What a run alone knows may be so.
    let unknown = "when { context.flow.origins.contains(\"web\") && context.cost > 5 }";
    assert!(can(&unknown.replace("context.cost > 5", "context.run.depth > 5"), &web));
    for condition in [
        "when { context.flow.origins.contains(\"mail\") }",
        "when { context.flow.origins.containsAll([\"web\", \"mail\"]) }",
        "when { context.flow.secrecy.contains(\"customer\") && resource.sends_to == \"internal\" }",
        "when { context.flow.control }",
        "when { context.flow.origins.contains(\"web\") && context.run.workflow == \"other\" }",
        "when { context.flow.origins.contains(\"web\") } unless { context.run.workflow == \"mailing\" }",
    ] {
        assert!(!can(condition, &web), "{condition}");
    }
    assert!(can("when { context.flow.control }", &flow(&[], &[], true)));
}

#[test]
fn scopes_decide_which_actions_a_rule_is_about() {
    let web = flow(&["web"], &[], false);
    let when = "when { context.flow.origins.contains(\"web\") }";
    for (scope, expected) in [
        ("principal, action == Action::\"use_tool\", resource == Tool::\"mail.send\"", true),
        ("principal, action == Action::\"use_tool\", resource == Tool::\"mail.read\"", false),
        ("principal, action == Action::\"use_tool\", resource in ToolServer::\"mail\"", true),
        ("principal, action == Action::\"use_tool\", resource in ToolServer::\"bank\"", false),
        ("principal, action == Action::\"use_tool\", resource in Label::\"sends\"", true),
        ("principal, action == Action::\"use_tool\", resource in Label::\"pays\"", false),
        ("principal == Agent::\"ada\", action == Action::\"use_tool\", resource", true),
        ("principal == Agent::\"bob\", action == Action::\"use_tool\", resource", false),
        ("principal in Role::\"clerk\", action == Action::\"use_tool\", resource", true),
        ("principal in Role::\"boss\", action == Action::\"use_tool\", resource", false),
        ("principal, action == Action::\"dispatch_step\", resource", false),
    ] {
        assert_eq!(matches(&format!("forbid({scope}) {when};"), &web), expected, "{scope}");
    }
}

#[test]
fn a_rule_about_destinations_alone_is_found_if_it_is_certain() {
    let none = FlowFacts::default();
    let scope = "principal, action == Action::\"use_tool\", resource in Label::\"sends\"";
    assert!(matches(&format!("forbid({scope});"), &none));
    assert!(matches(
        &format!("forbid({scope}) when {{ resource.sends_to == \"external\" }};"),
        &none
    ));
    assert!(!matches(&format!("forbid({scope}) when {{ context.call.exposed }};"), &none));
    // A rule about neither is no rule about flow.
    let rule = "forbid(principal, action == Action::\"use_tool\", resource);";
    assert!(!matches(rule, &none));
}

#[test]
fn the_labels_that_a_rule_needs_are_named() {
    let worst = flow(&["caller", "mail", "web"], &["customer", "payroll"], true);
    let rule = "forbid(principal, action == Action::\"use_tool\", resource)
        when { context.flow.origins.containsAny([\"web\", \"mail\"]) && context.flow.secrecy.contains(\"payroll\") };";
    let (policies, tool) = (policies(rule), mail());
    let case = case(&tool, &worst);
    let found = policies.worst_matches(&case);
    let least = policies.sufficient_labels(found[0], &case);
    assert_eq!(least, flow(&["web"], &["payroll"], false));
}

#[test]
fn the_default_set_is_read() {
    let (name, text) = DEFAULT;
    let policies = Policies::load(&[(name.to_owned(), text.to_owned())]).unwrap();
    let (tool, none) = (mail(), FlowFacts::default());
    assert!(policies.worst_matches(&case(&tool, &none)).is_empty());
}
