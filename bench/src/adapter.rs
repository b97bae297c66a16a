//! Overhead of an adapter compared with its HTTP request, and memory of a bridge with
//! many concurrent streams.
//!
//! Providers are sockets of this process that answer at once, or slowly. The bare client
//! is the HTTP library alone: it sends the same request and reads the answer without
//! parsing it. A plain socket without a library is measured as well.

mod bridge;
mod provider;

use crate::fixture::brief;
use anyhow::Context as _;
use clap::Args;
use provider::Provider;
use serde_json::{Value, json};
use sluice_bridge::directory::{AdapterContext, Connection};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::id::RunId;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Call, Closed, Emission, Execution, OutputStrategy, Request, ToolUse, ToolVerdict,
};
use sluice_govern::decision::Constraints;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Calls of each kind in all
    #[arg(long, default_value_t = 3000)]
    calls: usize,
    /// Rounds in which the compared clients alternate
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Concurrent streams in one bridge
    #[arg(long, default_value_t = 1000)]
    streams: usize,
    /// Run as the bridge: directory, provider and callback server
    #[arg(long, hide = true, num_args = 3)]
    be: Option<Vec<String>>,
}

/// A call that accepts all emissions and reports nothing.
pub(super) struct Quiet;

impl Call for Quiet {
    fn emit(&self, _: Emission) -> Later<'_, Result<(), Closed>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn tool(&self, _: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        Box::pin(std::future::ready(Err(Closed)))
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A typical model request.
pub(super) fn request() -> Request {
    Request {
        run: RunId(1),
        step: "a".to_owned(),
        workflow: "bench".to_owned(),
        gateway: "here".to_owned(),
        attempt: 1,
        dispatch_no: 1,
        idempotency_key: "key".to_owned(),
        session: None,
        agent: "model".to_owned(),
        system_prompt: Some("Be brief.".to_owned()),
        message: "Say something about sluices.".to_owned(),
        stdin: None,
        env: Vec::new(),
        cwd: None,
        model: Some("m".to_owned()),
        tools: Vec::new(),
        output_schema: None,
        output_strategy: OutputStrategy::Text,
        max_output_tokens: Some(1000),
        price: None,
        ceiling: None,
        timeout_ms: 60_000,
        constraints: Constraints::default(),
        action_digest: String::new(),
        trace: None,
    }
}

/// An adapter for a provider in this process.
pub(super) fn adapter(provider: &str, at: SocketAddr) -> anyhow::Result<Arc<dyn Adapter>> {
    let allow = AllowList::parse([at.to_string().as_str()])?;
    let kit = AdapterContext {
        wire: Arc::new(Outbound::new(allow)),
        tool_servers: BTreeMap::new(),
        secrets: Keyring::default(),
        callbacks: None,
    };
    let connection = Connection {
        provider: provider.to_owned(),
        base_url: Some(format!("http://{at}/v1")),
        ..Connection::default()
    };
    kit.adapter("here", &connection).context("there is no such provider")
}

/// One provider: calls through the adapter, and the same request without it.
async fn overhead(options: &Options, provider: &str) -> anyhow::Result<Value> {
    let at = Provider::instant(provider).await?;
    let adapter = adapter(provider, at.address)?;
    let (request, quiet) = (request(), Quiet);
    let per_round = options.calls.div_ceil(options.rounds);
    let mut socket = provider::BareClient::new(at.address)?;
    // The first call installs the TLS library, so the adapter must come first.
    adapter.execute(&request, &quiet).await;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let [mut ours, mut bare, mut raw] = [Duration::ZERO; 3];
    for round in 0..=options.rounds {
        let begun = Instant::now();
        for _ in 0..per_round {
            let Execution::Done(answer) = adapter.execute(&request, &quiet).await else {
                anyhow::bail!("the answer was to come at once");
            };
            anyhow::ensure!(answer.error.is_none(), "{:?}", answer.error);
            anyhow::ensure!(answer.text.as_deref() == Some(provider::TEXT), "{:?}", answer.text);
        }
        let own = begun.elapsed();
        let sent = at.last_request();
        let begun = Instant::now();
        for _ in 0..per_round {
            provider::send(&client, at.address, &sent).await?;
        }
        let theirs = begun.elapsed();
        let begun = Instant::now();
        for _ in 0..per_round {
            socket.send(&sent).await?;
        }
        // The first round only opens connections and warms up.
        if round > 0 {
            ours += own;
            bare += theirs;
            raw += begun.elapsed();
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let calls = (per_round * options.rounds) as f64;
    let each = |took: Duration| took.as_secs_f64() * 1e6 / calls;
    Ok(json!({
        "adapter_us": brief(each(ours)),
        "bare_us": brief(each(bare)),
        "overhead_us": brief(each(ours) - each(bare)),
        "socket_us": brief(each(raw)),
    }))
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    if let Some(be) = &options.be {
        return bridge::be(be).await;
    }
    let mut figures = json!({"bench": "adapter"});
    for provider in ["openai", "anthropic", "google"] {
        figures[provider] = overhead(options, provider).await?;
    }
    figures["bridge"] = bridge::run(options.streams).await?;
    Ok(figures)
}
