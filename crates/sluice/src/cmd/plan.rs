//! `sluice plan`: shows the plan of a document.

mod arrows;
mod dot;
mod flow;
pub(super) mod mermaid;
mod picture;
mod text;

use super::flow::FlowSetting;
use super::{print_diagnostics, print_unreadable, registry};
use crate::Exit;
use crate::cli::{self, OutputFormat, PlanFormat};
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::Report;
use crate::referenced_documents;
use serde::Serialize;
use sluice_core::flow::FlowPicture;
use sluice_core::plan::Plan;

pub(super) async fn run(args: &cli::Plan, out: &mut Out) -> anyhow::Result<Exit> {
    let shape = args.shape();
    let output = if shape == PlanFormat::Json { OutputFormat::Json } else { OutputFormat::Text };
    let Some(registry) = registry(&args.registry, output, out)? else {
        return Ok(Exit::Refused);
    };
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, output, out)?;
            return Ok(Exit::Refused);
        }
    };
    let (checked, registry) = referenced_documents::check_one(&input, registry);
    let Some(plan) = checked.plan else {
        match output {
            OutputFormat::Text => print_diagnostics(&input, &checked.diagnostics, out)?,
            OutputFormat::Json => {
                out.json(Layout::Line, &Report::new(&input.name, &checked.diagnostics))?;
            }
        }
        return Ok(Exit::Refused);
    };
    print_diagnostics(&input, &checked.diagnostics, out)?;
    let flow = if args.flow {
        let setting = FlowSetting::load(args.rows.setup.as_ref(), &args.rows.data).await?;
        let documents = setting.documents(input, registry)?;
        Some(documents.analyse(&setting.fabric, &setting.catalog)?.picture())
    } else {
        None
    };
    let flow = flow.as_ref();
    match shape {
        PlanFormat::Text => {
            out.print(&text::draw(&plan))?;
            if let Some(flow) = flow {
                out.print(&flow::draw(flow))?;
            }
        }
        PlanFormat::Mermaid => out.print(&mermaid::draw(&plan, flow))?,
        PlanFormat::Dot => out.print(&dot::draw(&plan, flow))?,
        PlanFormat::Json => out.json(Layout::Pretty, &PlanReport::new(&plan, flow))?,
    }
    Ok(Exit::Done)
}

/// The plan with its hash and waves, as JSON.
#[derive(Serialize)]
struct PlanReport<'p> {
    hash: String,
    waves: Vec<Vec<&'p str>>,
    plan: &'p Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'p FlowPicture>,
}

impl PlanReport<'_> {
    fn new<'p>(plan: &'p Plan, flow: Option<&'p FlowPicture>) -> PlanReport<'p> {
        let ids = |wave: &Vec<u32>| wave.iter().map(|at| id(plan, *at)).collect();
        let waves = plan.graph.layers().iter().map(ids).collect();
        PlanReport { hash: plan.hash(), waves, plan, flow }
    }
}

fn id(plan: &Plan, position: u32) -> &str {
    &plan.steps[position as usize].id
}
