//! The words that all rows of the registry share.

use super::Json;
use super::run::{Data, Name, WriteData, pair};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Rows {
    /// List them all
    List(List),
    /// Show one
    Show(Show),
    /// Make one, or change fields of it
    Set(Set),
    /// Remove one that nothing needs any more
    Remove(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) row: Named,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) row: Named,
    /// A field and its value, as a setup writes them; `rate.limit=5` goes into a map, `model=` takes a field away
    #[arg(value_name = "FIELD=VALUE", required = true, value_parser = pair)]
    pub(crate) fields: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    pub(crate) row: Named,
    #[command(flatten)]
    pub(crate) by: By,
}

/// A command about one row, and nothing more.
#[derive(Debug, Args)]
pub(crate) struct One {
    #[command(flatten)]
    pub(crate) row: Named,
    #[command(flatten)]
    pub(crate) by: By,
}

/// One row.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Its name
    #[arg(id = "row", value_name = "NAME")]
    pub(crate) name: String,
}

/// Who changes rows, where, and who reads what became of it.
#[derive(Debug, Args)]
pub(crate) struct By {
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) glass: BreakGlass,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// The way of the owner of the data directory past policies.
#[derive(Debug, Args)]
pub(crate) struct BreakGlass {
    /// Make the change even where policies refuse it, for this reason; only on the data directory, and recorded in the audit
    #[arg(long = "break-glass", value_name = "REASON", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
}

/// Examples of the shared words, by noun.
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

/// Gives each of the shared words an example of its noun.
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
