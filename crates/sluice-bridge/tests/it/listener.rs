//! A fake of the engine's `Call`, and fixtures for calls.

use serde_json::{Value, json};
use sluice_bridge::directory::{AdapterContext, Connection};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::secret::keyring::Keyring;
use sluice_bridge::tools::{Tool, ToolAnswer, ToolServer, ToolServerError};
use sluice_bridge::wire::RequestIndex;
use sluice_core::id::RunId;
use sluice_core::money::Money;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, Closed, Emission, Execution, OutputStrategy, Request, ToolUse,
    ToolVerdict,
};
use sluice_govern::account::{Tokens, bill};
use sluice_govern::registry::Price;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The dialects.
pub(crate) const PROVIDERS: [&str; 3] = ["openai", "anthropic", "google"];

/// Records emissions; can be cancelled.
#[derive(Default)]
pub(crate) struct RecordingCall {
    heard: Mutex<Vec<Emission>>,
    changed: Notify,
    cancel: Notify,
}

impl RecordingCall {
    pub(crate) fn parts(&self) -> Vec<String> {
        let heard = self.heard.lock().expect("the lock is not poisoned");
        let text =
            |one: &Emission| if let Emission::Text(text) = one { Some(text.clone()) } else { None };
        heard.iter().filter_map(text).collect()
    }

    pub(crate) fn cancel(&self) {
        self.cancel.notify_one();
    }

    pub(crate) async fn hears(&self, part: &str) {
        while !self.parts().concat().contains(part) {
            self.changed.notified().await;
        }
    }
}

impl Call for RecordingCall {
    fn emit(&self, emission: Emission) -> Later<'_, Result<(), Closed>> {
        self.heard.lock().expect("the lock is not poisoned").push(emission);
        self.changed.notify_one();
        Box::pin(std::future::ready(Ok(())))
    }

    fn tool(&self, _: ToolUse) -> Later<'_, Result<ToolVerdict, Closed>> {
        Box::pin(std::future::ready(Ok(ToolVerdict::Allowed)))
    }

    fn cancelled(&self) -> Later<'_, ()> {
        Box::pin(self.cancel.notified())
    }
}

/// A tool server with one tool that counts apples.
#[derive(Debug)]
struct AppleTools;

impl ToolServer for AppleTools {
    fn name(&self) -> &str {
        "box"
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        let read = Tool {
            name: "box.read".to_owned(),
            description: "How many there are of a thing.".to_owned(),
            input_schema: json!({"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}),
            read_only: true,
        };
        Box::pin(std::future::ready(Ok([read].into())))
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        input: &'a Value,
        _: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, sluice_bridge::tools::Structured), ToolServerError>> {
        let text = format!("42 {}", input["key"].as_str().unwrap_or("things"));
        let answer = ToolAnswer { text, ..ToolAnswer::default() };
        Box::pin(std::future::ready(Ok((answer, None))))
    }
}

/// The adapter of a provider on a local port.
pub(crate) fn adapter(provider: &str, url: &str) -> Arc<dyn Adapter> {
    let at = url.strip_prefix("http://").expect("it is a URL");
    let wire = Arc::new(Outbound::new(AllowList::parse([at]).expect("it is an address")));
    let shelf: Arc<dyn ToolServer> = Arc::new(AppleTools);
    let tool_servers = BTreeMap::from([("box".to_owned(), shelf)]);
    let kit = AdapterContext { wire, tool_servers, secrets: Keyring::default(), callbacks: None };
    let version = if provider == "openai" { "/v1" } else { "" };
    let connection = Connection {
        provider: provider.to_owned(),
        base_url: Some(format!("{url}{version}")),
        key: None,
        tool_servers: vec!["box".to_owned()],
    };
    kit.adapter("models", &connection).expect("it is a provider of models")
}

/// A request with a price: a cent for a hundred input tokens, and for ten output tokens.
pub(crate) fn request(message: &str) -> Request {
    Request {
        run: RunId(1),
        step: "step".to_owned(),
        workflow: "flow".to_owned(),
        gateway: "models".to_owned(),
        attempt: 1,
        dispatch_no: 1,
        idempotency_key: "key".to_owned(),
        session: None,
        agent: "agent".to_owned(),
        system_prompt: None,
        message: message.to_owned(),
        stdin: None,
        env: Vec::new(),
        cwd: None,
        model: Some("model-1".to_owned()),
        tools: Vec::new(),
        output_schema: None,
        output_strategy: OutputStrategy::Text,
        price: Some(price()),
        ceiling: None,
        max_output_tokens: None,
        timeout_ms: 10_000,
        constraints: sluice_govern::decision::Constraints::default(),
        action_digest: String::new(),
        trace: None,
    }
}

/// The request for an object.
pub(crate) fn person() -> Request {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}, "nick": {"type": "string"},
    }, "required": ["name", "age"]});
    Request {
        output_strategy: OutputStrategy::Structured,
        output_schema: Some(schema),
        ..request("a person")
    }
}

fn price() -> Price {
    Price {
        input_cents_per_mtok: Money::from_cents_text("10000").expect("it is an amount"),
        output_cents_per_mtok: Money::from_cents_text("100000").expect("it is an amount"),
        cached_input_cents_per_mtok: None,
        max_output_tokens: None,
    }
}

/// The cost of an answer; `None` if it is unknown.
pub(crate) fn cost(answer: &Answer) -> Option<String> {
    let usage = &answer.usage;
    assert!(usage.unpriced, "money is worked out from the price that was pinned");
    let tokens = Tokens {
        input: usage.input_tokens,
        cached: usage.cached_tokens,
        output: usage.output_tokens + usage.thinking_tokens,
    };
    (!usage.unknown).then(|| bill(&price(), tokens).to_string())
}

pub(crate) async fn answer(adapter: &dyn Adapter, request: &Request, call: &dyn Call) -> Answer {
    match adapter.execute(request, call).await {
        Execution::Done(answer) => *answer,
        Execution::Accepted => panic!("expected a synchronous result"),
    }
}

/// An error message without the origin, because ports differ.
pub(crate) fn unplaced(message: &str) -> String {
    let Some((who, rest)) = message.split_once(" at http://127.0.0.1:") else {
        return message.to_owned();
    };
    let told = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{who}{told}")
}
