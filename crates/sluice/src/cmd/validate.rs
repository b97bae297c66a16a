//! `sluice validate`: reports every problem of every document.

use super::flow::FlowSetting;
use super::{count, print_diagnostics, print_unreadable, registry};
use crate::Exit;
use crate::cli::{OutputFormat, Validate};
use crate::draw;
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::Report;
use crate::referenced_documents;
use sluice_core::doc::{Checked, Registry};
use sluice_core::flow::FlowFinding;
use sluice_core::visible;
use sluice_govern::policy::Policies;
use std::ffi::OsStr;

pub(super) async fn run(args: &Validate, out: &mut Out) -> anyhow::Result<Exit> {
    let output = args.json.output();
    let Some(mut registry) = registry(&args.registry, output, out)? else {
        return Ok(Exit::Refused);
    };
    let rules = match &args.policies {
        Some(named) => Some(FlowRules {
            policies: FlowSetting::policies(named, &args.rows.data).await?,
            setting: FlowSetting::load(args.rows.setup.as_ref(), &args.rows.data).await?,
        }),
        None => None,
    };
    let mut exit = Exit::Done;
    for name in &args.files {
        let found;
        (found, registry) = check(name, registry, rules.as_ref(), output, out)?;
        if rules.is_some() {
            // The analysis has taken the registry with the documents that it found.
            registry = super::registry(&args.registry, output, out)?.unwrap_or_default();
        }
        if found != Exit::Done {
            exit = Exit::Refused;
        }
    }
    Ok(exit)
}

/// Policies, and what decides which labels data can have.
struct FlowRules {
    policies: Policies,
    setting: FlowSetting,
}

/// Checks one document, and returns the registry for the next.
fn check(
    name: &OsStr,
    registry: Registry,
    rules: Option<&FlowRules>,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<(Exit, Registry)> {
    let input = match input::read(name) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, output, out)?;
            if output == OutputFormat::Text {
                let name = visible::line(draw::place_name(&unreadable.name));
                out.print(&format!("{name}: 1 error, 0 warnings\n"))?;
            }
            return Ok((Exit::Refused, registry));
        }
    };
    let (checked, mut registry) = referenced_documents::check_one(&input, registry);
    let found = match rules.filter(|_| checked.is_ok()) {
        Some(rules) => {
            let documents =
                rules.setting.documents(input.clone(), std::mem::take(&mut registry))?;
            let flow = documents.analyse(&rules.setting.fabric, &rules.setting.catalog)?;
            let texts = documents.texts();
            let found = flow.findings(&rules.policies);
            if output == OutputFormat::Text {
                for one in &found {
                    let text = texts.get(one.document.as_str()).copied().unwrap_or_default();
                    out.note(&format!("{}\n", draw::flow_finding(text, one)))?;
                }
            }
            found
        }
        None => Vec::new(),
    };
    let refused = found.iter().any(|one| one.diagnostic.is_error());
    match output {
        OutputFormat::Text => {
            print_diagnostics(&input, &checked.diagnostics, out)?;
            let name = visible::line(draw::place_name(&input.name));
            out.print(&format!("{name}: {}\n", summary(&checked, &found)))?;
        }
        OutputFormat::Json => {
            let report = Report::new(&input.name, &checked.diagnostics);
            let report = if rules.is_some() { report.with_flow(&found) } else { report };
            out.json(Layout::Line, &report)?;
        }
    }
    let valid = checked.is_ok() && !refused;
    Ok((if valid { Exit::Done } else { Exit::Refused }, registry))
}

fn summary(checked: &Checked, flow: &[FlowFinding]) -> String {
    let found = checked.diagnostics.iter().chain(flow.iter().map(|one| &one.diagnostic));
    let errors = found.clone().filter(|one| one.is_error()).count();
    let warnings = count(found.count() - errors, "warning");
    match checked.plan.as_ref().filter(|_| errors == 0) {
        None => format!("{}, {warnings}", count(errors, "error")),
        Some(plan) => {
            let steps = count(plan.steps.len(), "step");
            let waves = count(plan.graph.layers().len(), "wave");
            format!("ok, {steps} in {waves}, {warnings}")
        }
    }
}
