//! From text to plan, compared with a bare YAML event pass over the same text.

use anyhow::{Context as _, ensure};
use clap::Args;
use granit_parser::Parser;
use serde_json::{Value, json};
use sluice_core::doc::{self, Format, Registry};
use sluice_core::expr::Expr;
use sluice_core::plan::graph::Graph;
use sluice_core::scope::names::Names;
use sluice_core::value::Membership;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Steps of the document
    #[arg(long, default_value_t = 10_000)]
    steps: usize,
    /// Rounds; the best is reported
    #[arg(long, default_value_t = 15)]
    rounds: usize,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Value> {
    let mut out = std::io::stdout();
    let text = document(options.steps);
    let (events, planned) = parse(&text, options.rounds)?;
    let ratio = planned.as_secs_f64() / events.as_secs_f64();
    writeln!(
        out,
        "document  {} steps, {} bytes: event pass {:.1} ms, checked, planned and hashed {:.1} ms, ratio {ratio:.2} (at most 2.5)",
        options.steps,
        text.len(),
        ms(events),
        ms(planned),
    )?;
    let small = layer(10_000, options.rounds)?;
    let large = layer(100_000, options.rounds)?;
    let growth = large.as_secs_f64() / small.as_secs_f64();
    writeln!(
        out,
        "layers    10,000 steps {:.2} ms, 100,000 steps {:.1} ms, growth {growth:.1} (at most 12)",
        ms(small),
        ms(large),
    )?;
    let eval = expression()?;
    writeln!(out, "expression  {eval:.0} ns an evaluation (about a microsecond)")?;
    Ok(json!({
        "steps": options.steps, "bytes": text.len(), "event_pass_ms": ms(events), "planned_ms": ms(planned),
        "ratio": ratio, "layers_10k_ms": ms(small), "layers_100k_ms": ms(large), "growth": growth, "expression_ns": eval,
    }))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A realistic document of the maximum size.
fn document(steps: usize) -> String {
    let mut text = String::from("name: large\nsteps:\n");
    for at in 0..steps {
        let before = at.saturating_sub(1);
        let _ = write!(text, "- id: s{at}\n  agent: mock\n");
        let _ = match at % 4 {
            _ if at == 0 => writeln!(text, "  command: Begin"),
            0 => writeln!(text, "  command: Go on\n  depends_on: [s{before}]"),
            1 => writeln!(text, "  command: Sum up ${{s{before}.stdout}}\n  timeout: 90s"),
            2 => writeln!(
                text,
                "  command: Rate it\n  stdin: $s{before}.stdout\n  outputs: {{risk: integer}}"
            ),
            _ => writeln!(
                text,
                "  command: Act\n  condition: s{before}.risk >= 7\n  on_failure: skip"
            ),
        };
    }
    text
}

/// Best times of the bare event pass and of the complete check, measured alternately.
fn parse(text: &str, rounds: usize) -> anyhow::Result<(Duration, Duration)> {
    let registry = Registry::default();
    let (mut events, mut planned) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        let start = Instant::now();
        for event in Parser::new_from_str(text) {
            black_box(event.context("the document is YAML")?);
        }
        events = events.min(start.elapsed());
        let start = Instant::now();
        let checked = doc::check(text.as_bytes(), Some(Format::Lobsterx), &registry);
        let plan = checked.plan.context("the document is right")?;
        black_box(plan.hash());
        planned = planned.min(start.elapsed());
        ensure!(plan.steps.len() == text.matches("- id:").count(), "every step is planned");
    }
    Ok((events, planned))
}

/// Best time to sort a graph of `count` steps, each with up to three dependencies.
fn layer(count: u32, rounds: usize) -> anyhow::Result<Duration> {
    let ids: Vec<String> = (0..count).map(|at| format!("step_{at}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let edges: Vec<(u32, u32)> = (1..count)
        .flat_map(|at| {
            [at / 2, at.saturating_sub(7), at - 1 - at % 3].map(|on| (at, on.min(at - 1)))
        })
        .collect();
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let graph = Graph::new(&ids, &edges)?;
        best = best.min(start.elapsed());
        black_box(graph.layers().len());
    }
    Ok(best)
}

/// Nanoseconds to evaluate a typical condition.
fn expression() -> anyhow::Result<f64> {
    const TIMES: u32 = 200_000;
    let expr = Expr::parse(
        "init.outputs.vendor_type == 'saas' and risk_score >= 7 and region in ['eu', 'us']",
    )?;
    let scope = Names::new()
        .with_step("init", json!({"vendor_type": "saas"}), Some("done"))
        .with_variable("risk_score", json!(8))
        .with_variable("region", json!("eu"));
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..TIMES {
            black_box(expr.holds(black_box(&scope), Membership::Tolerant)?);
        }
        best = best.min(start.elapsed());
    }
    Ok(best.as_secs_f64() * 1e9 / f64::from(TIMES))
}
