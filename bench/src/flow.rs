//! The worst labels of a large document, and the policies that they can meet.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::flow::{Flow, FlowDocument, Setting};
use sluice_core::run::definition::Definition;
use sluice_govern::catalog::{Catalog, ServerDeclaration, ToolDeclaration};
use sluice_govern::facts::SendsTo;
use sluice_govern::policy::Policies;
use sluice_govern::registry::Fabric;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Steps of the document
    #[arg(long, default_value_t = 10_000)]
    steps: usize,
    /// Rounds; the best is reported
    #[arg(long, default_value_t = 10)]
    rounds: usize,
}

/// Rules about flow; the last one finds every step that sends.
const RULES: &str = r#"
permit(principal, action, resource);
forbid(principal, action == Action::"use_tool", resource)
when { context.flow.origins.contains("nowhere") && resource.sends_to == "external" };
forbid(principal, action == Action::"dispatch_step", resource)
when { context.flow.control && context.flow.secrecy.contains("payroll") };
forbid(principal, action == Action::"use_tool", resource)
when {
    resource.sends_to == "external" && context.flow.origins.contains("web")
    && context.flow.secrecy.contains("customer")
};
"#;

pub(crate) fn run(options: &Options) -> anyhow::Result<Value> {
    let text = document(options.steps);
    let checked = doc::check(text.as_bytes(), Some(Format::Lobsterx), &Registry::default());
    let plan = checked.plan.context("the document is valid")?;
    let definition = Arc::new(Definition::new(plan, text));
    let main = FlowDocument { name: "large".to_owned(), definition };
    let (fabric, catalog, children) = (Fabric::default(), catalog(), BTreeMap::new());
    let policies = Policies::load(&[("rules.cedar".to_owned(), RULES.to_owned())])
        .map_err(|errors| anyhow!("{errors:?}"))?;
    let (mut solved, mut judged, mut findings) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..options.rounds.max(1) {
        let setting = Setting {
            fabric: &fabric,
            catalog: &catalog,
            children: &children,
            default_agent: None,
        };
        let begin = Instant::now();
        let flow = Flow::analyse(&main, setting)?;
        solved = solved.min(begin.elapsed());
        findings = flow.findings(&policies).len();
        judged = judged.min(begin.elapsed());
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    writeln!(
        std::io::stdout(),
        "flow  {} steps: labels {:.1} ms, with rules and {findings} findings {:.1} ms (at most 200)",
        options.steps,
        ms(solved),
        ms(judged),
    )?;
    Ok(json!({
        "steps": options.steps, "labels_ms": ms(solved), "judged_ms": ms(judged), "findings": findings,
    }))
}

/// Steps that read each other through outputs, inputs, conditions and variables.
fn document(steps: usize) -> String {
    let mut text =
        String::from("name: large\nargs: {who: {type: string, sensitive: [customer]}}\nsteps:\n");
    for at in 0..steps {
        let before = at.saturating_sub(1);
        let _ = writeln!(text, "- id: s{at}\n  agent: mock");
        let _ = match at % 5 {
            _ if at == 0 => {
                writeln!(text, "  command: 'Begin with ${{args.who}}'\n  outputs: {{v: string}}")
            }
            0 => writeln!(
                text,
                "  command: Read\n  depends_on: [s{before}]\n  tools: [web.fetch]\n  outputs: {{v: string}}"
            ),
            1 => writeln!(
                text,
                "  command: 'Use ${{s{before}.v}}'\n  outputs: {{v: string, n: integer}}"
            ),
            2 => writeln!(
                text,
                "  command: 'Use ${{x}} for ${{args.who}}'\n  inputs: {{x: s{before}.v}}\n  outputs: {{v: {{enum: [a, b], endorse: [web]}}}}"
            ),
            3 => writeln!(
                text,
                "  command: Act\n  condition: s{before}.v == 'a'\n  outputs: {{w{at}: string}}"
            ),
            _ => writeln!(
                text,
                "  command: 'Tell ${{w{before}}}'\n  tools: [mail.send]\n  outputs: {{v: string}}"
            ),
        };
    }
    text
}

fn catalog() -> Catalog {
    let server = |name: &str, tool: &str, origin: &str, sends_to| ServerDeclaration {
        name: name.into(),
        tools: BTreeMap::from([(
            tool.to_owned(),
            ToolDeclaration {
                origins: Some([origin.into()].into()),
                sends_to: Some(sends_to),
                ..ToolDeclaration::default()
            },
        )]),
        ..ServerDeclaration::default()
    };
    let web = server("web", "fetch", "web", SendsTo::None);
    Catalog::new(&[web, server("mail", "send", "mail", SendsTo::External)], [])
}
