//! The benchmarks. Each prints its figures for people and, last, one JSON object.
//!
//! Machines are noisy, so every figure that matters is a ratio of two things
//! measured in turn in the same run, and the best of several rounds counts.

mod adapter;
mod chain;
mod cluster;
mod documents;
mod fanout;
mod flat;
mod gates;
mod governed;
mod ground;
mod history;
mod http;
mod limit;
mod parked;
mod recover;

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
    /// Many runs of a chain of steps that do nothing.
    Chain(chain::Options),
    /// The same under full governance, beside two that ask nobody.
    Governed(governed::Options),
    /// One decision: ten gates, policies, caps.
    Gates(gates::Options),
    /// One step, many at once, one that waits for all.
    Fanout(fanout::Options),
    /// Runs that wait for people.
    Parked(parked::Options),
    /// Runs in flight when a process is killed.
    Recover(recover::Options),
    /// A run that grows to many events.
    History(history::Options),
    /// The server over loopback.
    Http(http::Options),
    /// What an adapter adds to a request, and a bridge with many streams.
    Adapter(adapter::Options),
    /// Nodes on one database while things go wrong.
    Cluster(cluster::Options),
    /// New runs beside many finished ones.
    Flat(flat::Options),
}

fn main() -> anyhow::Result<()> {
    let what = Bench::parse().what;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(async {
        match &what {
            What::Documents(options) => documents::run(options),
            What::Chain(options) => chain::run(options).await,
            What::Governed(options) => governed::run(options).await,
            What::Gates(options) => gates::run(options),
            What::Fanout(options) => fanout::run(options).await,
            What::Parked(options) => parked::run(options).await,
            What::Recover(options) => recover::run(options).await,
            What::History(options) => history::run(options).await,
            What::Http(options) => http::run(options).await,
            What::Adapter(options) => adapter::run(options).await,
            What::Cluster(options) => cluster::run(options).await,
            What::Flat(options) => flat::run(options).await,
        }
    })?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}
