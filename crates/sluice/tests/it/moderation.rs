//! `--moderation`: a word list, or an HTTP service.

use crate::world::{World, shown};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;

const LETTER: &str = "
name: letter
args: {about: {type: string, required: true}}
steps:
  - {id: draft, command: 'Write about ${args.about}', moderation: both, retry: {attempts: 3}}
  - {id: send, command: 'Send it', depends_on: [draft]}
";

fn letter(words: &str) -> World {
    let mock = "draft: {chunks: ['Dear all, the se', 'cret plan ', 'is off.']}\nsend: {text: sent}";
    let world = World::new().file("letter.lobsterx.yaml", LETTER).file("mock.yaml", mock);
    world.file("words.txt", words)
}

const RUN: [&str; 5] = ["run", "letter.lobsterx.yaml", "--mock", "mock.yaml", "--json"];

fn run(world: &World, more: &[&str]) -> Output {
    world.output(&[&RUN, more].concat())
}

/// The run as the last line has it, and the events before.
fn lines(output: &Output) -> (Value, Vec<Value>) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines.pop().unwrap_or_else(|| panic!("{}", shown(output))), lines)
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

fn is_blocked(run: &Value) {
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&"failed".into(), &"moderation_blocked".into())
    );
    let draft = &run["node_results"][0];
    assert_eq!(draft["status"], "failed");
    assert_eq!(draft["error_code"], "moderation_blocked");
    assert_eq!(draft["error_message"], "moderation_blocked");
}

#[test]
fn what_goes_in_is_judged_by_a_word_list() {
    let world = letter("input: Gossip\noutput: secret plan\n");
    let args = ["--moderation", "words.txt", "--events", "--arg", "about=gossip and more"];
    let output = run(&world, &args);
    assert_eq!(output.status.code(), Some(1));
    let (run, events) = lines(&output);
    is_blocked(&run);
    let flagged = of_kind(&events, "moderation.flagged");
    let decision = json!({"by": "word_list", "phrase": "Gossip", "line": 1, "outcome": "flagged"});
    assert_eq!((&flagged[0]["phase"], &flagged[0]["decision"]), (&json!("input"), &decision));
    assert!(of_kind(&events, "node.started").is_empty());
    let failed = of_kind(&events, "node.failed");
    assert_eq!(failed[0]["errorCode"], "moderation_blocked");
    assert_eq!(failed[0]["errorMessage"], "moderation_blocked");
}

#[test]
fn what_comes_out_is_judged_before_it_is_shown() {
    let world = letter("input: Gossip\noutput: secret plan\n");
    let args = ["--moderation", "words.txt", "--events", "--arg", "about=tea"];
    let output = run(&world, &args);
    assert_eq!(output.status.code(), Some(1));
    let (run, events) = lines(&output);
    is_blocked(&run);
    let flagged = of_kind(&events, "moderation.flagged");
    assert_eq!((flagged.len(), &flagged[0]["phase"]), (1, &"output".into()));
    let deltas = of_kind(&events, "node.stream.delta");
    assert!(deltas.iter().all(|delta| !delta["text"].as_str().unwrap().contains("se")));
    assert_eq!(run["node_results"][0]["attempts"], 1);
}

#[test]
fn a_text_without_a_match_passes() {
    let world = letter("something else\n");
    let output = run(&world, &["--moderation", "words.txt", "--events", "--arg", "about=tea"]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let (_, events) = lines(&output);
    let said: String = of_kind(&events, "node.stream.delta")
        .iter()
        .map(|delta| delta["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, "Dear all, the secret plan is off.");
}

#[test]
fn the_environment_can_name_the_list() {
    let world = letter("tea\n");
    let mut command = world.command(&[&RUN[..], &["--arg", "about=tea"]].concat());
    let output = command.env("SLUICE_MODERATION", "words.txt").output().unwrap();
    is_blocked(&lines(&output).0);
}

#[test]
fn without_a_moderator_nothing_passes() {
    let world = letter("");
    let output = run(&world, &["--events", "--arg", "about=tea"]);
    assert_eq!(output.status.code(), Some(1));
    let (run, events) = lines(&output);
    is_blocked(&run);
    let decision = &of_kind(&events, "moderation.flagged")[0]["decision"];
    let reason = "no moderator is configured: set a word list or a URL";
    assert_eq!(*decision, json!({"outcome": "unavailable", "reason": reason}));
}

#[test]
fn a_list_that_makes_no_sense_is_refused_before_anything_starts() {
    let world = letter("fine\noutput:\n");
    let told = |named: &str| {
        let args = ["run", "letter.lobsterx.yaml", "--mock", "mock.yaml", "--arg", "about=tea"];
        world.told(&[&args[..], &["--moderation", named]].concat())
    };
    for (named, why) in [
        ("words.txt", "`words.txt`: line 2 has no phrase after its prefix"),
        ("missing.txt", "the word list `missing.txt` cannot be read"),
        ("https://", "moderator URL `https://` is not valid"),
    ] {
        let told = told(named);
        assert!(told.contains("error[moderation_unusable]"), "{told}");
        assert!(told.contains(why) && told.ends_with("exit 2\n"), "{told}");
        assert!(!told.contains("started"), "{told}");
    }
}

/// Answers one question after the other, and gives what it was asked.
fn server(
    answers: Vec<(&'static str, &'static str)>,
) -> (String, std::thread::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/judge", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let serve = |(status, answer): (&str, &str)| {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: ");
            let response = format!("{head}{}\r\n\r\n{answer}", answer.len());
            (&stream).write_all(response.as_bytes()).unwrap();
            serde_json::from_slice(&body).unwrap()
        };
        answers.into_iter().map(serve).collect()
    });
    (address, asked)
}

#[test]
fn an_http_moderator_is_called() {
    let clear = ("200 OK", r#"{"flagged": false}"#);
    let rude = ("200 OK", r#"{"flagged": true, "reason": "rude", "categories": ["insult"]}"#);
    let (address, asked) = server(vec![clear, rude]);
    let world = letter("");
    let args = ["--moderation", &address, "--events", "--arg", "about=tea"];
    let (run, events) = lines(&run(&world, &args));
    is_blocked(&run);
    let decision = &of_kind(&events, "moderation.flagged")[0]["decision"];
    let expected = json!({
        "by": "http", "reason": "rude", "categories": ["insult"], "outcome": "flagged",
    });
    assert_eq!(*decision, expected);
    let asked = asked.join().unwrap();
    assert_eq!((&asked[0]["phase"], &asked[0]["step"]), (&"input".into(), &"draft".into()));
    assert_eq!(asked[0]["text"], "Write about tea");
    assert_eq!(asked[1]["text"], "Dear all, the secret plan is off.");
    assert_eq!(asked[1]["run"], run["run_id"]);
}

#[test]
fn a_question_says_how_to_go_on_under_the_same_moderator() {
    let document = LETTER.replace("moderation: both", "moderation: both, approval: required");
    let world = letter("other\n").file("letter.lobsterx.yaml", &document);
    let args = ["run", "letter.lobsterx.yaml", "--mock", "mock.yaml", "--arg", "about=tea"];
    let told = world.told(&[&args[..], &["--moderation", "words.txt"]].concat());
    assert!(told.contains("--mock mock.yaml --moderation words.txt"), "{told}");
}
