//! Runs the commands.

mod agents;
mod apply;
mod approvals;
mod audit;
mod backup;
mod bridge;
mod budgets;
mod completions;
mod config;
mod cost;
mod doctor;
mod eval;
mod flow;
mod gateways;
mod lenses;
mod listen;
mod local_worker;
mod mcp;
mod migrate;
mod organisations;
mod plan;
mod policies;
mod resume;
mod rows;
mod run;
mod run_commands;
mod run_host;
mod runs;
mod schedules;
mod schema;
mod serve;
mod tokens;
pub(crate) mod tools;
mod validate;
mod workflows;

use crate::Exit;
use crate::cli::{self, Command, OutputFormat};
use crate::draw;
use crate::input;
use crate::local;
use crate::out::{Layout, Out};
use crate::problem::{Report, Unreadable};
use sluice_core::diagnostic::Diagnostic;
use sluice_core::doc::Registry;
use sluice_govern::registry::Kind;
use sluice_server::refused::Refused;
use sluice_server::service::document::Input;

pub(crate) fn run(command: &Command, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Command::Validate(args) => local::wait(validate::run(args, out)),
        Command::Plan(args) => local::wait(plan::run(args, out)),
        Command::Schema(args) => schema::run(args, out),
        Command::Eval(args) => eval::run(args, out),
        Command::Serve(args) => local::wait(serve::run(args, out)),
        Command::Bridge(args) => local::wait(bridge::run(args, out)),
        Command::Mcp(args) => local::wait(mcp::run(args, out)),
        Command::Tokens(command) => local::wait(tokens::run(command, out)),
        Command::Organisations(command) => local::wait(organisations::run(command, out)),
        Command::Run(args) => local::wait(run::run(args, out)),
        Command::Resume(args) => local::wait(resume::run(args, out)),
        Command::Runs(command) => local::wait(runs::run(command, out)),
        Command::Approvals(command) => local::wait(approvals::run(command, out)),
        Command::Audit(command) => local::wait(audit::run(command, out)),
        Command::Apply(args) => local::wait(apply::run(args, out)),
        Command::Agents(command) => local::wait(agents::run(command, out)),
        Command::Gateways(command) => local::wait(gateways::run(command, out)),
        Command::Roles(command) => local::wait(rows::run(Kind::Role, command, out)),
        Command::Deployments(command) => local::wait(rows::run(Kind::Deployment, command, out)),
        Command::Budgets(command) => local::wait(budgets::run(command, out)),
        Command::Cost(args) => local::wait(cost::run(args, out)),
        Command::Prices(command) => local::wait(rows::run(Kind::Price, command, out)),
        Command::Notes(command) => local::wait(rows::run(Kind::Note, command, out)),
        Command::Memories(command) => local::wait(rows::run(Kind::Memory, command, out)),
        Command::Instructions(command) => local::wait(rows::run(Kind::Instruction, command, out)),
        Command::Policies(command) => local::wait(policies::run(command, out)),
        Command::Workflows(command) => local::wait(workflows::run(command, out)),
        Command::Lenses(command) => local::wait(lenses::run(command, out)),
        Command::Teams(command) => local::wait(rows::run(Kind::Team, command, out)),
        Command::Schedules(command) => local::wait(schedules::run(command, out)),
        Command::Webhooks(command) => local::wait(rows::run(Kind::Webhook, command, out)),
        Command::Hooks(command) => local::wait(rows::run(Kind::Hook, command, out)),
        Command::Tools(command) => local::wait(tools::run(command, out)),
        Command::Doctor(args) => local::wait(doctor::run(args, out)),
        Command::Backup(args) => backup::run(args, out),
        Command::Migrate(args) => migrate::run(args, out),
        Command::Config(command) => config::run(command, out),
        Command::Completions(args) => completions::run(args, out),
    }
}

/// Runs a command whose settings are invalid: only `doctor` reports them itself.
pub(crate) fn without_settings(
    command: &Command,
    refused: Refused,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    match command {
        Command::Doctor(args) => doctor::without_settings(args, &refused, out),
        _ => Err(refused.into()),
    }
}

/// Reads the file of `--registry`; an empty registry without one; none if the file is refused,
/// which is reported.
fn registry(
    args: &cli::Registry,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<Option<Registry>> {
    let Some(name) = &args.file else { return Ok(Some(Registry::default())) };
    let input = match input::read(name) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, output, out)?;
            return Ok(None);
        }
    };
    let (registry, diagnostics) = match input.text() {
        Ok(text) => Registry::parse(text),
        Err(diagnostics) => (None, diagnostics),
    };
    match output {
        OutputFormat::Text => print_diagnostics(&input, &diagnostics, out)?,
        OutputFormat::Json if registry.is_none() => {
            out.json(Layout::Line, &Report::new(&input.name, &diagnostics))?;
        }
        OutputFormat::Json => {}
    }
    Ok(registry)
}

fn print_unreadable(file: &Unreadable, output: OutputFormat, out: &mut Out) -> anyhow::Result<()> {
    match output {
        OutputFormat::Text => out.note(&format!("{}\n", draw::unreadable(file))),
        OutputFormat::Json => out.json(Layout::Line, &Report::unreadable(file)),
    }
}

pub(crate) fn print_diagnostics(
    input: &Input,
    diagnostics: &[Diagnostic],
    out: &mut Out,
) -> anyhow::Result<()> {
    let text = input.lossy();
    for problem in diagnostics {
        out.note(&format!("{}\n", draw::diagnostic(&input.name, &text, problem)))?;
    }
    Ok(())
}

pub(crate) fn print_report(
    input: &Input,
    diagnostics: &[Diagnostic],
    out: &mut Out,
) -> anyhow::Result<()> {
    out.json(Layout::Line, &Report::new(&input.name, diagnostics))
}

/// `1 step`, `2 steps`.
fn count(number: usize, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}
