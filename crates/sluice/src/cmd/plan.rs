//! `sluice plan`: what a document becomes.

mod arrows;
mod dot;
pub(super) mod mermaid;
mod picture;
mod text;

use super::{registry, tell_people, tell_unreadable};
use crate::Exit;
use crate::beside;
use crate::cli::{self, Reader, Shape};
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::Report;
use serde::Serialize;
use sluice_core::plan::Plan;

pub(super) fn run(args: &cli::Plan, out: &mut Out) -> anyhow::Result<Exit> {
    let shape = args.shape();
    let reader = if shape == Shape::Json { Reader::Program } else { Reader::Person };
    let Some(registry) = registry(&args.registry, reader, out)? else {
        return Ok(Exit::Refused);
    };
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            tell_unreadable(&unreadable, reader, out)?;
            return Ok(Exit::Refused);
        }
    };
    let (checked, _) = beside::look(&input, registry);
    let Some(plan) = checked.plan else {
        match reader {
            Reader::Person => tell_people(&input, &checked.diagnostics, out)?,
            Reader::Program => {
                out.json(Layout::Line, &Report::new(&input.name, &checked.diagnostics))?;
            }
        }
        return Ok(Exit::Refused);
    };
    tell_people(&input, &checked.diagnostics, out)?;
    match shape {
        Shape::Text => out.print(&text::draw(&plan))?,
        Shape::Mermaid => out.print(&mermaid::draw(&plan))?,
        Shape::Dot => out.print(&dot::draw(&plan))?,
        Shape::Json => out.json(Layout::Pretty, &Whole::of(&plan))?,
    }
    Ok(Exit::Done)
}

/// The plan and what follows from it, for programs.
#[derive(Serialize)]
struct Whole<'p> {
    hash: String,
    waves: Vec<Vec<&'p str>>,
    plan: &'p Plan,
}

impl Whole<'_> {
    fn of(plan: &Plan) -> Whole<'_> {
        let ids = |wave: &Vec<u32>| wave.iter().map(|at| id(plan, *at)).collect();
        Whole { hash: plan.hash(), waves: plan.graph.layers().iter().map(ids).collect(), plan }
    }
}

/// The id of the step at a position.
fn id(plan: &Plan, position: u32) -> &str {
    &plan.steps[position as usize].id
}
