//! Any bytes as messages of the Model Context Protocol: what a tool server says to us, and
//! what an agent says to our server.

#![no_main]

use fuzz::wire::{Pieces, Scripted};
use fuzz::{CANARY, KEY, block_on, replaced, server, set_secrets, split_line, with_key};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sluice_bridge::limits::{MCP_DESCRIPTION_BYTES_MAX, TOOL_TEXT_BYTES_MAX};
use sluice_bridge::mcp::McpServer;
use sluice_bridge::mcp::http::Address;
use sluice_bridge::secret::keyring::NamedSecret;
use sluice_bridge::tools::{Structured, Tool, ToolAnswer, ToolServer as _, ToolTrouble};
use sluice_bridge::wire::Place;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    set_secrets();
    let (side, said) = split_line(bytes);
    if side == "agent" {
        agent_says(said);
    } else {
        tool_server_says(&with_key(said));
    }
});

/// A message to our own server.
fn agent_says(said: &[u8]) {
    server::with(|server| {
        let said = replaced(said, "RUN", &server.waiting);
        let accept: (&str, &[u8]) = ("accept", b"application/json, text/event-stream");
        let Some(answer) = server.ask("POST", "/mcp", &[accept], &said) else { return };
        assert!(answer.status != 500, "{answer:?}");
        assert!(!answer.body.contains(CANARY), "{answer:?}");
    });
}

/// Answers of a tool server: to the greeting, to the list, to a call.
fn tool_server_says(said: &[u8]) {
    let whole = asked(said, Pieces::Whole);
    let seed =
        said.iter().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    assert_eq!(whole, asked(said, Pieces::Cut(seed)), "how answers are cut changes nothing");
    let (listed, called) = whole;
    for tool in listed.iter().flat_map(|tools| tools.iter()) {
        assert!(tool.name.starts_with("box."), "a tool has its server's name before it");
        assert!(tool.description.len() <= MCP_DESCRIPTION_BYTES_MAX);
        assert!(tool.input_schema.is_object());
    }
    if let Ok((answer, _)) = &called {
        // A note says that the rest was left out.
        assert!(answer.text.len() <= TOOL_TEXT_BYTES_MAX + 100);
    }
    let told = format!("{listed:?} {called:?}");
    assert!(!told.contains(KEY), "the key stays inside");
}

type Asked = (Result<Arc<[Tool]>, ToolTrouble>, Result<(ToolAnswer, Structured), ToolTrouble>);

fn asked(said: &[u8], pieces: Pieces) -> Asked {
    let address = Address {
        url: "https://tools.example/mcp".to_owned(),
        key: Some(NamedSecret::of_operator("env:FUZZ_KEY".parse().expect("a reference"))),
        wire: Arc::new(Scripted::new(said, pieces)),
    };
    let server = McpServer::over("box", address);
    block_on(async {
        let listed = server.tools().await;
        let place = Place { step: "step", dispatch_no: 1, number: 1 };
        let called = server.call_whole("box.read", &json!({"key": "a"}), place).await;
        (listed, called)
    })
}
