use super::*;
use expect_test::expect;
use serde_json::json;
use sluice_govern::registry::{LastOutputs, Note};

fn fabric() -> Fabric {
    let note = |text: &str| Note { text: text.to_owned(), ..Note::default() };
    let mut fabric = Fabric::default();
    fabric.notes.insert("voice".to_owned(), note("Warm and exact.\n"));
    let outside = Note { untrusted: true, private: true, ..note("from a customer") };
    fabric.notes.insert("letter".to_owned(), outside);
    fabric
}

fn answer(text: &str) -> StepOutcome {
    let mut labels = Labels::of(SourceClass::Agent, 70);
    labels.untrusted = true;
    labels.flow.join(&FlowLabels::of(["web"], ["customer"]));
    StepOutcome { stdout: Some(text.to_owned()), labels, ..StepOutcome::default() }
}

fn last(agent: &str, count: u32) -> MemoryProfile {
    let last_outputs = Some(LastOutputs { agent: agent.to_owned(), count });
    MemoryProfile { last_outputs, ..MemoryProfile::default() }
}

fn remembered_outputs(texts: &[&str]) -> Vec<RememberedOutput> {
    let one = |text: &&str| {
        remembered_output("scribe", RunId(7), "write", &answer(text), 1_700_000_000_000)
    };
    texts.iter().map(one).collect()
}

#[test]
fn notes_are_told_in_the_order_of_the_profile_with_their_labels() {
    let profile = MemoryProfile {
        notes: vec!["letter".to_owned(), "voice".to_owned()],
        ..MemoryProfile::default()
    };
    let loaded = load(&fabric(), &profile, &[]);
    expect![[r#"
        note letter:
        from a customer
        note voice:
        Warm and exact."#]]
    .assert_eq(&loaded.text);
    assert!(loaded.labels.untrusted && loaded.labels.private);
    assert!(loaded.labels.has(SourceClass::Human));
    assert_eq!(loaded.labels.flow, FlowLabels::unknown(), "it came from outside");
    let missing = MemoryProfile { notes: vec!["gone".to_owned()], ..MemoryProfile::default() };
    let nothing = load(&fabric(), &missing, &[]);
    assert_eq!((nothing.text.as_str(), nothing.missing), ("", vec!["gone".to_owned()]));
}

#[test]
fn the_last_answers_of_an_agent_are_told_newest_first_and_no_more_than_asked_for() {
    let loaded = load(&fabric(), &last("scribe", 2), &remembered_outputs(&["three", "two", "one"]));
    expect![[r#"
        scribe in run_00000000000000000000000000000007, step write, at 2023-11-14T22:13:20.000Z:
        three
        scribe in run_00000000000000000000000000000007, step write, at 2023-11-14T22:13:20.000Z:
        two"#]]
    .assert_eq(&loaded.text);
    assert!(loaded.labels.untrusted, "an answer is no more to be trusted for being old");
    assert_eq!(loaded.labels.since_ms, Some(70));
    assert_eq!(loaded.labels.flow.origins().collect::<Vec<_>>(), ["unknown", "web"]);
    assert_eq!(loaded.labels.flow.secrecy().collect::<Vec<_>>(), ["customer"]);
    assert_eq!(load(&fabric(), &last("other", 2), &remembered_outputs(&["one"])).text, "");
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let long = "é".repeat(REMEMBERED_OUTPUT_BYTES_MAX);
    let kept = read(&remembered_outputs(&[&long])[0].body).expect("it can be read").text;
    assert!(kept.len() < REMEMBERED_OUTPUT_BYTES_MAX + 40);
    assert!(kept.ends_with(&format!("\n[cut: {REMEMBERED_OUTPUT_BYTES_MAX} bytes left out]")));
    let small = MemoryProfile { max_bytes: Some(100), ..last("scribe", 20) };
    let many = remembered_outputs(&["one"; 20]);
    let loaded = load(&fabric(), &small, &many);
    let (text, note) = loaded.text.split_once("\n[cut: ").expect("it says that it was cut");
    assert_eq!(text.len(), 100);
    assert!(note.ends_with(" bytes left out]"));
}

#[test]
fn a_profile_cannot_ask_for_more_than_the_bounds() {
    let all = remembered_outputs(&["x"; MEMORY_OUTPUTS_MAX + 5]);
    let loaded = load(&fabric(), &last("scribe", u32::MAX), &all);
    assert_eq!(loaded.text.matches("step write").count(), MEMORY_OUTPUTS_MAX);
    let long = "x".repeat(REMEMBERED_OUTPUT_BYTES_MAX);
    let texts: Vec<&str> = vec![&long; MEMORY_OUTPUTS_MAX];
    let huge = MemoryProfile { max_bytes: Some(u32::MAX), ..last("scribe", 20) };
    let loaded = load(&fabric(), &huge, &remembered_outputs(&texts));
    assert!(loaded.text.len() <= MEMORY_BYTES_MAX + 40);
}

#[test]
fn an_answer_without_a_text_is_remembered_by_its_outputs() {
    let outcome = StepOutcome { outputs: json!({"a": 1}), ..StepOutcome::default() };
    let kept = remembered_output("scribe", RunId(7), "s", &outcome, 0);
    assert_eq!(read(&kept.body).expect("it can be read").text, r#"{"a":1}"#);
    assert_eq!(read(b"rubbish"), None);
}

#[test]
fn an_output_that_an_older_version_remembered_has_the_worst_origin() {
    let body = br#"{"step":"s","text":"t","classes":["agent"],"untrusted":true,"private":false,"since":3}"#;
    let labels = read(body).expect("it can be read").labels;
    assert!(labels.untrusted);
    assert_eq!(labels.flow, FlowLabels::unknown());
}
