//! `sluice validate`: reports every problem of every document.

use super::{count, print_diagnostics, print_unreadable, registry};
use crate::Exit;
use crate::cli::{OutputFormat, Validate};
use crate::draw;
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::Report;
use crate::referenced_documents;
use sluice_core::doc::{Checked, Registry};
use sluice_core::visible;
use std::ffi::OsStr;

pub(super) fn run(args: &Validate, out: &mut Out) -> anyhow::Result<Exit> {
    let output = args.json.output();
    let Some(mut registry) = registry(&args.registry, output, out)? else {
        return Ok(Exit::Refused);
    };
    let mut exit = Exit::Done;
    for name in &args.files {
        let found;
        (found, registry) = check(name, registry, output, out)?;
        if found != Exit::Done {
            exit = Exit::Refused;
        }
    }
    Ok(exit)
}

/// Checks one document, and returns the registry for the next.
fn check(
    name: &OsStr,
    registry: Registry,
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
    let (checked, registry) = referenced_documents::check_one(&input, registry);
    match output {
        OutputFormat::Text => {
            print_diagnostics(&input, &checked.diagnostics, out)?;
            let name = visible::line(draw::place_name(&input.name));
            out.print(&format!("{name}: {}\n", summary(&checked)))?;
        }
        OutputFormat::Json => {
            out.json(Layout::Line, &Report::new(&input.name, &checked.diagnostics))?;
        }
    }
    Ok((if checked.is_ok() { Exit::Done } else { Exit::Refused }, registry))
}

fn summary(checked: &Checked) -> String {
    let errors = checked.diagnostics.iter().filter(|d| d.is_error()).count();
    let warnings = count(checked.diagnostics.len() - errors, "warning");
    match &checked.plan {
        None => format!("{}, {warnings}", count(errors, "error")),
        Some(plan) => {
            let steps = count(plan.steps.len(), "step");
            let waves = count(plan.graph.layers().len(), "wave");
            format!("ok, {steps} in {waves}, {warnings}")
        }
    }
}
