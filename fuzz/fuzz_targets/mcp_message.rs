//! Any bytes as messages of the Model Context Protocol: from a tool server to the client, and
//! from an agent to the server.

#![no_main]

use fuzz::wire::{Pieces, Scripted};
use fuzz::{CANARY, KEY, block_on, replaced, server, set_secrets, split_line, with_key};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sluice_bridge::limits::{MCP_DESCRIPTION_BYTES_MAX, TOOL_TEXT_BYTES_MAX};
use sluice_bridge::mcp::McpServer;
use sluice_bridge::mcp::http::McpEndpoint;
use sluice_bridge::secret::keyring::NamedSecret;
use sluice_bridge::tools::{Structured, Tool, ToolAnswer, ToolServer as _, ToolServerError};
use sluice_bridge::wire::RequestIndex;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    set_secrets();
    let (side, messages) = split_line(bytes);
    if side == "agent" {
        check_agent_message(messages);
    } else {
        check_tool_server(&with_key(messages));
    }
});

/// A message to Sluice's own MCP server.
fn check_agent_message(messages: &[u8]) {
    server::with(|server| {
        let messages = replaced(messages, "RUN", &server.waiting);
        let accept: (&str, &[u8]) = ("accept", b"application/json, text/event-stream");
        let Some(answer) = server.send("POST", "/mcp", &[accept], &messages) else { return };
        assert!(answer.status != 500, "{answer:?}");
        assert!(!answer.body.contains(CANARY), "{answer:?}");
    });
}

/// Responses of a tool server: to `initialize`, to the list, to a call.
fn check_tool_server(messages: &[u8]) {
    let whole = list_and_call(messages, Pieces::Whole);
    let seed = messages
        .iter()
        .fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    assert_eq!(
        whole,
        list_and_call(messages, Pieces::Cut(seed)),
        "how answers are cut changes nothing"
    );
    let (listed, called) = whole;
    for tool in listed.iter().flat_map(|tools| tools.iter()) {
        assert!(tool.name.starts_with("box."), "a tool has its server's name before it");
        assert!(tool.description.len() <= MCP_DESCRIPTION_BYTES_MAX);
        assert!(tool.input_schema.is_object());
    }
    if let Ok((answer, _)) = &called {
        // Truncated text ends with a note.
        assert!(answer.text.len() <= TOOL_TEXT_BYTES_MAX + 100);
    }
    let shown = format!("{listed:?} {called:?}");
    assert!(!shown.contains(KEY), "the key stays inside");
}

type ListAndCall =
    (Result<Arc<[Tool]>, ToolServerError>, Result<(ToolAnswer, Structured), ToolServerError>);

fn list_and_call(messages: &[u8], pieces: Pieces) -> ListAndCall {
    let endpoint = McpEndpoint {
        url: "https://tools.example/mcp".to_owned(),
        key: Some(NamedSecret::of_operator("env:FUZZ_KEY".parse().expect("a reference"))),
        wire: Arc::new(Scripted::new(messages, pieces)),
    };
    let server = McpServer::with_endpoint("box", endpoint);
    block_on(async {
        let listed = server.tools().await;
        let index = RequestIndex { step: "step", dispatch_no: 1, number: 1 };
        let called = server.call("box.read", &json!({"key": "a"}), index).await;
        (listed, called)
    })
}
