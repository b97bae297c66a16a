use super::*;
use crate::config::Moderation;
use crate::mailbox::Mail;
use crate::stream::{StreamBudget, Streams};
use sluice_core::id::RunId;
use sluice_core::journal::event::{DeltaPart, StepAt};
use sluice_core::plan::policy::ModerationPhase;
use sluice_core::port::Later;
use sluice_core::port::moderator::Moderator;
use sluice_core::run::command::Command;
use tokio::sync::mpsc;

/// Flags one phrase as whole words, and records the texts it checked.
#[derive(Default)]
struct PhraseModerator {
    phrase: &'static str,
    checked: std::sync::Mutex<Vec<String>>,
}

impl Moderator for PhraseModerator {
    fn check<'a>(&'a self, subject: &'a Subject) -> Later<'a, Verdict> {
        self.checked.lock().unwrap().push(subject.text.clone());
        let words = format!(" {} ", subject.text.split_whitespace().collect::<Vec<_>>().join(" "));
        let flagged = words.contains(&format!(" {} ", self.phrase));
        let verdict = if flagged { Verdict::Flagged(Default::default()) } else { Verdict::Clear };
        Box::pin(std::future::ready(verdict))
    }
}

struct TestStream {
    moderated: ModeratedStream,
    out: CallOutput,
    heard: mpsc::Receiver<Mail>,
    streams: Mutex<Streams>,
    shown: Mutex<String>,
    moderator: Arc<PhraseModerator>,
}

impl TestStream {
    fn new(phrase: &'static str, window_bytes: usize) -> TestStream {
        let moderator = Arc::new(PhraseModerator { phrase, ..PhraseModerator::default() });
        let config = Moderation { window_bytes, ..Moderation::default() };
        let client =
            ModeratorClient::new(Some(Arc::clone(&moderator) as Arc<dyn Moderator>), config);
        let (run, step, text) = (RunId(1), "a".to_owned(), String::new());
        let subject = Subject { phase: ModerationPhase::Output, run, step, text };
        let (mailbox, heard) = mpsc::channel(10_000);
        let moderated = ModeratedStream::new(Arc::new(client), subject, CancellationToken::new());
        let mut streams = Streams::new(&StreamBudget::default());
        let stream = streams.open(StepAt::whole(0), 1);
        let out = CallOutput { at: StepAt::whole(0), dispatch_no: 1, mailbox, stream };
        let (streams, shown) = (Mutex::new(streams), Mutex::default());
        TestStream { moderated, out, heard, streams, shown, moderator }
    }

    async fn emit(&self, emission: Emission) -> Result<(), Closed> {
        self.drained(self.moderated.emit(emission, &self.out)).await
    }

    async fn text(&self, text: &str) -> Result<(), Closed> {
        self.emit(Emission::Text(text.to_owned())).await
    }

