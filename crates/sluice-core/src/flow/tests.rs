//! The worst labels of documents, and the ways of labels through them.
//!
//! A document in, its findings with their ways out. Every unsafe document has an endorsed and
//! an approved twin, which pass.

mod cases;

use super::*;
use crate::doc::{Format, Registry, check};
use crate::run::definition::Definition;
use expect_test::Expect;
use serde_json::json;
use sluice_govern::catalog::{Catalog, ServerDeclaration, ToolDeclaration};
use sluice_govern::facts::SendsTo;
use sluice_govern::policy::Policies;
use sluice_govern::registry::{Kind, Row};
use std::fmt::Write as _;
use std::sync::Arc;

/// Tools of the tests: `web.fetch` reads the web, `crm.read` reads customer records, `mail.send`
/// sends to the outside, `mail.note` stays inside.
pub(super) fn catalog() -> Catalog {
    let names = |names: &[&str]| Some(names.iter().map(|&name| Arc::from(name)).collect());
    let tool = |origins: &[&str], secrecy: &[&str], sends_to| ToolDeclaration {
        origins: names(origins),
        secrecy: names(secrecy),
        sends_to: Some(sends_to),
        ..ToolDeclaration::default()
    };
    let server = |name: &str, tools: Vec<(&str, ToolDeclaration)>| ServerDeclaration {
        name: name.into(),
        tools: tools.into_iter().map(|(name, tool)| (name.to_owned(), tool)).collect(),
        ..ServerDeclaration::default()
    };
    let servers = [
        server("web", vec![("fetch", tool(&["web"], &[], SendsTo::None))]),
        server("crm", vec![("read", tool(&["crm"], &["customer"], SendsTo::None))]),
        server(
            "mail",
            vec![
                ("send", tool(&[], &[], SendsTo::External)),
                ("note", tool(&[], &[], SendsTo::Internal)),
            ],
        ),
    ];
    Catalog::new(&servers, [])
}

/// The lethal trifecta: data from the web, a customer's secret, a sink outside.
const TRIFECTA: &str = r#"
permit(principal, action, resource);
@id("trifecta")
forbid(principal, action == Action::"use_tool", resource)
when {
    resource.sends_to == "external"
    && context.flow.origins.contains("web")
    && context.flow.secrecy.contains("customer")
};
"#;

pub(super) struct Script {
    main: String,
    children: Vec<String>,
    rows: Vec<Row>,
    policies: String,
}

impl Script {
    pub(super) fn new(main: &str) -> Script {
        let rows = vec![Script::row(Kind::Agent, "ada", json!({"origin": []}))];
        let policies = TRIFECTA.to_owned();
        Script { main: dedent(main), children: Vec::new(), rows, policies }
    }

    fn row(kind: Kind, name: &str, body: serde_json::Value) -> Row {
        Row { kind, name: name.to_owned(), body }
    }

    pub(super) fn child(mut self, text: &str) -> Script {
        self.children.push(dedent(text));
        self
    }

    pub(super) fn with(mut self, kind: Kind, name: &str, body: serde_json::Value) -> Script {
        self.rows.retain(|row| (row.kind, row.name.as_str()) != (kind, name));
        self.rows.push(Script::row(kind, name, body));
        self
    }

    pub(super) fn policies(mut self, rules: &str) -> Script {
        self.policies = format!("permit(principal, action, resource);\n{rules}");
        self
    }

    fn document(name: &str, text: &str, registry: &Registry) -> FlowDocument {
        let format = if text.contains("\nnodes:") { Format::Lens } else { Format::Lobsterx };
        let checked = check(text.as_bytes(), Some(format), registry);
        let plan = checked.plan.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
        let definition = Arc::new(Definition::new(plan, text.to_owned()));
        FlowDocument { name: name.to_owned(), definition }
    }

    /// Analyses the document.
    pub(super) fn analysed<T>(&self, see: impl FnOnce(&Flow<'_>) -> T) -> T {
        let registry = Registry::default();
        let main = Script::document("main.yaml", &self.main, &registry);
        let children = self.children.iter().enumerate().map(|(at, text)| {
            let document = Script::document(&format!("child{at}.yaml"), text, &registry);
            (document.definition.plan.name.clone(), document)
        });
        let children = children.collect();
        let fabric = Fabric::read(1, &self.rows);
        assert_eq!(fabric.broken, Vec::new());
        let catalog = catalog();
        let setting = Setting {
            fabric: &fabric,
            catalog: &catalog,
            children: &children,
            default_agent: None,
        };
        see(&Flow::analyse(&main, setting).unwrap())
    }

    pub(super) fn picture(&self) -> FlowPicture {
        let mut picture = None;
        self.analysed(|flow| picture = Some(flow.picture()));
        picture.expect("the analysis is done")
    }

    /// The findings with their ways.
    pub(super) fn told(&self) -> String {
        let files = [("rules.cedar".to_owned(), self.policies.clone())];
        let policies = Policies::load(&files).unwrap_or_else(|errors| panic!("{errors:?}"));
        let findings = self.analysed(|flow| flow.findings(&policies));
        let mut out = String::new();
        for one in &findings {
            let at = &one.diagnostic;
            writeln!(out, "{}:{} {}: {}", one.document, at.line, at.code, at.message).unwrap();
            for way in &one.ways {
                writeln!(out, "  {}", way.label).unwrap();
                for hop in &way.hops {
                    writeln!(out, "    {}:{} {}: {}", hop.document, hop.line, hop.path, hop.what)
                        .unwrap();
                }
            }
        }
        if out.is_empty() { "nothing\n".to_owned() } else { out }
    }

    #[expect(clippy::needless_pass_by_value, reason = "what is expected is written in place")]
    pub(super) fn check(&self, expected: Expect) {
        expected.assert_eq(&self.told());
    }

    pub(super) fn passes(&self) {
        assert_eq!(self.told(), "nothing\n");
    }

    /// What a step reads and returns.
    pub(super) fn labels(&self, id: &str) -> String {
        let picture = self.picture();
        let step = picture.steps.iter().find(|step| step.id == id).unwrap();
        let shown = |flow: &FlowFacts| serde_json::to_string(flow).unwrap();
        format!("reads {} returns {}", shown(&step.reads), shown(&step.returns))
    }
}

fn dedent(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let common = lines.map(indent).min().unwrap_or(0);
    let cut = text.lines().map(|line| line.get(common..).unwrap_or_default());
    cut.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
}
