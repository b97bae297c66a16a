use super::*;
use crate::config::Moderation;
use crate::mail::Mail;
use sluice_core::journal::event::StepAt;
use sluice_core::port::Later;
use sluice_core::port::moderator::{Moderator, Phase};
use sluice_core::run::id::RunId;
use tokio::sync::mpsc;

/// Flags one phrase as whole words, and keeps what it was asked.
#[derive(Default)]
struct One {
    phrase: &'static str,
    asked: std::sync::Mutex<Vec<String>>,
}

impl Moderator for One {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        self.asked.lock().unwrap().push(subject.text.clone());
        let words = format!(" {} ", subject.text.split_whitespace().collect::<Vec<_>>().join(" "));
        let flagged = words.contains(&format!(" {} ", self.phrase));
        let verdict = if flagged { Verdict::Flagged(Default::default()) } else { Verdict::Clear };
        Box::pin(std::future::ready(verdict))
    }
}

struct Stream {
    hold: HoldBack,
    out: Outlet,
    heard: mpsc::Receiver<Mail>,
    moderator: Arc<One>,
}

impl Stream {
    fn new(phrase: &'static str, window_bytes: usize) -> Stream {
        let moderator = Arc::new(One { phrase, ..One::default() });
        let config = Moderation { window_bytes, ..Moderation::default() };
        let judge = Judge::new(Some(Arc::clone(&moderator) as Arc<dyn Moderator>), config);
        let subject = Subject {
            phase: Phase::Output,
            run: RunId(1),
            step: "a".to_owned(),
            text: String::new(),
        };
        let (mailbox, heard) = mpsc::channel(10_000);
        let hold = HoldBack::new(Arc::new(judge), subject, CancellationToken::new());
        Stream {
            hold,
            out: Outlet { at: StepAt::whole(0), dispatch_no: 1, mailbox },
            heard,
            moderator,
        }
    }

    async fn text(&self, text: &str) -> Result<(), Closed> {
        self.hold.take(Emission::Text(text.to_owned()), &self.out).await
    }

    /// All text that came out by now.
    fn shown(&mut self) -> String {
        let mut shown = String::new();
        while let Ok(mail) = self.heard.try_recv() {
            match mail {
                Mail::Text { text, .. } => shown.push_str(&text),
                Mail::Media { url, .. } => shown.push_str(&format!("<{url}>")),
                Mail::Log { text, .. } => shown.push_str(&format!("[{text}]")),
                other => panic!("{other:?}"),
            }
        }
        shown
    }

    async fn ends(&self, text: &str) -> Option<Verdict> {
        let answer = Answer { text: Some(text.to_owned()), ..Answer::default() };
        let execution = Execution::Done(Box::new(answer));
        self.hold.conclude(execution, &self.out).await.1
    }
}

/// A text in pieces of so many characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

#[tokio::test]
async fn however_a_clean_text_is_cut_all_of_it_comes_out_in_order() {
    let text = "wörds and words, ".repeat(200);
    for size in [1, 3, 7, 64, 1000, 10_000] {
        let mut stream = Stream::new("secret plan", 100);
        for piece in pieces(&text, size) {
            stream.text(&piece).await.unwrap();
        }
        let early = stream.shown();
        assert!(text.starts_with(&early), "{size}");
        assert!(text.chars().count() - early.chars().count() > PHRASE_BYTES_MAX, "{size}");
        assert_eq!(stream.ends(&text).await, Some(Verdict::Clear));
        assert_eq!(early + &stream.shown(), text, "{size}");
    }
}

#[tokio::test]
async fn however_it_is_cut_no_part_of_a_phrase_comes_out() {
    let before = "word ".repeat(150);
    let text = format!("{before}secret \n  plan {}", "word ".repeat(150));
    for size in [1, 2, 3, 5, 50, 99, 500, 5000] {
        let mut stream = Stream::new("secret plan", 64);
        let mut closed = false;
        for piece in pieces(&text, size) {
            closed |= stream.text(&piece).await.is_err();
        }
        assert!(closed || size == 5000, "{size}: it was found while it came");
        let verdict = stream.ends(&text).await;
        assert!(matches!(verdict, Some(Verdict::Flagged(_))), "{size}: {verdict:?}");
        let shown = stream.shown();
        assert!(before.starts_with(&shown), "{size}: {shown}");
        assert!(stream.hold.stop.is_cancelled() || size == 5000);
    }
}

