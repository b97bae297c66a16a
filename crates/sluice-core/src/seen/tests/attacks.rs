//! What no text of a stranger can do, on random texts.

use super::*;
use crate::seen::letters::is_word;
use proptest::prelude::*;

/// Texts that often share words.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "ada",
        "bob",
        "x.com",
        "ada@x.com",
        "13",
        "1,200.00",
        "may 19",
        "2024-05-19",
        "10:00",
        "a-b",
        "hgk137803",
        "https://x.com/a",
        "the",
        "meeting",
        "is",
        "moved",
        "to",
        "building",
        "é",
        "日本",
        "?",
        "",
    ]);
    let joint = prop::sample::select(vec![" ", " ", "-", ".", "/", ", "]);
    prop::collection::vec((word, joint), 0..9)
        .prop_map(|parts| parts.into_iter().flat_map(|(word, joint)| [word, joint]).collect())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        words().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let key = prop_oneof![words(), any::<String>(), Just("@keys".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

fn any_fields() -> impl Strategy<Value = AnswerFields> {
    let names = || {
        prop::collection::vec(
            prop_oneof![words(), Just("*".to_owned()), Just("@keys".to_owned())],
            0..3,
        )
    };
    (names(), names(), names()).prop_map(|(records, private, lists)| AnswerFields {
        records,
        private,
        lists,
    })
}

fn is_trusted(classes: &[SeenIn]) -> bool {
    classes.iter().all(|class| matches!(class, SeenIn::Prompt | SeenIn::Records))
}

/// The same value as a stranger may write it.
fn disguises(value: &str) -> Vec<String> {
    let each = |joint: &str| value.chars().map(|c| format!("{c}{joint}")).collect::<String>();
    let wide = |c: char| match c {
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c),
        other => other,
    };
    vec![
        each("\u{200b}"),
        each("\u{2060}\u{ad}"),
        value.to_uppercase(),
        format!("\u{feff} \u{a0}({value})\u{2028}"),
        value.chars().map(wide).collect(),
        value.replace(' ', "\u{3000}\t"),
        format!("https://{value}/"),
    ]
}

/// Whether a value occurs in a text, by the definition.
fn occurs(text: &str, value: &str) -> bool {
    let is_joint = |c: char| "-_.:/@+'".contains(c);
    let ends = |rest: Vec<char>| match rest[..] {
        [] => true,
        [next, ..] if is_word(next) => false,
        [next, after, ..] => !is_joint(next) || !is_word(after),
        [_] => true,
    };
    (0..text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| {
        let after = text[at..].strip_prefix(value);
        after.is_some_and(|after| ends(after.chars().collect()))
            && ends(text[..at].chars().rev().collect())
    })
}

proptest! {
    #[test]
    fn nothing_panics(
        prompts in prop::collection::vec(any::<String>(), 0..3),
        answers in prop::collection::vec((any_json(), prop::option::of(any::<String>()), any_fields(), any::<bool>()), 0..4),
        call in prop::collection::vec((any::<String>(), any_json()), 0..4),
    ) {
        let mut index = SeenIndex::default();
        prompts.iter().for_each(|text| index.add_prompt(0, text));
        for (number, (value, text, fields, failed)) in (1..).zip(answers) {
            let structured = if number % 2 == 0 { Some(value.clone()) } else { None };
            let text = text.or_else(|| Some(value.to_string()));
            index.add_answer(number, &AnswerSeen { text, structured, failed }, &fields);
        }
        let call: Map<String, Value> = call.into_iter().collect();
        let facts = index.describe(&call);
        let bytes = rmp_serde::to_vec(&index).unwrap();
        prop_assert_eq!(rmp_serde::from_slice::<SeenIndex>(&bytes).unwrap().describe(&call), facts);
    }

    #[test]
    fn a_stranger_never_makes_a_value_trusted(
        prompt in words(), record in words(), answers in prop::collection::vec((any_json(), words(), any::<bool>()), 0..5),
        value in words(),
    ) {
        let mut index = SeenIndex::default();
        index.add_prompt(0, &prompt);
        index.add_answer(1, &fields(json!({"id": record})), &records(&["id"]));
        let before = facts(&index, &json!(value));
        let trusted: Vec<SeenIn> = before.seen.iter().copied().collect();
        for (json, text, private) in answers {
            let private = if private { names(&["body"]) } else { Vec::new() };
            let declared = AnswerFields { private, ..AnswerFields::default() };
            index.add_answer(2, &fields(json!({"body": [text, json]})), &declared);
        }
        let after = facts(&index, &json!(value));
        let classes: Vec<SeenIn> = after.seen.iter().copied().collect();
        prop_assert_eq!(is_trusted(&classes), is_trusted(&trusted));
        prop_assert!(!is_trusted(&trusted) || classes == trusted);
        prop_assert!(after.carries.is_superset(&before.carries));
        for class in [SeenIn::Prompt, SeenIn::Records] {
            prop_assert_eq!(after.mentions.contains(&class), before.mentions.contains(&class));
        }
    }

    #[test]
    fn no_disguise_makes_a_strangers_value_trusted(prompt in words(), body in words(), value in words()) {
        let mut index = SeenIndex::default();
        index.add_prompt(0, &prompt);
        index.add_answer(1, &fields(json!({"body": format!("{body} {value}")})), &records(&[]));
        let plain = seen(&index, &json!(value));
        for text in disguises(&value) {
            let classes = seen(&index, &json!(text));
            prop_assert!(!is_trusted(&classes) || is_trusted(&plain), "{text:?}: {classes:?}, {plain:?}");
        }
    }

    #[test]
    fn a_disguise_of_what_a_stranger_wrote_hides_nothing(body in words(), value in words()) {
        for text in disguises(&value) {
            let mut index = SeenIndex::default();
            index.add_answer(1, &fields(json!({"body": format!("{body} {text}")})), &records(&[]));
            prop_assume!(value.chars().any(is_word));
            let classes = seen(&index, &json!(value));
            prop_assert_eq!(classes, [SeenIn::Stranger], "{:?}", text);
        }
    }

    #[test]
    fn an_occurrence_in_the_prompt_is_what_the_definition_says(prompt in words(), value in words()) {
        let mut index = SeenIndex::default();
        index.add_prompt(0, &prompt);
        let (text, form) = (normal(&prompt), normal(&value));
        let form = normal::bare_url(&form);
        prop_assume!(!form.is_empty() && number::whole_number(form).is_none() && moment::moment(form).is_none());
        let expected = occurs(&text, form) || normal::bare_url(&text) == form;
        let classes = seen(&index, &json!(value));
        prop_assert_eq!(classes == [SeenIn::Prompt], expected, "{} in {}", form, text);
    }
}
