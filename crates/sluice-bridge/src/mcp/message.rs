//! JSON-RPC 2.0 messages of the Model Context Protocol.

use serde_json::{Value, json};
use sluice_core::visible;

/// JSON-RPC error code "method not found".
const NO_METHOD: i64 = -32601;

/// A message of the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// Answer to one of our requests.
    Answer {
        id: u64,
        /// Result, or the error's message.
        outcome: Result<Value, String>,
    },
    /// A request of the server.
    Request {
        /// Id that the server gave the request.
        id: Value,
        method: String,
    },
    Notification {
        method: String,
    },
}

/// Parses messages and skips malformed ones. Older protocol versions allow several messages in
/// one list.
pub(super) fn read(text: &[u8]) -> Vec<Message> {
    match serde_json::from_slice(text) {
        Ok(Value::Array(all)) => all.into_iter().filter_map(message).collect(),
        Ok(one) => message(one).into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

fn message(mut value: Value) -> Option<Message> {
    if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return None;
    }
    let id = value.get("id").filter(|id| !id.is_null()).cloned();
    if let Some(method) = value.get("method") {
        let method = method.as_str()?.to_owned();
        return Some(match id {
            Some(id) => Message::Request { id, method },
            None => Message::Notification { method },
        });
    }
    let id = id?.as_u64()?;
    let outcome = match value.get("error") {
        Some(error) => Err(error_message(error)),
        None => Ok(value.get_mut("result")?.take()),
    };
    Some(Message::Answer { id, outcome })
}

/// Message of a JSON-RPC error, shortened.
fn error_message(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    format!("{} ({code})", brief(text))
}

/// Untrusted text on one line, shortened and without control characters.
pub(super) fn brief(text: &str) -> String {
    visible::brief(text).into_owned()
}

/// A JSON-RPC request.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A JSON-RPC notification.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Notification that cancels a request.
pub(super) fn cancelled(id: u64) -> String {
    let params = json!({"requestId": id, "reason": "the call was abandoned"});
    notification("notifications/cancelled", &params)
}

/// Reply to a server's request: only `ping` is supported.
pub(super) fn reply(id: &Value, method: &str) -> String {
    let reply = if method == "ping" {
        json!({"jsonrpc": "2.0", "id": id, "result": {}})
    } else {
        let error = json!({"code": NO_METHOD, "message": "this client has no such method"});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    };
    reply.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_requests_and_notifications_are_distinguished() {
        let read = |value: Value| read(value.to_string().as_bytes());
        let answer = json!({"jsonrpc": "2.0", "id": 3, "result": {"a": 1}});
        let outcome = Ok(json!({"a": 1}));
        assert_eq!(read(answer.clone()), [Message::Answer { id: 3, outcome: outcome.clone() }]);
        let error = json!({"jsonrpc": "2.0", "id": 4, "error": {"code": -1, "message": "no\nway"}});
        let outcome_no = Err("no␊way (-1)".to_owned());
        assert_eq!(read(error), [Message::Answer { id: 4, outcome: outcome_no }]);
        let ping = json!({"jsonrpc": "2.0", "id": "x", "method": "ping"});
        let request_of_server = Message::Request { id: json!("x"), method: "ping".to_owned() };
        assert_eq!(read(ping.clone()), std::slice::from_ref(&request_of_server));
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        assert!(matches!(&read(news)[..], [Message::Notification { .. }]));
        assert_eq!(
            read(json!([ping, answer])),
            [request_of_server, Message::Answer { id: 3, outcome }]
        );
    }

    #[test]
    fn malformed_messages_are_skipped() {
        for text in [
            "",
            "starting up…",
            "{}",
            "[1, null, {}]",
            r#"{"id": 1, "result": {}}"#,
            r#"{"jsonrpc": "1.0", "id": 1, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": "1", "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": -1, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": null, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 1}"#,
            r#"{"jsonrpc": "2.0", "method": 5}"#,
        ] {
            assert_eq!(read(text.as_bytes()), [], "{text}");
        }
    }

    #[test]
    fn only_a_ping_is_answered_with_a_result() {
        assert_eq!(reply(&json!(7), "ping"), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        let other = reply(&json!("a"), "sampling/createMessage");
        assert!(other.contains("-32601") && !other.contains("result"), "{other}");
    }
}
