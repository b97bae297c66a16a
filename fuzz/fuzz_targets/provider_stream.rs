//! Any bytes as the response of a model provider, in any chunks: an answer or an error,
//! independent of the chunking, and without the key.

#![no_main]

use fuzz::call::{RecordingCall, request};
use fuzz::wire::{Pieces, Scripted};
use fuzz::{KEY, block_on, set_secrets, split_line, with_key};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sluice_bridge::directory::{AdapterContext, Connection};
use sluice_bridge::secret::keyring::{Keyring, NamedSecret};
use sluice_bridge::tools::{Tool, ToolAnswer, ToolServer, ToolServerError};
use sluice_bridge::wire::RequestIndex;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Answer, Execution, OutputStrategy};
use std::collections::BTreeMap;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    set_secrets();
    // The first line is a dialect and the requested output, such as `anthropic json`.
    let (line, answers) = split_line(bytes);
    let mut words = line.split(' ');
    let provider = match words.next() {
        Some("anthropic") => "anthropic",
        Some("google") => "google",
        _ => "openai",
    };
    let strategy = match words.next() {
        Some("json") => OutputStrategy::Json,
        Some("structured") => OutputStrategy::Structured,
        _ => OutputStrategy::Text,
    };
    let answers = with_key(answers);
    let whole = play(provider, strategy, &answers, Pieces::Whole);
    let seed = answers
        .iter()
        .fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let cut = play(provider, strategy, &answers, Pieces::Cut(seed));
    assert_eq!(whole, cut, "how a stream is cut changes nothing");
    let shown = format!("{whole:?}");
    assert!(!shown.contains(KEY), "the key stays inside");
});

/// The answer, and what was emitted before it.
fn play(
    provider: &str,
    strategy: OutputStrategy,
    answers: &[u8],
    pieces: Pieces,
) -> (Answer, (String, Vec<String>)) {
    let tools: Arc<dyn ToolServer> = Arc::new(OneToolServer);
    let context = AdapterContext {
        wire: Arc::new(Scripted::new(answers, pieces)),
        tool_servers: BTreeMap::from([("box".to_owned(), tools)]),
        secrets: Keyring::default(),
        callbacks: None,
    };
    let connection = Connection {
        provider: provider.to_owned(),
        key: Some(NamedSecret::of_operator("env:FUZZ_KEY".parse().expect("a reference"))),
        tool_servers: vec!["box".to_owned()],
        ..Connection::default()
    };
    let adapter = context.adapter("models", &connection).expect("a provider of models");
    let call = RecordingCall::default();
    let step_request = request(strategy);
    match block_on(adapter.execute(&step_request, &call)) {
        Execution::Done(answer) => (*answer, call.emissions()),
        Execution::Accepted => panic!("a model answers at once"),
    }
}

/// A server with one tool.
#[derive(Debug)]
struct OneToolServer;

impl ToolServer for OneToolServer {
    fn name(&self) -> &str {
        "box"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        let tool = Tool {
            name: "box.read".to_owned(),
            description: "reads".to_owned(),
            input_schema: json!({"type": "object"}),
            read_only: true,
        };
        Box::pin(std::future::ready(Ok([tool].into())))
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        input: &'a Value,
        _: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, sluice_bridge::tools::Structured), ToolServerError>> {
        let answer = ToolAnswer { text: input.to_string(), ..ToolAnswer::default() };
        Box::pin(std::future::ready(Ok((answer, None))))
    }
}
