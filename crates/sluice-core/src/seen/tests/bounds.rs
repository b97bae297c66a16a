//! The bound of the work for one call. The other bounds are cases in `vectors/seen/bounds.json`.

use super::*;

/// Texts in which every place looks like the start of a long value.
fn repetitive() -> SeenIndex {
    let mut index = SeenIndex::default();
    index.add_prompt(0, "ask Ada");
    for source in 0..10 {
        index.add_answer(source, &fields(json!({"body": "a ".repeat(30_000)})), &records(&[]));
    }
    index
}

#[test]
fn a_call_that_takes_too_much_work_may_be_anything() {
    let index = repetitive();
    let value = "a ".repeat(29_000) + "b";
    let all = [SeenIn::Private, SeenIn::Stranger, SeenIn::Nowhere];
    let facts = facts(&index, &json!(value));
    assert_eq!(facts.seen, all.into());
    assert_eq!(facts.mentions, all.into());
    assert_eq!(facts.carries, [SeenIn::Private, SeenIn::Stranger].into());
    // What comes first is not affected.
    let call = index.call_facts(input(&json!({"a": "Ada", "b": value, "c": "Ada"})));
    assert_eq!(call.arguments["a"].seen, [SeenIn::Prompt].into());
    assert_eq!(call.arguments["c"].seen, all.into());
}

#[test]
fn long_texts_of_every_kind_are_within_the_work_of_a_call() {
    let mut index = repetitive();
    let mails: String = (0..3000).map(|number| format!("m{number}@x{number}.com ")).collect();
    index.add_answer(50, &fields(json!({"body": mails})), &records(&[]));
    let numbers = "4111 2222 ".repeat(6000);
    for text in
        [&mails, &numbers, &"word ".repeat(13_000), &"x".repeat(65_000), &"a@".repeat(30_000)]
    {
        let facts = facts(&index, &json!(text));
        assert!(!facts.carries.contains(&SeenIn::Private), "{}", &text[..20]);
    }
}

#[test]
fn no_text_of_an_argument_takes_quadratic_time_to_scan() {
    let index = SeenIndex::default();
    for text in [
        "a", "_", "1", "a.", "1.", "a@", "a_://", "1://", "www.", "1,234,", "may 1 ", "1:00:",
        "- ", "é", "\u{301}",
    ] {
        let _ = facts(&index, &json!(text.repeat(65_536 / text.chars().count())));
    }
}
