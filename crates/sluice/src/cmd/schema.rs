//! `sluice schema`: the JSON Schema of a document format, the OpenAPI description of the server,
//! or what a policy may refer to.

use super::{print_diagnostics, tools};
use crate::Exit;
use crate::backend;
use crate::cli::{self, OutputFormat, Schema};
use crate::input;
use crate::out::{Layout, Out};
use crate::referenced_documents;
use crate::refused::unreadable;
use serde_json::{Value, json};
use sluice_core::doc::Format;
use sluice_core::doc::Registry;
use sluice_core::doc::setup::Setup;
use sluice_core::outputs::schema::FieldType;
use sluice_core::plan::Plan;
use sluice_govern::policy::reference;
use sluice_server::api;
use sluice_server::refused::{BAD_REQUEST, Refused};
use sluice_server::service::tools::unknown;

pub(super) fn run(args: &Schema, out: &mut Out) -> anyhow::Result<Exit> {
    if args.format == cli::SchemaFormat::Policies {
        return policies(args, out);
    }
    if args.tool.is_some() || args.workflow.is_some() {
        let message = "`--tool` and `--workflow` are for `policies`";
        let remedy = "write `sluice schema policies --tool TOOL`";
        return Err(Refused::new(BAD_REQUEST, message, remedy).into());
    }
    let schema = match args.format {
        cli::SchemaFormat::Policies => unreachable!("policies have no JSON Schema"),
        cli::SchemaFormat::Lobsterx => Format::Lobsterx.json_schema(),
        cli::SchemaFormat::Lens => Format::Lens.json_schema(),
        cli::SchemaFormat::Setup => Setup::json_schema(),
        cli::SchemaFormat::Openapi => api::openapi::document(&api::routes()),
    };
    let layout = match args.json.output() {
        OutputFormat::Text => Layout::Pretty,
        OutputFormat::Json => Layout::Line,
    };
    out.json(layout, &schema)?;
    Ok(Exit::Done)
}

/// The arguments and the inputs of steps that have tags in `context.call`, as comments.
fn values_of(plan: &Plan) -> String {
    let mut text = format!("// Workflow::{}: start_run\n", Value::from(plan.name.as_str()));
    let tag = |name: &str, kind: Option<FieldType>| {
        let kind = kind.map_or("any type", FieldType::as_str);
        format!("//   context.call.getTag({}): {kind}\n", Value::from(name))
    };
    for (name, arg) in &plan.args {
        text.push_str(&tag(name, arg.kind));
    }
    for step in plan.steps.iter().filter(|step| !step.inputs.is_empty()) {
        let id = Value::from(step.id.as_str());
        text.push_str(&format!("// context.step.id == {id}: dispatch_step\n"));
        for (name, input) in &step.inputs {
            text.push_str(&tag(name, input.schema.as_ref().and_then(|schema| schema.kind)));
        }
    }
    text + "//\n"
}

/// Prints the names that a policy may use, and the Cedar schema.
fn policies(args: &Schema, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`schema policies`")?;
    let catalog = tools::catalog(&args.data)?;
    let Some(mut text) = reference(&catalog, args.tool.as_deref()) else {
        return Err(unknown(args.tool.as_deref().unwrap_or_default()).into());
    };
    if let Some(file) = &args.workflow {
        let input = input::read(file).map_err(|file| unreadable(&file))?;
        let (checked, _) = referenced_documents::check_one(&input, Registry::default());
        let Some(plan) = checked.plan else {
            print_diagnostics(&input, &checked.diagnostics, out)?;
            return Ok(Exit::Refused);
        };
        text.insert_str(0, &values_of(&plan));
    }
    match args.json.output() {
        OutputFormat::Text => out.print(&text)?,
        OutputFormat::Json => out.json(Layout::Line, &json!({"schema": text}))?,
    }
    Ok(Exit::Done)
}
