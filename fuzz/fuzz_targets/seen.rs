//! Any texts in a run: nothing that a stranger writes makes a value trusted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use sluice_core::seen::{AnswerSeen, SeenIndex};
use sluice_govern::catalog::AnswerFields;
use sluice_govern::facts::SeenIn;

// The first part is the prompt, the last one the argument. Others are answers: the one after
// the prompt with declared fields.
fuzz_target!(|source: &str| {
    let parts: Vec<&str> = source.split("\n====\n").collect();
    let [prompt, answers @ .., argument] = &parts[..] else { return };
    let fields = AnswerFields {
        records: vec!["id".to_owned(), "user.name".to_owned(), "@keys".to_owned()],
        private: vec!["body".to_owned()],
        lists: vec!["names".to_owned()],
    };
    let value = serde_json::from_str(argument).unwrap_or_else(|_| (*argument).into());
    let call = Map::from_iter([("v".to_owned(), value)]);
    let mut index = SeenIndex::default();
    index.add_prompt(0, prompt);
    if let Some(records) = answers.first() {
        let structured = serde_json::from_str::<Value>(records).ok();
        let text = Some((*records).to_owned());
        index.add_answer(1, &AnswerSeen { text, structured, failed: false }, &fields);
    }
    let before = index.call_facts(&call);
    for (source, answer) in (2..).zip(answers.iter().skip(1)) {
        let structured = serde_json::from_str::<Value>(answer).ok();
        let answer = AnswerSeen { text: Some((*answer).to_owned()), structured, failed: false };
        index.add_answer(source, &answer, &AnswerFields::default());
        index.add_value(source, &(*argument).into(), SeenIn::Stranger);
    }
    let after = index.describe(&call);
    assert_eq!(after.sources.len(), after.facts.arguments.len());
    for (path, facts) in after.facts.arguments {
        let is_new = |class: &SeenIn| {
            !before.arguments.get(&path).is_some_and(|before| before.seen.contains(class))
        };
        let trusted = [SeenIn::Prompt, SeenIn::Records].into_iter();
        let new: Vec<_> =
            trusted.filter(|class| facts.seen.contains(class) && is_new(class)).collect();
        assert!(new.is_empty(), "{path}: {new:?}");
    }
});
