//! The cases in `vectors/seen`, which the prototype fulfils as well (`tools/agentdojo/vectors.py`).

use super::*;
use serde::Deserialize;

const FILES: [(&str, &str); 7] = [
    ("answers", include_str!("../../../../../vectors/seen/answers.json")),
    ("arguments", include_str!("../../../../../vectors/seen/arguments.json")),
    ("bounds", include_str!("../../../../../vectors/seen/bounds.json")),
    ("classes", include_str!("../../../../../vectors/seen/classes.json")),
    ("mentions", include_str!("../../../../../vectors/seen/mentions.json")),
    ("normal-form", include_str!("../../../../../vectors/seen/normal-form.json")),
    ("passages", include_str!("../../../../../vectors/seen/passages.json")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenCase {
    name: String,
    /// The line of the specification.
    #[serde(rename = "rule")]
    _rule: String,
    steps: Vec<Value>,
}

/// What happens next in a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(super) struct SeenStep {
    prompt: Option<String>,
    value: Option<Value>,
    class: Option<SeenIn>,
    #[serde(alias = "structured")]
    answer: Option<Value>,
    text: Option<String>,
    failed: bool,
    records: Vec<String>,
    private: Vec<String>,
    lists: Vec<String>,
    pub(super) call: Option<Map<String, Value>>,
    expect: Value,
}

impl SeenStep {
    /// Adds the step to an index. If it is a call: its facts and the expected ones.
    pub(super) fn play(self, index: &mut SeenIndex) -> Option<(Value, Value)> {
        if let Some(call) = self.call {
            let mut facts = json!(index.call_facts(&call));
            let facts_map = facts.as_object_mut().expect("facts are an object");
            facts_map.entry("arguments").or_insert(json!({}));
            let exposed = facts_map.entry("exposed").or_insert(json!(false)).clone();
            let mut expected = self.expect;
            let expected_map = expected.as_object_mut().expect("a call expects facts");
            expected_map.entry("exposed").or_insert(exposed);
            return Some((facts, expected));
        }
        if let Some(prompt) = self.prompt {
            index.add_prompt(0, &prompt);
        } else if let Some(class) = self.class {
            index.add_value(0, &self.value.unwrap_or_default(), class);
        } else {
            let SeenStep { answer, text, failed, records, private, lists, .. } = self;
            let answer = AnswerSeen { text, structured: answer, failed };
            index.add_answer(0, &answer, &AnswerFields { records, private, lists });
        }
        None
    }
}

/// The value with every `{$repeat, $times}` and `{$join}` in it spelt out.
fn expanded(value: Value) -> Value {
    match value {
        Value::Object(mut map) => {
            let times = map.get("$times").and_then(Value::as_u64);
            let times = usize::try_from(times.unwrap_or_default()).expect("a number of copies");
            match (map.remove("$repeat").map(expanded), map.remove("$join").map(expanded)) {
                (Some(Value::String(text)), None) => text.repeat(times).into(),
                (Some(Value::Array(items)), None) => {
                    std::iter::repeat_n(items, times).flatten().collect()
                }
                (None, Some(Value::Array(parts))) => {
                    let parts = parts.iter().map(|part| part.as_str().expect("a text"));
                    parts.collect::<String>().into()
                }
                (None, None) => map.into_iter().map(|(key, item)| (key, expanded(item))).collect(),
                other => panic!("{other:?} cannot be spelt out"),
            }
        }
        Value::Array(items) => items.into_iter().map(expanded).collect(),
        plain => plain,
    }
}

#[test]
fn every_case_has_the_expected_facts() {
    let (mut cases, mut faults) = (0, Vec::new());
    for (file, text) in FILES {
        let read: Vec<SeenCase> = serde_json::from_str(text).unwrap();
        for case in read {
            cases += 1;
            let mut index = SeenIndex::default();
            for step in case.steps {
                let step = serde_json::from_value::<SeenStep>(expanded(step)).unwrap();
                let call = step.call.clone();
                let Some((facts, expected)) = step.play(&mut index) else { continue };
                if facts != expected {
                    let call = json!(call).to_string();
                    let call = call.chars().take(200).collect::<String>();
                    faults.push(format!("{file}: {}: {call}\n  {facts}\n  {expected}", case.name));
                }
            }
        }
    }
    assert!(cases >= 300, "{cases} cases");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