    /// Polls `work` while the run takes what is released.
    async fn drained<T>(&self, work: impl Future<Output = T>) -> T {
        let drains = async {
            loop {
                self.drain().await;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = drains => unreachable!("the loop never ends"),
        }
    }

    async fn drain(&self) {
        let mut inputs = Vec::new();
        self.streams.lock().await.take_all(&mut inputs);
        let mut shown = self.shown.lock().await;
        for input in inputs {
            match input.command {
                Command::Stream { part: DeltaPart::Text(text), .. } => shown.push_str(&text),
                Command::Stream { part: DeltaPart::Media { url, .. }, .. } => {
                    shown.push_str(&format!("<{url}>"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Everything released so far.
    async fn shown(&mut self) -> String {
        self.drain().await;
        let mut shown = std::mem::take(&mut *self.shown.lock().await);
        while let Ok(mail) = self.heard.try_recv() {
            let Mail::Log { text, .. } = mail else { panic!("{mail:?}") };
            shown.push_str(&format!("[{text}]"));
        }
        shown
    }

    async fn ends(&self, text: &str) -> Option<Verdict> {
        let answer = Answer { text: Some(text.to_owned()), ..Answer::default() };
        self.concludes(Execution::Done(Box::new(answer))).await.1
    }

    async fn concludes(&self, execution: Execution) -> (Execution, Option<Verdict>) {
        self.drained(self.moderated.conclude(execution, &self.out)).await
    }
}

/// Splits a text into pieces of `size` characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

#[tokio::test]
async fn however_a_clean_text_is_cut_all_of_it_comes_out_in_order() {
    let text = "wörds and words, ".repeat(200);
    for size in [1, 3, 7, 64, 1000, 10_000] {
        let mut stream = TestStream::new("secret plan", 100);
        for piece in pieces(&text, size) {
            stream.text(&piece).await.unwrap();
        }
        let early = stream.shown().await;
        assert!(text.starts_with(&early), "{size}");
        assert!(text.chars().count() - early.chars().count() > PHRASE_BYTES_MAX, "{size}");
        assert_eq!(stream.ends(&text).await, Some(Verdict::Clear));
        assert_eq!(early + stream.shown().await.as_str(), text, "{size}");
    }
}

#[tokio::test]
async fn however_it_is_cut_no_part_of_a_phrase_comes_out() {
    let before = "word ".repeat(150);
    let text = format!("{before}secret \n  plan {}", "word ".repeat(150));
    for size in [1, 2, 3, 5, 50, 99, 500, 5000] {
        let mut stream = TestStream::new("secret plan", 64);
        let mut closed = false;
        for piece in pieces(&text, size) {
            closed |= stream.text(&piece).await.is_err();
        }
        assert!(closed || size == 5000, "{size}: found while it streamed");
        let verdict = stream.ends(&text).await;
        assert!(matches!(verdict, Some(Verdict::Flagged(_))), "{size}: {verdict:?}");
        let shown = stream.shown().await;
        assert!(before.starts_with(&shown), "{size}: {shown}");
        assert!(stream.moderated.stop.is_cancelled() || size == 5000);
    }
}

#[tokio::test]
async fn half_a_word_is_not_taken_for_another() {
    let mut stream = TestStream::new("ban", 1);
    for piece in ["ur", "ban", " ", "ban", "ana", " "] {
        stream.text(piece).await.unwrap();
    }
    assert_eq!(stream.ends("urban banana ").await, Some(Verdict::Clear));
    assert_eq!(stream.shown().await, "urban banana ");
}

#[tokio::test(start_paused = true)]
async fn a_partly_filled_window_is_checked_after_a_while() {
    let mut stream = TestStream::new("secret", 1 << 20);
    let text = "word ".repeat(300);
    stream.text(&text).await.unwrap();
    assert_eq!(stream.shown().await, "");
    let patience = Duration::from_millis(600);
    let ticked =
        tokio::time::timeout(patience, stream.moderated.release_on_timeout(&stream.out)).await;
    assert!(ticked.is_err(), "the loop never ends");
    let early = stream.shown().await;
    assert!(!early.is_empty() && text.starts_with(&early));
}

#[tokio::test]
async fn media_keep_their_position_and_are_checked_by_url() {
    let media = |url: &str| Emission::Media { url: url.to_owned(), mime: "m".to_owned() };
    let mut stream = TestStream::new("bad", 1);
    stream.text("one ").await.unwrap();
    stream.emit(media("u")).await.unwrap();
    stream.text("two").await.unwrap();
    assert_eq!(stream.ends("one two").await, Some(Verdict::Clear));
    assert_eq!(stream.shown().await, "one <u>two");
    let stream = TestStream::new("bad", 1);
    assert!(stream.emit(media("bad")).await.is_err());
}

#[tokio::test]
async fn the_log_waits_too() {
    let log = |line: &str| Emission::Log(line.to_owned());
    let mut stream = TestStream::new("secret plan", 1);
    for line in ["a", "b", "secret"] {
        stream.emit(log(line)).await.unwrap();
    }
    assert!(stream.emit(log("plan")).await.is_err());
    assert_eq!(stream.shown().await, "");
    let mut stream = TestStream::new("secret plan", 1);
    stream.emit(log("fine")).await.unwrap();
    assert_eq!(stream.ends("x").await, Some(Verdict::Clear));
    assert_eq!(stream.shown().await, "[fine]");
}

#[tokio::test]
async fn the_withheld_text_is_bounded_whatever_it_consists_of() {
    for piece in [" ".repeat(1000), "x".repeat(1000), "\u{200b}".repeat(300)] {
        let stream = TestStream::new("secret", 100);
        for _ in 0..400 {
            stream.text(&piece).await.unwrap();
        }
        let withheld = stream.moderated.withheld.lock().await.text.text.len();
        assert!(
            withheld <= WITHHELD_BYTES_MAX + piece.len(),
            "{withheld} bytes of {:?}",
            &piece[..3]
        );
        let checked = stream.moderator.checked.lock().unwrap().iter().map(String::len).max();
        assert!(checked.unwrap() <= WITHHELD_BYTES_MAX + 2 * piece.len());
    }
}

#[tokio::test]
async fn an_unchecked_error_message_is_hidden_and_stays_a_failure() {
    let mut stream = TestStream::new("x", 1 << 20);
    stream.moderated.moderator = Arc::new(ModeratorClient::new(None, Moderation::default()));
    stream.text("half an ans").await.unwrap();
    let failed = Answer::failed(CallErrorCode::ProviderError, "it said: secret");
    let execution = Execution::Done(Box::new(failed));
    let (execution, verdict) = stream.concludes(execution).await;
    let Execution::Done(answer) = execution else { panic!("it is over") };
    let error = answer.error.unwrap();
    assert_eq!((verdict, error.code), (None, CallErrorCode::ProviderError));
    assert!(!error.message.contains("secret"), "{}", error.message);
    assert_eq!(stream.shown().await, "");
}

#[tokio::test]
async fn accepted_remote_work_shows_what_was_released() {
    let mut stream = TestStream::new("bad", 1 << 20);
    stream.text("so far").await.unwrap();
    let (execution, verdict) = stream.concludes(Execution::Accepted).await;
    assert_eq!((execution, verdict), (Execution::Accepted, None));
    assert_eq!(stream.shown().await, "so far");
    let mut stream = TestStream::new("bad", 1 << 20);
    stream.text("so bad").await.unwrap();
    let (execution, verdict) = stream.concludes(Execution::Accepted).await;
    assert!(matches!(execution, Execution::Done(_)) && verdict.is_some());
    assert_eq!(stream.shown().await, "");
}
