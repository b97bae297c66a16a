//! Parses the answer of a tool, as text and as an object.

use crate::limits::{ARTEFACTS_MAX, TOOL_TEXT_BYTES_MAX};
use crate::media::{File, FileContent, decoded_len};
use crate::tools::ToolAnswer;
use serde_json::{Map, Value};

/// Parses a tool result; `None` if it is malformed.
pub(super) fn read(result: &Value) -> Option<(ToolAnswer, Option<Map<String, Value>>)> {
    let result = result.as_object()?;
    let structured = result.get("structuredContent").and_then(Value::as_object).cloned();
    let blocks = match result.get("content") {
        None if structured.is_some() => &[],
        None => return None,
        Some(blocks) => blocks.as_array()?.as_slice(),
    };
    let parts: Vec<String> = blocks.iter().map(block).collect();
    let text = match &structured {
        Some(object) if parts.is_empty() => Value::Object(object.clone()).to_string(),
        _ => parts.join("\n"),
    };
    let failed = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let files = blocks.iter().filter_map(file).take(ARTEFACTS_MAX).collect();
    Some((ToolAnswer { text: bounded(text), failed, files }, structured))
}

/// A content block as text. Other content is described by type and size.
fn block(block: &Value) -> String {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text(block, "type").unwrap_or_default();
    let mime = |of: &Value| text(of, "mimeType").unwrap_or_else(|| "unknown type".to_owned());
    match kind.as_str() {
        "text" => text(block, "text").unwrap_or_default(),
        "image" | "audio" => {
            let bytes = text(block, "data").map_or(0, |data| decoded_len(&data));
            format!("[{kind}: {}, {bytes} bytes]", mime(block))
        }
        "resource" => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let bytes = match (text(resource, "text"), text(resource, "blob")) {
                (Some(text), _) => text.len(),
                (None, blob) => blob.map_or(0, |data| decoded_len(&data)),
            };
            let uri = text(resource, "uri").unwrap_or_default();
            format!("[resource: {uri}, {}, {bytes} bytes]", mime(resource))
        }
        "resource_link" => {
            let uri = text(block, "uri").unwrap_or_default();
            format!("[resource: {uri}, {}]", mime(block))
        }
        _ => "[content of an unknown type]".to_owned(),
    }
}

/// The file in a content block, if it has one.
fn file(block: &Value) -> Option<File> {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let unknown = || "application/octet-stream".to_owned();
    match text(block, "type")?.as_str() {
        "image" | "audio" => {
            let mime = text(block, "mimeType").unwrap_or_else(unknown);
            Some(File { mime, content: FileContent::Base64(text(block, "data")?) })
        }
        "resource" => {
            let resource = block.get("resource")?;
            let mime = text(resource, "mimeType").unwrap_or_else(unknown);
            Some(File { mime, content: FileContent::Base64(text(resource, "blob")?) })
        }
        _ => None,
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > TOOL_TEXT_BYTES_MAX {
        let over = text.len();
        text.truncate(text.floor_char_boundary(TOOL_TEXT_BYTES_MAX));
        text.push_str(&format!("\n[cut: the answer had {over} bytes]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_joined_and_other_content_is_described() {
        let result = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b"},
            {"type": "image", "mimeType": "image/png", "data": "AAAAAA=="},
            {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "four"}},
            {"type": "resource", "resource": {"uri": "file:///y", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "https://example.com/z", "mimeType": "text/html"},
            {"type": "smell"},
        ]});
        let (answer, structured) = read(&result).unwrap();
        let lines = [
            "a",
            "b",
            "[image: image/png, 4 bytes]",
            "[resource: file:///x, text/plain, 4 bytes]",
            "[resource: file:///y, unknown type, 3 bytes]",
            "[resource: https://example.com/z, text/html]",
            "[content of an unknown type]",
        ];
        assert_eq!((answer.text, answer.failed), (lines.join("\n"), false));
        let file = |mime: &str, data: &str| File {
            mime: mime.to_owned(),
            content: FileContent::Base64(data.to_owned()),
        };
        let files = [file("image/png", "AAAAAA=="), file("application/octet-stream", "AAAA")];
        assert_eq!(answer.files, files);
        assert_eq!(structured, None);
    }

    #[test]
    fn an_object_replaces_missing_text() {
        let object = json!({"n": 1});
        let (answer, structured) =
            read(&json!({"content": [], "structuredContent": object, "isError": true})).unwrap();
        assert_eq!((answer.text.as_str(), answer.failed), (r#"{"n":1}"#, true));
        assert_eq!(structured.map(Value::Object), Some(object.clone()));
        let both =
            json!({"content": [{"type": "text", "text": "one"}], "structuredContent": object});
        assert_eq!(read(&both).unwrap().0.text, "one");
        assert!(read(&json!({"structuredContent": object})).is_some());
    }

    #[test]
    fn a_malformed_answer_is_rejected_and_a_long_one_is_truncated() {
        for none in [json!(null), json!([]), json!({}), json!({"content": "x"})] {
            assert_eq!(read(&none), None, "{none}");
        }
        let long = "ä".repeat(TOOL_TEXT_BYTES_MAX);
        let (answer, _) = read(&json!({"content": [{"type": "text", "text": long}]})).unwrap();
        assert!(answer.text.ends_with("[cut: the answer had 2097152 bytes]"));
        assert!(answer.text.len() < TOOL_TEXT_BYTES_MAX + 100);
    }
}
