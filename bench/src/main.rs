//! Benchmarks. Each prints its figures for people and, last, one JSON object.
//!
//! Machines are noisy, so every figure that matters is a ratio of two measurements taken
//! alternately in the same run, and the best of several rounds is reported.

mod adapter;
mod chain;
mod cluster;
mod documents;
mod fanout;
mod fixture;
mod flat;
mod flow;
mod gates;
mod governed;
mod history;
mod http;
mod limit;
mod parked;
mod recover;
mod seen;

use clap::{Parser, Subcommand};
use std::io::Write as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Measures the hot paths of Sluice")]
struct Bench {
    #[command(subcommand)]
    what: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Parsing documents into plans, layers and expressions.
    Documents(documents::Options),
    /// Many runs of a chain of no-op steps.
    Chain(chain::Options),
    /// The same chain under full governance, compared with two that skip the gates.
    Governed(governed::Options),
    /// One decision: ten gates, policies, caps.
    Gates(gates::Options),
    /// One step, then many in parallel, then one that joins them.
    Fanout(fanout::Options),
    /// Runs that wait for approvals.
    Parked(parked::Options),
    /// Recovery of runs in flight after a process was killed.
    Recover(recover::Options),
    /// A run that grows to many events.
    History(history::Options),
    /// The server over loopback.
    Http(http::Options),
    /// Overhead of an adapter, and a bridge with many streams.
    Adapter(adapter::Options),
    /// Where the arguments of a call were seen before.
    Seen(seen::Options),
    /// The worst labels of a large document.
    Flow(flow::Options),
    /// Several nodes on one database under faults.
    Cluster(cluster::Options),
    /// New runs in a store full of finished ones.
    Flat(flat::Options),
}

fn main() -> anyhow::Result<()> {
    let what = Bench::parse().what;
    let runtime = sluice_engine::world::runtime()?;
    let figures = runtime.block_on(async {
        match &what {
            Benchmark::Documents(options) => documents::run(options),
            Benchmark::Chain(options) => chain::run(options).await,
            Benchmark::Governed(options) => governed::run(options).await,
            Benchmark::Gates(options) => gates::run(options),
            Benchmark::Fanout(options) => fanout::run(options).await,
            Benchmark::Parked(options) => parked::run(options).await,
            Benchmark::Recover(options) => recover::run(options).await,
            Benchmark::History(options) => history::run(options).await,
            Benchmark::Http(options) => http::run(options).await,
            Benchmark::Adapter(options) => adapter::run(options).await,
            Benchmark::Seen(options) => seen::run(options),
            Benchmark::Flow(options) => flow::run(options),
            Benchmark::Cluster(options) => cluster::run(options).await,
            Benchmark::Flat(options) => flat::run(options).await,
        }
    })?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}
