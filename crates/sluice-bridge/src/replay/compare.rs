//! Compares a request with the recorded one.

use crate::limits::{DIFFERENCE_CHARS_MAX, DIFFERENCES_MAX};
use crate::recording::{RecordedBody, RecordedRequest};
use serde_json::Value;
use sluice_core::visible;

/// Fields that change in every run.
const VARYING: [&str; 9] = [
    "action_digest",
    "callback_url",
    "dispatch_token",
    "dispatched_at",
    "idempotency_key",
    "run_id",
    "trace",
    "traceparent",
    "tracestate",
];
/// Prefixes of generated ids; 32 hexadecimal digits follow.
const IDS: [&str; 2] = ["run_", "apr_"];
const ID_DIGITS: usize = 32;

/// All differences as messages, up to a limit.
pub(super) fn differences(recorded: &RecordedRequest, now: &RecordedRequest) -> Vec<String> {
    let mut found = Differences::default();
    found.texts("method", &recorded.method, &now.method);
    found.texts("url", &recorded.url, &now.url);
    match (&recorded.body, &now.body) {
        (RecordedBody::Json(recorded), RecordedBody::Json(now)) => found.values("", recorded, now),
        (
            RecordedBody::Text(recorded) | RecordedBody::Base64(recorded),
            RecordedBody::Text(now) | RecordedBody::Base64(now),
        ) => {
            found.texts("body", recorded, now);
        }
        (recorded, now) => found.add("body", kind(recorded), kind(now)),
    }
    found.all
}

fn kind(body: &RecordedBody) -> &'static str {
    match body {
        RecordedBody::Json(_) => "JSON",
        RecordedBody::Text(_) | RecordedBody::Base64(_) => "something else",
    }
}

#[derive(Default)]
struct Differences {
    all: Vec<String>,
}

impl Differences {
    fn add(&mut self, at: &str, recorded: &str, now: &str) {
        if self.all.len() < DIFFERENCES_MAX {
            let shown = |text| visible::clipped(text, DIFFERENCE_CHARS_MAX);
            self.all.push(format!("{at}: recorded {}, now {}", shown(recorded), shown(now)));
        }
    }

    fn texts(&mut self, at: &str, recorded: &str, now: &str) {
        if without_ids(recorded) != without_ids(now) {
            self.add(at, &format!("{recorded:?}"), &format!("{now:?}"));
        }
    }

    fn values(&mut self, at: &str, recorded: &Value, now: &Value) {
        if self.all.len() >= DIFFERENCES_MAX {
            return;
        }
        match (recorded, now) {
            (Value::Object(before), Value::Object(after)) => {
                let added = after.keys().filter(|name| !before.contains_key(*name));
                for name in before.keys().chain(added) {
                    if VARYING.contains(&name.as_str()) {
                        continue;
                    }
                    let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                    self.parts(&at, before.get(name), after.get(name));
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                for index in 0..before.len().max(after.len()) {
                    self.parts(&format!("{at}/{index}"), before.get(index), after.get(index));
                }
            }
            (Value::String(before), Value::String(after))
                if without_ids(before) == without_ids(after) => {}
            (before, after) if before == after => {}
            (before, after) => {
                let at = if at.is_empty() { "body" } else { at };
                let (before, after) = around_difference(&before.to_string(), &after.to_string());
                self.add(at, &before, &after);
            }
        }
    }

    fn parts(&mut self, at: &str, recorded: Option<&Value>, now: Option<&Value>) {
        match (recorded, now) {
            (Some(recorded), Some(now)) => self.values(at, recorded, now),
            (Some(recorded), None) => self.add(at, &recorded.to_string(), "nothing"),
            (None, Some(now)) => self.add(at, "nothing", &now.to_string()),
            (None, None) => {}
        }
    }
}

/// Both texts from shortly before their first difference: in a long prompt the end of the
/// common part is more useful than its beginning.
fn around_difference(before: &str, after: &str) -> (String, String) {
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let from = before.floor_char_boundary(same.saturating_sub(DIFFERENCE_CHARS_MAX / 3));
    if from == 0 || before.len().max(after.len()) <= DIFFERENCE_CHARS_MAX {
        return (before.to_owned(), after.to_owned());
    }
    (format!("…{}", &before[from..]), format!("…{}", &after[from..]))
}

/// The text without generated ids.
fn without_ids(text: &str) -> String {
    let mut without_ids = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let id = IDS.iter().find_map(|prefix| {
            let digits = rest.strip_prefix(prefix)?.as_bytes().get(..ID_DIGITS)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(prefix.len())
        });
        if let Some(prefix) = id {
            without_ids.push_str(&rest[..prefix]);
            rest = &rest[prefix + ID_DIGITS..];
            continue;
        }
        let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
        without_ids.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    without_ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn request_with(body: Value) -> RecordedRequest {
        let (method, url) = ("POST".to_owned(), "https://example.com/v1".to_owned());
        RecordedRequest { method, url, headers: BTreeMap::new(), body: RecordedBody::Json(body) }
    }

    #[test]
    fn differences_are_reported_with_their_path() {
        let recorded = request_with(json!({
            "model": "a", "messages": [{"content": "hi"}, {"content": "you"}], "x/y": 1, "gone": [1]
        }));
        let now = request_with(json!({
            "model": "b", "messages": [{"content": "hi"}], "x/y": 2, "new": true
        }));
        expect![[r#"
            /model: recorded "a", now "b"
            /messages/1: recorded {"content":"you"}, now nothing
            /x~1y: recorded 1, now 2
            /gone: recorded [1], now nothing
            /new: recorded nothing, now true"#]]
        .assert_eq(&differences(&recorded, &now).join("\n"));
        let other = RecordedRequest {
            method: "PUT".to_owned(),
            body: RecordedBody::Text("x".to_owned()),
            ..now
        };
        expect![[r#"
            method: recorded "POST", now "PUT"
            body: recorded JSON, now something else"#]]
        .assert_eq(&differences(&recorded, &other).join("\n"));
    }

    #[test]
    fn a_long_text_is_shown_around_its_difference() {
        let text = "the same over and over ".repeat(20);
        let recorded = request_with(json!({"p": format!("{text}one way")}));
        let now = request_with(json!({"p": format!("{text}another way")}));
        expect![[r#"/p: recorded …me over and over the same over and over one way", now …me over and over the same over and over another way""#]]
            .assert_eq(&differences(&recorded, &now).join("\n"));
    }

    #[test]
    fn values_that_change_in_every_run_are_ignored() {
        let id = |digit: &str| format!("run_{}", digit.repeat(ID_DIGITS));
        let one = |digit: &str| {
            request_with(json!({
                "run_id": digit, "idempotency_key": digit, "trace": {"traceparent": digit},
                "meta": {"dispatch_token": digit}, "text": format!("in {}: ä", id(digit)),
            }))
        };
        assert_eq!(differences(&one("a"), &one("b")), Vec::<String>::new());
        let short = request_with(json!("run_abc"));
        assert_eq!(differences(&short, &request_with(json!("run_abd"))).len(), 1);
    }

    #[test]
    fn the_number_of_reported_differences_is_limited() {
        let many = |from: u64| request_with((from..from + 100).collect::<Vec<u64>>().into());
        assert_eq!(differences(&many(0), &many(1)).len(), DIFFERENCES_MAX);
    }
}
