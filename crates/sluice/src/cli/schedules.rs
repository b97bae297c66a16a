//! The arguments of `schedules` and `lenses`.

use super::Json;
use super::rows::{ChangeRow, RemoveRow, RowArg, RowsList, RowsShow, SetRow};
use super::run::{CommandTarget, Name, WriteData};
use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum Schedules {
    /// List all schedules, with their next slots
    #[command(after_help = "Example:\n  sluice schedules list")]
    List(RowsList),
    /// Show a schedule, and the outcomes of its last slots
    #[command(after_help = "Example:\n  sluice schedules show nightly")]
    Show(RowsShow),
    /// Create a schedule, or change its fields
    #[command(after_help = "Example:\n  sluice schedules set nightly workflow=credit-check \
        cron='30 2 * * *' time_zone=Europe/Berlin")]
    Set(SetRow),
    /// Remove a schedule; its runs and slots stay
    #[command(after_help = "Example:\n  sluice schedules remove nightly")]
    Remove(RemoveRow),
    /// Enable a schedule, from its next slot on
    #[command(after_help = "Example:\n  sluice schedules enable nightly")]
    Enable(ChangeRow),
    /// Disable a schedule: it starts no run
    #[command(after_help = "Example:\n  sluice schedules disable nightly")]
    Disable(ChangeRow),
    /// Show the next slots of a schedule
    #[command(after_help = "Example:\n  sluice schedules slots nightly --next 10")]
    Slots(Slots),
    /// Start due runs, and execute them in this process
    #[command(after_help = "Ends after `--for` or an interrupt, once the runs it started \
        have ended or wait for an approval.\n\nExample:\n  \
        sluice schedules tick --for 10m --agent shell")]
    Tick(Tick),
}

#[derive(Debug, Args)]
pub(crate) struct Slots {
    #[command(flatten)]
    pub(crate) row: RowArg,
    /// Show N slots
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) next: u16,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Tick {
    /// Run for this long; `0s` checks once [default: until interrupted]
    #[arg(long = "for", value_name = "DURATION", value_parser = span)]
    pub(crate) for_ms: Option<u64>,
    /// Use this agent for steps that name neither an agent nor a bound role [env: SLUICE_AGENT]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Let a mock script answer for every agent and gateway; no provider is called
    #[arg(long, value_name = "FILE")]
    pub(crate) mock: Option<OsString>,
    /// Use the policies in this file or directory instead of the registered ones
    #[arg(long, value_name = "PATH")]
    pub(crate) policies: Vec<OsString>,
    /// Moderate steps with `moderation` by this word list or URL [env: SLUICE_MODERATION]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) moderation: Option<OsString>,
    #[command(flatten)]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lenses {
    /// List all lenses, with their heads
    #[command(after_help = "Example:\n  sluice lenses list")]
    List(RowsList),
    /// Show a lens, with all its versions
    #[command(after_help = "Example:\n  sluice lenses show summarise")]
    Show(RowsShow),
}

/// A duration that may be zero.
fn span(text: &str) -> Result<u64, String> {
    if matches!(text, "0" | "0s") {
        return Ok(0);
    }
    sluice_core::duration::parse(text).map_err(|fault| fault.message)
}
