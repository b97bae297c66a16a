use super::*;
use sluice_core::id::RunId;

fn list(text: &str) -> WordList {
    WordList::parse(text.as_bytes()).expect("the list can be read")
}

async fn says(list: &WordList, phase: ModerationPhase, text: &str) -> Verdict {
    let (run, step, text) = (RunId(1), "a".to_owned(), text.to_owned());
    list.check(&Subject { phase, run, step, text }).await
}

/// The line of the phrase that is found.
async fn found(list: &WordList, phase: ModerationPhase, text: &str) -> Option<u64> {
    match says(list, phase, text).await {
        Verdict::Clear => None,
        Verdict::Flagged(decision) => decision["line"].as_u64(),
        Verdict::Unavailable(reason) => panic!("{reason}"),
    }
}

#[tokio::test]
async fn a_phrase_is_found_in_any_case_and_across_any_blanks() {
    let list = list("Secret Plan\nÜBEL\n");
    for text in ["the secret plan", "SECRET   PLAN!", "secret\n\tplan", "(Secret\u{a0}Plan)"] {
        assert_eq!(found(&list, ModerationPhase::Input, text).await, Some(1), "{text}");
    }
    assert_eq!(found(&list, ModerationPhase::Output, "das übel").await, Some(2));
    assert_eq!(found(&list, ModerationPhase::Output, "secret, plan").await, None);
}

#[tokio::test]
async fn a_phrase_is_found_only_as_whole_words() {
    let list = list("ban\nc++\n7");
    for text in ["urban", "banana", "a bánd", "17", "x7y"] {
        assert_eq!(found(&list, ModerationPhase::Input, text).await, None, "{text}");
    }
    for (text, line) in
        [("ban", 1), ("urban ban.", 1), ("\"ban\"", 1), ("bans-ban", 1), ("c++", 2), ("c++x", 2)]
    {
        assert_eq!(found(&list, ModerationPhase::Input, text).await, Some(line), "{text}");
    }
    assert_eq!(found(&list, ModerationPhase::Input, "cc++").await, None);
}

#[tokio::test]
async fn in_scripts_without_spaces_a_phrase_is_found_anywhere() {
    let list = list("坏词\nばか");
    assert_eq!(found(&list, ModerationPhase::Input, "这是坏词啊").await, Some(1));
    assert_eq!(found(&list, ModerationPhase::Input, "おばかさん").await, Some(2));
}

#[tokio::test]
async fn invisible_characters_hide_nothing() {
    let list = list("secret");
    assert_eq!(found(&list, ModerationPhase::Input, "se\u{ad}cr\u{200b}et").await, Some(1));
}

#[tokio::test]
async fn a_prefix_restricts_a_phrase_to_one_side() {
    let list = list("\u{feff}input: go in\r\n\n  output:go out \nboth ways\ninput:both");
    assert_eq!(found(&list, ModerationPhase::Input, "go in").await, Some(1));
    assert_eq!(found(&list, ModerationPhase::Output, "go in").await, None);
    assert_eq!(found(&list, ModerationPhase::Output, "go out").await, Some(3));
    assert_eq!(found(&list, ModerationPhase::Input, "go out").await, None);
    assert_eq!(found(&list, ModerationPhase::Output, "both ways").await, Some(4));
    let verdict = says(&list, ModerationPhase::Input, "go in").await;
    let decision = json!({"by": "word_list", "phrase": "go in", "line": 1});
    assert_eq!(verdict, Verdict::Flagged(decision));
}

#[tokio::test]
async fn a_longer_phrase_does_not_hide_a_shorter_one() {
    let list = list("a b c d\nb");
    assert_eq!(found(&list, ModerationPhase::Input, "a b c").await, Some(2));
}

#[tokio::test]
async fn a_hash_begins_a_phrase_like_any_other() {
    let list = list("# secret");
    assert_eq!(found(&list, ModerationPhase::Input, "# secret").await, Some(1));
    assert_eq!(found(&list, ModerationPhase::Input, "secret").await, None);
}

#[tokio::test]
async fn an_empty_list_clears_everything() {
    assert_eq!(found(&list(""), ModerationPhase::Input, "whatever").await, None);
    assert_eq!(found(&list("\n  \n"), ModerationPhase::Input, "").await, None);
}

#[test]
fn a_malformed_list_is_rejected() {
    let refused = |bytes: &[u8]| WordList::parse(bytes).map(drop).unwrap_err();
    assert_eq!(refused(b"ok\ninput:\n"), BadList::NoPhrase(2));
    assert_eq!(refused("ok\noutput: \u{200b}\n".as_bytes()), BadList::NoPhrase(2));
    assert_eq!(refused(&[0xff, 0xfe]), BadList::NoText);
    assert_eq!(refused("x".repeat(PHRASE_BYTES_MAX + 1).as_bytes()), BadList::LongPhrase(1));
    assert_eq!(refused("x\n".repeat(PHRASES_MAX + 1).as_bytes()), BadList::TooMany);
    let long = vec![b'\n'; WORD_LIST_BYTES_MAX + 1];
    assert_eq!(refused(&long), BadList::TooLong);
    assert!(WordList::parse("x".repeat(PHRASE_BYTES_MAX).as_bytes()).is_ok());
}
