//! The words of `audit`.

use super::Json;
use super::run::{Data, Name, WriteData};
use clap::{Args, Subcommand};
use sluice_core::evidence::audit::CATEGORIES;
use sluice_core::evidence::key::PublicKey;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check everything against its hashes and seals, and name what is broken
    #[command(
        after_help = "Nothing is written, and nothing is asked of anybody. With `--packet`, the \
        packets alone are checked.\n\nExit code: 0 when nothing is wrong, 1 when something is.\n\n\
        Example:\n  sluice audit verify --seal /mnt/witness/seals.txt"
    )]
    Verify(Verify),
    /// Write a run's packet: its events and what proves them, for somebody who has nothing else
    #[command(after_help = "Example:\n  sluice audit export --run run_0198c7d2 --out run.packet")]
    Export(Export),
    /// Show what happened: entries of the audit, and facts of runs
    #[command(after_help = "Example:\n  sluice audit tail --follow --category governance")]
    Tail(Tail),
    /// Seal what is not sealed yet, and show the newest seal, to be kept elsewhere
    #[command(after_help = "Example:\n  sluice audit seal --out /mnt/witness/seals.txt")]
    Seal(Seal),
    /// Authenticate a store with the key there is, where the `seal.key` it had is lost
    #[command(
        after_help = "Everything is checked against its hashes and seals first; what does not fit \
        stays unreadable. Whatever else was changed in the store while there was no key is \
        believed from then on, so look at its rows. The audit says that it was done.\n\nExample:\n  \
        sluice audit adopt --data /var/lib/sluice"
    )]
    Adopt(Adopt),
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A file with seals that were kept: the store must have them, and only one of each number. The seal file of another organisation NAME is FILE.NAME
    #[arg(long, value_name = "FILE")]
    pub(crate) seal: Vec<PathBuf>,
    /// A public key to believe; without one, those of kept seals, else the directory's own
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) key: Vec<PublicKey>,
    /// Check one run only
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Check a packet instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "data"])]
    pub(crate) packet: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The run; a unique beginning of its id is enough
    #[arg(long, value_name = "RUN")]
    pub(crate) run: String,
    /// Where to write it; by default RUN.packet in this directory
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// Go on as things happen, until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
    /// Only this category; several may be named
    #[arg(long, value_name = "CATEGORY", value_parser = CATEGORIES)]
    pub(crate) category: Vec<String>,
    /// How many to begin with
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Seal {
    /// Add it to this file, as a line
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: WriteData,
}

#[derive(Debug, Args)]
pub(crate) struct Adopt {
    #[command(flatten)]
    pub(crate) data: WriteData,
    #[command(flatten)]
    pub(crate) name: Name,
}

fn key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text).ok_or_else(|| "a key is 64 hexadecimal digits".to_owned())
}