#[tokio::test]
async fn half_a_word_is_not_taken_for_another() {
    let mut stream = Stream::new("ban", 1);
    for piece in ["ur", "ban", " ", "ban", "ana", " "] {
        stream.text(piece).await.unwrap();
    }
    assert_eq!(stream.ends("urban banana ").await, Some(Verdict::Clear));
    assert_eq!(stream.shown(), "urban banana ");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_not_full_goes_after_a_while() {
    let mut stream = Stream::new("secret", 1 << 20);
    let text = "word ".repeat(300);
    stream.text(&text).await.unwrap();
    assert_eq!(stream.shown(), "");
    let patience = Duration::from_millis(600);
    let ticked = tokio::time::timeout(patience, stream.hold.tick(&stream.out)).await;
    assert!(ticked.is_err(), "it never ends");
    let early = stream.shown();
    assert!(!early.is_empty() && text.starts_with(&early));
}

#[tokio::test]
async fn media_keep_their_place_and_are_judged_by_their_address() {
    let media = |url: &str| Emission::Media { url: url.to_owned(), mime: "m".to_owned() };
    let mut stream = Stream::new("bad", 1);
    stream.text("one ").await.unwrap();
    stream.hold.take(media("u"), &stream.out).await.unwrap();
    stream.text("two").await.unwrap();
    assert_eq!(stream.ends("one two").await, Some(Verdict::Clear));
    assert_eq!(stream.shown(), "one <u>two");
    let stream = Stream::new("bad", 1);
    assert!(stream.hold.take(media("bad"), &stream.out).await.is_err());
}

#[tokio::test]
async fn the_log_waits_too() {
    let log = |line: &str| Emission::Log(line.to_owned());
    let mut stream = Stream::new("secret plan", 1);
    for line in ["a", "b", "secret"] {
        stream.hold.take(log(line), &stream.out).await.unwrap();
    }
    assert!(stream.hold.take(log("plan"), &stream.out).await.is_err());
    assert_eq!(stream.shown(), "");
    let mut stream = Stream::new("secret plan", 1);
    stream.hold.take(log("fine"), &stream.out).await.unwrap();
    assert_eq!(stream.ends("x").await, Some(Verdict::Clear));
    assert_eq!(stream.shown(), "[fine]");
}

#[tokio::test]
async fn what_is_held_is_bounded_whatever_it_is_made_of() {
    for piece in [" ".repeat(1000), "x".repeat(1000), "\u{200b}".repeat(300)] {
        let stream = Stream::new("secret", 100);
        for _ in 0..400 {
            stream.text(&piece).await.unwrap();
        }
        let held = stream.hold.held.lock().await.text.text.len();
        assert!(held <= HELD_BYTES_MAX + piece.len(), "{held} bytes of {:?}", &piece[..3]);
        let asked = stream.moderator.asked.lock().unwrap().iter().map(String::len).max();
        assert!(asked.unwrap() <= HELD_BYTES_MAX + 2 * piece.len());
    }
}

#[tokio::test]
async fn a_failure_that_cannot_be_checked_tells_nothing_and_stays_a_failure() {
    let mut stream = Stream::new("x", 1 << 20);
    stream.hold.judge = Arc::new(Judge::new(None, Moderation::default()));
    stream.text("half an ans").await.unwrap();
    let failed = Answer::failed(CallErrorCode::ProviderError, "it said: secret");
    let execution = Execution::Done(Box::new(failed));
    let (execution, verdict) = stream.hold.conclude(execution, &stream.out).await;
    let Execution::Done(answer) = execution else { panic!("it is over") };
    let error = answer.error.unwrap();
    assert_eq!((verdict, error.code), (None, CallErrorCode::ProviderError));
    assert!(!error.message.contains("secret"), "{}", error.message);
    assert_eq!(stream.shown(), "");
}

#[tokio::test]
async fn work_that_goes_on_elsewhere_shows_what_was_let_out() {
    let mut stream = Stream::new("bad", 1 << 20);
    stream.text("so far").await.unwrap();
    let (execution, verdict) = stream.hold.conclude(Execution::Accepted, &stream.out).await;
    assert_eq!((execution, verdict), (Execution::Accepted, None));
    assert_eq!(stream.shown(), "so far");
    let mut stream = Stream::new("bad", 1 << 20);
    stream.text("so bad").await.unwrap();
    let (execution, verdict) = stream.hold.conclude(Execution::Accepted, &stream.out).await;
    assert!(matches!(execution, Execution::Done(_)) && verdict.is_some());
    assert_eq!(stream.shown(), "");
}
