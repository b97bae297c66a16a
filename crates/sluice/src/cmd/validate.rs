//! `sluice validate`: every problem of every document named.

use super::{count, registry, tell_people, tell_unreadable};
use crate::Exit;
use crate::beside;
use crate::cli::{Reader, Validate};
use crate::draw;
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::Report;
use sluice_core::doc::{Checked, Registry};
use sluice_core::visible;
use std::ffi::OsStr;

pub(super) fn run(args: &Validate, out: &mut Out) -> anyhow::Result<Exit> {
    let reader = args.json.reader();
    let Some(mut registry) = registry(&args.registry, reader, out)? else {
        return Ok(Exit::Refused);
    };
    let mut exit = Exit::Done;
    for name in &args.files {
        let found;
        (found, registry) = one(name, registry, reader, out)?;
        if found != Exit::Done {
            exit = Exit::Refused;
        }
    }
    Ok(exit)
}

/// Checks one document, and hands the registry on to the next.
fn one(
    name: &OsStr,
    registry: Registry,
    reader: Reader,
    out: &mut Out,
) -> anyhow::Result<(Exit, Registry)> {
    let input = match input::read(name) {
        Ok(input) => input,
        Err(unreadable) => {
            tell_unreadable(&unreadable, reader, out)?;
            if reader == Reader::Person {
                let name = visible::line(draw::place_name(&unreadable.name));
                out.print(&format!("{name}: 1 error, 0 warnings\n"))?;
            }
            return Ok((Exit::Refused, registry));
        }
    };
    let (checked, registry) = beside::look(&input, registry);
    match reader {
        Reader::Person => {
            tell_people(&input, &checked.diagnostics, out)?;
            let name = visible::line(draw::place_name(&input.name));
            out.print(&format!("{name}: {}\n", summary(&checked)))?;
        }
        Reader::Program => {
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
