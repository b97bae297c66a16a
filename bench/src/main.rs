//! The benchmarks. Each prints its figures for people and, last, one JSON object.
//!
//! Machines are noisy, so every figure that matters is a ratio of two things
//! measured in turn in the same run, and the best of several rounds counts.

mod documents;

use clap::{Parser, Subcommand};
use std::io::Write as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Measures the hot paths of Sluice")]
struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Documents to plans, layers and expressions.
    Documents(documents::Options),
}

fn main() -> anyhow::Result<()> {
    let figures = match Bench::parse().what {
        What::Documents(options) => documents::run(&options)?,
    };
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}
