//! Shortens results that are too long.
//!
//! A model reads every byte of a result, and its user pays for it. Long texts and lists are
//! cut in increasing steps, and the result names what was cut.

use crate::limits::MCP_CUTS_NAMED;
use serde_json::{Map, Value};
use sluice_core::visible;

/// Maximum length of texts and lists.
#[derive(Debug, Clone, Copy)]
struct Measure {
    text_bytes: usize,
    items: usize,
}

/// From the largest to the smallest.
const MEASURES: [Measure; 5] = [
    Measure { text_bytes: 16 * 1024, items: 500 },
    Measure { text_bytes: 4096, items: 100 },
    Measure { text_bytes: 1024, items: 30 },
    Measure { text_bytes: 256, items: 10 },
    Measure { text_bytes: 64, items: 3 },
];
/// Minimum limit of fields in an object: Sluice's own objects have fewer.
const FIELDS: usize = 64;
/// Maximum length of a field name in a path, in characters.
const NAME_CHARS: usize = 40;

/// A value that fits, and the paths that were cut.
pub(super) fn fit(value: Value, bytes_max: usize) -> (Value, Vec<String>) {
    if length(&value) <= bytes_max {
        return (value, Vec::new());
    }
    for measure in MEASURES {
        let mut cutter = Cutter { measure, cuts: Vec::new(), more: 0 };
        let shorter = cutter.cut(&value, &mut String::new());
        if length(&shorter) <= bytes_max {
            return (shorter, cutter.finish());
        }
    }
    let note = format!("everything: {} bytes are too many; request a part of it", length(&value));
    (Value::Null, vec![note])
}

fn length(value: &Value) -> usize {
    value.to_string().len()
}

struct Cutter {
    measure: Measure,
    cuts: Vec<String>,
    more: usize,
}

impl Cutter {
    fn cut(&mut self, value: &Value, place: &mut String) -> Value {
        match value {
            Value::String(text) if text.len() > self.measure.text_bytes => {
                let end = text.floor_char_boundary(self.measure.text_bytes);
                self.note(place, end, text.len(), "bytes");
                Value::String(format!("{}…", &text[..end]))
            }
            Value::Array(items) => {
                let kept = items.len().min(self.measure.items);
                if kept < items.len() {
                    self.note(place, kept, items.len(), "items");
                }
                let each = items[..kept].iter().enumerate();
                each.map(|(at, item)| self.within(place, &format!("[{at}]"), item)).collect()
            }
            Value::Object(fields) => {
                let kept = fields.len().min(self.measure.items.max(FIELDS));
                if kept < fields.len() {
                    self.note(place, kept, fields.len(), "fields");
                }
                let each = fields.iter().take(kept);
                let cut: Map<String, Value> = each
                    .map(|(name, field)| {
                        let step = format!(".{}", visible::clipped(name, NAME_CHARS));
                        (name.clone(), self.within(place, &step, field))
                    })
                    .collect();
                Value::Object(cut)
            }
            other => other.clone(),
        }
    }

    fn within(&mut self, place: &mut String, step: &str, value: &Value) -> Value {
        let before = place.len();
        place.push_str(step);
        let cut = self.cut(value, place);
        place.truncate(before);
        cut
    }

    fn note(&mut self, place: &str, kept: usize, all: usize, what: &str) {
        if self.cuts.len() == MCP_CUTS_NAMED {
            self.more += 1;
            return;
        }
        self.cuts.push(format!("data{place}: {kept} of {all} {what}"));
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.cuts.push(format!("and {} more values", self.more));
        }
        self.cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_short_value_is_not_changed() {
        let value = json!({"a": "x".repeat(50_000), "b": [1, 2]});
        assert_eq!(fit(value.clone(), 60_000), (value, Vec::new()));
    }

    #[test]
    fn long_texts_and_lists_are_cut_and_named() {
        let long = "é".repeat(20_000);
        let value = json!({"steps": [{"out": long}, {"out": "short"}]});
        let (cut, told) = fit(value, 20_000);
        assert_eq!(told, ["data.steps[0].out: 16384 of 40000 bytes"]);
        assert_eq!(cut["steps"][1]["out"], "short");
        let many: Vec<u32> = (0..10_000).collect();
        let (cut, told) = fit(json!(many), 4_000);
        assert_eq!((cut.as_array().unwrap().len(), told.len()), (500, 1));
    }

    #[test]
    fn nothing_gets_past_the_bound() {
        let row = json!({"text": "x".repeat(5_000), "n": 7});
        let rows: Vec<Value> = vec![row; 2_000];
        let wide: Map<String, Value> =
            (0..5_000).map(|at| (format!("field{at}"), json!(vec!["y".repeat(90); 9]))).collect();
        let mut deep = json!(vec!["z".repeat(70); 4]);
        for _ in 0..9 {
            deep = json!([deep, deep, deep, 1]);
        }
        for value in [json!(rows), Value::Object(wide), deep, json!("t".repeat(1 << 20))] {
            for bytes_max in [2_000, 30_000] {
                let (cut, told) = fit(value.clone(), bytes_max);
                assert!(length(&cut) <= bytes_max && !told.is_empty());
                assert!(told.len() <= MCP_CUTS_NAMED + 1);
            }
        }
    }
}
