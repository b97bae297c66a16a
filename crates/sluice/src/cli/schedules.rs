//! The words of `schedules` and `lenses`.

use super::Json;
use super::rows::{List, Named, One, Remove, Set, Show};
use super::run::{Data, Name, WriteData};
use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum Schedules {
    /// List them all, with the next time of each
    #[command(after_help = "Example:\n  sluice schedules list")]
    List(List),
    /// Show one, and what became of its last slots
    #[command(after_help = "Example:\n  sluice schedules show nightly")]
    Show(Show),
    /// Make one, or change fields of it
    #[command(after_help = "Example:\n  sluice schedules set nightly workflow=credit-check \
        cron='30 2 * * *' time_zone=Europe/Berlin")]
    Set(Set),
    /// Remove one; its runs and its slots stay
    #[command(after_help = "Example:\n  sluice schedules remove nightly")]
    Remove(Remove),
    /// Let it start runs again, from the next slot on
    #[command(after_help = "Example:\n  sluice schedules enable nightly")]
    Enable(One),
    /// Let it start nothing for now
    #[command(after_help = "Example:\n  sluice schedules disable nightly")]
    Disable(One),
    /// Show when its next slots are
    #[command(after_help = "Example:\n  sluice schedules slots nightly --next 10")]
    Slots(Slots),
    /// Start what is due here, and do the work of what was started
    #[command(after_help = "Ends after `--for`, or when interrupted, once the runs it started \
        have ended or wait for people.\n\nExample:\n  \
        sluice schedules tick --for 10m --agent shell")]
    Tick(Tick),
}

#[derive(Debug, Args)]
pub(crate) struct Slots {
    #[command(flatten)]
    pub(crate) row: Named,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) next: u16,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Tick {
    /// How long; without it, until interrupted. `0s` looks once
    #[arg(long = "for", value_name = "DURATION", value_parser = span)]
    pub(crate) for_ms: Option<u64>,
    /// Who does steps that name neither an agent nor a bound role
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Let a script answer for every agent and gateway: nothing is called
    #[arg(long, value_name = "FILE")]
    pub(crate) mock: Option<OsString>,
    /// Policies to run under, a file or a directory, instead of the registry's
    #[arg(long, value_name = "PATH")]
    pub(crate) policies: Vec<OsString>,
    /// Who judges what steps with `moderation` are given and say: a word list, or an address; by default what SLUICE_MODERATION says
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
    /// List them all, with their heads
    #[command(after_help = "Example:\n  sluice lenses list")]
    List(List),
    /// Show one, with all its versions
    #[command(after_help = "Example:\n  sluice lenses show summarise")]
    Show(Show),
}

/// A duration, which may be nothing.
fn span(text: &str) -> Result<u64, String> {
    if matches!(text, "0" | "0s") {
        return Ok(0);
    }
    sluice_core::duration::parse(text).map_err(|fault| fault.message)
}
