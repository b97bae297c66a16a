use super::*;
use serde_json::json;

fn labelled(labels: &[&str]) -> ToolDeclaration {
    let labels = labels.iter().map(|label| Arc::from(*label)).collect();
    ToolDeclaration { labels: Some(labels), ..ToolDeclaration::default() }
}

fn mail() -> ServerDeclaration {
    let tools = [
        ("send", labelled(&["sends"])),
        ("get_*", ToolDeclaration { read_only: Some(true), ..labelled(&["reads"]) }),
        ("get_private_*", {
            let secrecy = Some(BTreeSet::from(["customer".into()]));
            ToolDeclaration { secrecy, ..ToolDeclaration::default() }
        }),
        ("get_none", labelled(&[])),
    ];
    ServerDeclaration {
        name: "mail".into(),
        defaults: ToolDeclaration {
            sends_to: Some(SendsTo::External),
            origins: Some(BTreeSet::from(["inbound_mail".into()])),
            ..labelled(&["mails"])
        },
        tools: tools.map(|(name, tool)| (name.to_owned(), tool)).into(),
    }
}

fn listed(state: ToolState) -> Definitions {
    let definition = || {
        let (digest, description) = ("00".to_owned(), "a tool".to_owned());
        let input_schema = Arc::new(json!({"type": "object"}));
        Some(Arc::new(ToolDefinition { digest, description, input_schema }))
    };
    let (accepted, changed) = match state {
        ToolState::Accepted => (definition(), None),
        ToolState::New => (None, definition()),
        ToolState::Changed => (definition(), definition()),
        ToolState::Unseen => (None, None),
    };
    Definitions { accepted, changed }
}

fn labels<'a>(catalog: &'a Catalog, tool: &str) -> Vec<&'a str> {
    catalog.tool(tool).unwrap().facts.labels.iter().map(|label| &**label).collect()
}

#[test]
fn the_most_specific_declaration_of_each_field_applies() {
    let tools = [("mail.get_new", ToolState::Accepted), ("mail.get_private_new", ToolState::New)];
    let tools = tools.map(|(name, state)| (name.to_owned(), listed(state)));
    let catalog = Catalog::new(&[mail()], tools);
    for get in ["mail.get_new", "mail.get_other", "mail.get_private_new", "mail.get_private_x"] {
        let tool = catalog.tool(get).unwrap();
        assert_eq!(labels(&catalog, get), ["reads"], "{get}");
        assert!(tool.facts.read_only, "{get}");
        assert_eq!(tool.facts.sends_to, Some(SendsTo::External), "{get}");
        let is_private = get.contains("private");
        assert_eq!(tool.secrecy.contains("customer"), is_private, "{get}");
    }
    assert_eq!(labels(&catalog, "mail.send"), ["sends"]);
    assert_eq!(labels(&catalog, "mail.other"), ["mails"]);
    assert!(labels(&catalog, "mail.get_none").is_empty(), "an empty list is a declaration");
    assert!(!catalog.tool("mail.other").unwrap().facts.read_only);
    assert!(mail().is_read_only("get_new") && !mail().is_read_only("send"));
    assert_eq!(catalog.labels(), ["mails", "reads", "sends"].into());
    assert_eq!(catalog.origins(), ["inbound_mail"].into());
    assert_eq!(catalog.secrecy(), ["customer"].into());
    assert_eq!(catalog.servers().collect::<Vec<_>>(), ["mail"]);
}

#[test]
fn a_tool_that_no_server_lists_is_unseen() {
    let tools = [("mail.send", ToolState::Changed), ("other.send", ToolState::Accepted)];
    let tools = tools.map(|(name, state)| (name.to_owned(), listed(state)));
    let catalog = Catalog::new(&[mail()], tools);
    let state = |name| catalog.tool(name).map(|tool| tool.state);
    assert_eq!(state("mail.send"), Some(ToolState::Changed));
    assert_eq!(state("mail.get_none"), Some(ToolState::Unseen));
    assert_eq!(state("mail.whatever"), Some(ToolState::Unseen));
    assert_eq!(state("other.send"), None, "the server is not declared");
    assert_eq!(state("mail"), None);
    let names: Vec<&str> = catalog.tools().map(|(name, _)| name).collect();
    assert_eq!(names, ["mail.get_none", "mail.send"]);
}

#[test]
fn a_tool_that_declares_nothing_has_an_unknown_origin() {
    let server = ServerDeclaration { name: "web".into(), ..ServerDeclaration::default() };
    let catalog = Catalog::new(&[server], []);
    let tool = catalog.tool("web.fetch").unwrap();
    assert_eq!(tool.origins, BTreeSet::from(["unknown".into()]));
    assert!(tool.secrecy.is_empty() && tool.facts.sends_to.is_none());
    assert_eq!(tool.fields, AnswerFields::default());
    assert!(Catalog::empty().tool("web.fetch").is_none());
}

#[test]
fn a_state_follows_from_the_definitions() {
    for state in ToolState::ALL {
        assert_eq!(listed(state).state(), state);
        let is_blocked = matches!(state, ToolState::New | ToolState::Changed);
        assert_eq!(state.refusal("mail.send").is_some(), is_blocked);
    }
    let why = ToolState::New.refusal("mail.send").unwrap();
    assert!(why.starts_with("tool_not_accepted: `mail.send` was added"), "{why}");
}
