//! The arguments of `audit`.

use super::run::{CommandTarget, Data, Name, WriteData};
use clap::{Args, Subcommand};
use sluice_core::evidence::audit::CATEGORIES;
use sluice_core::evidence::key::PublicKey;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Verify everything against its hashes and seals, and report what is broken
    #[command(after_help = "The store is only read. With `--packet`, only the packets are \
        verified.\n\nExit code: 0 when nothing is wrong, 1 when something is.\n\n\
        Example:\n  sluice audit verify --seal /mnt/witness/seals.txt")]
    Verify(Verify),
    /// Write a run's packet: its events and their proof, for verification without Sluice
    #[command(after_help = "Example:\n  sluice audit export --run run_0198c7d2 --out run.packet")]
    Export(Export),
    /// Show audit entries and events of runs
    #[command(after_help = "Example:\n  sluice audit tail --follow --category governance")]
    Tail(Tail),
    /// Seal everything, and print the newest seal, to be stored on another machine
    #[command(after_help = "Example:\n  sluice audit seal --out /mnt/witness/seals.txt")]
    Seal(Seal),
    /// Authenticate a store with its current key after the loss of `seal.key`
    #[command(
        after_help = "Everything is verified against its hashes and seals first; what does not match \
        stays unreadable. Any other change that was made without the key is trusted from then on, \
        so review the registry. The audit log records the command.\n\nExample:\n  \
        sluice audit adopt --data /var/lib/sluice"
    )]
    Adopt(Adopt),
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Require the seals in this file, and no other seal of the same number. The seal file of another organisation NAME is FILE.NAME
    #[arg(long, value_name = "FILE")]
    pub(crate) seal: Vec<PathBuf>,
    /// Trust this public key [default: the keys of `--seal`, else those of the data directory]
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) key: Vec<PublicKey>,
    /// Verify this run only
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Verify this packet instead of a store
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "data"])]
    pub(crate) packet: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Select a run by its id or a unique prefix of it
    #[arg(long, value_name = "RUN")]
    pub(crate) run: String,
    /// Write the packet to this file [default: RUN.packet]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// Print new entries until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
    /// Show only this category; repeatable
    #[arg(long, value_name = "CATEGORY", value_parser = CATEGORIES)]
    pub(crate) category: Vec<String>,
    /// Begin with the newest N entries, at most 500
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    #[command(flatten)]
    pub(crate) target: CommandTarget,
}

#[derive(Debug, Args)]
pub(crate) struct Seal {
    /// Append the seal to this file
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
    PublicKey::parse(text).ok_or_else(|| "a public key has 64 hexadecimal digits".to_owned())
}
