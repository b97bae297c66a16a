//! The arguments that all rows of the registry share.

use super::Json;
use super::run::{CommandTarget, Name, WriteData, pair};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum RowCommand {
    /// List all rows
    List(RowsList),
    /// Show a row
    Show(RowsShow),
    /// Create a row, or change its fields
    Set(SetRow),
    /// Remove a row that no other row refers to
    Remove(RemoveRow),
}

#[derive(Debug, Args)]
pub(crate) struct RowsList {
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct RowsShow {
    #[command(flatten)]
    pub(crate) row: RowArg,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct SetRow {
    #[command(flatten)]
    pub(crate) row: RowArg,
    /// Set a field as in a setup file; `rate.limit=5` sets a field of a map, `model=` removes one
    #[arg(value_name = "FIELD=VALUE", required = true, value_parser = pair)]
    pub(crate) fields: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveRow {
    #[command(flatten)]
    pub(crate) row: RowArg,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

/// A command that changes one row.
#[derive(Debug, Args)]
pub(crate) struct ChangeRow {
    #[command(flatten)]
    pub(crate) row: RowArg,
    #[command(flatten)]
    pub(crate) by: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RowArg {
    /// Select a row by its name
    #[arg(id = "row", value_name = "NAME")]
    pub(crate) name: String,
}

/// The identity of a change, its store and its output.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) glass: BreakGlass,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Lets the owner of the data directory bypass policies.
#[derive(Debug, Args)]
pub(crate) struct BreakGlass {
    /// Bypass the policies for this change; only on a data directory. The reason is recorded in the audit log
    #[arg(long = "break-glass", value_name = "REASON", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
}

/// Examples of the shared commands, by noun.
const EXAMPLES: [(&str, &str, &str); 9] = [
    ("agents", "scribe", "trust_level=6 rate.limit=10 rate.window_s=60"),
    ("gateways", "local", "environment=production min_trust_level=5"),
    ("budgets", "everything", "scope=global period=monthly amount_cents=5000"),
    ("deployments", "pay", "workflow=pay roles.writer=scribe"),
    ("roles", "writer", "max_spend_cents=50 allowed_environments=[dev]"),
    ("prices", "general", "input_cents_per_mtok=30 output_cents_per_mtok=150"),
    ("teams", "desk", "members=[{id: iris, agent: scribe}] failure_policy.mode=halt"),
    (
        "webhooks",
        "pager",
        "url=https://example.com/sluice events=[run.failed] secret=env:PAGER_SECRET",
    ),
    ("hooks", "orders", "workflow=pay secret=env:ORDERS_SECRET args.order=order.id"),
];

/// Adds an example to each of the shared commands.
pub(super) fn with_examples(command: clap::Command) -> clap::Command {
    EXAMPLES.into_iter().fold(command, |command, (noun, name, fields)| {
        command.mut_subcommand(noun, |command| {
            let with = |command: clap::Command, word: &'static str, rest: String| {
                let help = format!("Example:\n  sluice {noun} {word}{rest}");
                command.mut_subcommand(word, |command| command.after_help(help))
            };
            let command = with(command, "list", String::new());
            let command = with(command, "show", format!(" {name}"));
            let command = with(command, "set", format!(" {name} {fields}"));
            with(command, "remove", format!(" {name}"))
        })
    })
}
