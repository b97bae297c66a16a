//! Where the arguments of a call were seen before, in a run that has read much.

use clap::Args;
use serde_json::{Map, Value, json};
use sluice_core::seen::{AnswerSeen, SeenIndex};
use sluice_govern::catalog::AnswerFields;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Number of calls of each kind
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// Number of answers
    #[arg(long, default_value_t = 12)]
    answers: usize,
    /// Number of mails in each answer, each with a body of 700 characters
    #[arg(long, default_value_t = 13)]
    mails: usize,
}

/// A text of about `chars` characters, with words of which some are frequent, and few numbers.
fn text(seed: &mut u64, chars: usize) -> String {
    let mut text = String::new();
    while text.len() < chars {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (rank, kind) = ((*seed >> 33) % 5000, *seed >> 58);
        // A quarter of the words is one of fifty.
        let word = if kind < 16 { rank % 50 } else { rank };
        text.push_str(&match kind {
            0 => format!("{rank} "),
            1 => format!("{}. ", spelt(word)),
            _ => format!("{} ", spelt(word)),
        });
    }
    text
}

/// A word for a number.
fn spelt(number: u64) -> String {
    let syllables = ["ba", "ko", "mi", "tes", "lur", "an", "der", "so", "wi", "pe"];
    number.to_string().bytes().map(|digit| syllables[usize::from(digit - b'0')]).collect()
}

fn answer(seed: &mut u64, number: usize, mails: usize) -> Value {
    let mail = |index: usize| {
        json!({
            "id_": (number * mails + index).to_string(), "sender": format!("m{index}@x{number}.com"),
            "subject": text(seed, 40), "body": text(seed, 630), "timestamp": "2024-05-19T12:00:00", "read": true,
        })
    };
    json!({"result": (0..mails).map(mail).collect::<Vec<_>>()})
}

/// The calls to decide: a few short values, a text of the model, a text of the longest mail.
fn calls(seed: &mut u64) -> [(&'static str, Map<String, Value>); 4] {
    let call = |value: Value| value.as_object().cloned().unwrap_or_default();
    let mail = |body: String| {
        call(
            json!({"recipients": ["ada@x.com", "m3@x7.com"], "subject": "Summary of the week", "body": body}),
        )
    };
    [
        ("ids", call(json!({"file_id": "71", "email": "ada@x.com", "permission": "read"}))),
        (
            "mail",
            mail("Hello Ada, the meeting is moved to 2024-05-20 at 10:00. Best, Bob".to_owned()),
        ),
        ("page", mail(text(seed, 3300))),
        ("copied", mail(text(&mut 7, 3300))),
    ]
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Value> {
    let fields = AnswerFields {
        records: vec!["id_".to_owned(), "timestamp".to_owned()],
        private: vec!["subject".to_owned(), "body".to_owned()],
        lists: Vec::new(),
    };
    let (mut seed, mut chars) = (7, 0);
    let mut index = SeenIndex::default();
    index.add_prompt(
        0,
        "Send a summary of the mails of this week to ada@x.com and share file 71 with her.",
    );
    let mut longest = Duration::ZERO;
    for (number, source) in (0..options.answers).zip(1..) {
        let structured = answer(&mut seed, number, options.mails);
        chars += structured.to_string().len();
        let answer = AnswerSeen { structured: Some(structured), ..AnswerSeen::default() };
        let begun = Instant::now();
        index.add_answer(source, &answer, &fields);
        longest = longest.max(begun.elapsed());
    }
    let mut figures = json!({
        "bench": "seen", "answers": options.answers, "json_bytes": chars,
        "answer_max_us": micros(longest), "index": format!("{index:?}"),
    });
    for (name, call) in calls(&mut seed) {
        let mut times = Vec::with_capacity(options.calls);
        for _ in 0..options.calls {
            let begun = Instant::now();
            let facts = index.call_facts(&call);
            times.push(begun.elapsed());
            anyhow::ensure!(facts.exposed && facts.arguments.len() == call.len(), "{facts:?}");
        }
        times.sort_unstable();
        let of = |share: usize| micros(times[(times.len() - 1) * share / 100]);
        figures[name] = json!({"p50_us": of(50), "p99_us": of(99)});
    }
    Ok(figures)
}

fn micros(time: Duration) -> f64 {
    crate::fixture::brief(time.as_secs_f64() * 1e6)
}
