//! Any bytes as what a provider of models answers, in any pieces: an answer or an error,
//! the same however the stream is cut, and without the key.

#![no_main]

use fuzz::call::{Heard, request};
use fuzz::wire::{Pieces, Scripted};
use fuzz::{KEY, block_on, set_secrets, split_line, with_key};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sluice_bridge::directory::{Connection, Kit};
use sluice_bridge::secret::keyring::{Keyring, NamedSecret};
use sluice_bridge::tools::{Tool, ToolAnswer, ToolServer, ToolTrouble};
use sluice_bridge::wire::Place;
use sluice_core::port::Later;
use sluice_core::port::adapter::{Answer, Execution, OutputStrategy};
use std::collections::BTreeMap;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    set_secrets();
    // The first line is a dialect and what is asked for, such as `anthropic json`.
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
    let whole = played(provider, strategy, &answers, Pieces::Whole);
    let seed = answers
        .iter()
        .fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let cut = played(provider, strategy, &answers, Pieces::Cut(seed));
    assert_eq!(whole, cut, "how a stream is cut changes nothing");
    let told = format!("{whole:?}");
    assert!(!told.contains(KEY), "the key stays inside");
});

/// What is answered, and what was told on the way.
fn played(
    provider: &str,
    strategy: OutputStrategy,
    answers: &[u8],
    pieces: Pieces,
) -> (Answer, (String, Vec<String>)) {
    let tools: Arc<dyn ToolServer> = Arc::new(Drawer);
    let kit = Kit {
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
    let adapter = kit.adapter("models", &connection).expect("a provider of models");
    let heard = Heard::default();
    let asked = request(strategy);
    match block_on(adapter.execute(&asked, &heard)) {
        Execution::Done(answer) => (*answer, heard.told()),
        Execution::Accepted => panic!("a model answers at once"),
    }
}

/// A server with one tool.
#[derive(Debug)]
struct Drawer;

impl ToolServer for Drawer {
    fn name(&self) -> &str {
        "box"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolTrouble>> {
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
        _: Place<'a>,
    ) -> Later<'a, Result<ToolAnswer, ToolTrouble>> {
        let answer = ToolAnswer { text: input.to_string(), ..ToolAnswer::default() };
        Box::pin(std::future::ready(Ok(answer)))
    }
}
