//! What streams out of a step whose output is moderated waits here until the
//! moderator has let it pass.
//!
//! Text is gathered into a window. A window that is cleared is let go, but for
//! its end: that may be the beginning of a phrase, and is judged once more with
//! what follows. Lines of the log and addresses of media take the same way.
//!
//! INVARIANT: nothing leaves before a check of it was clear, and no part of a
//! phrase of up to `PHRASE_BYTES_MAX` bytes leaves at all, however it is cut
//! into pieces. Once something is found, nothing leaves any more.

use crate::judge::Judge;
use crate::perform::Outlet;
use serde_json::Value;
use sluice_core::limits::PHRASE_BYTES_MAX;
use sluice_core::port::adapter::{Answer, CallErrorCode, Closed, Emission, Execution, Usage};
use sluice_core::port::moderator::{Subject, Verdict};
use sluice_core::run::moderate::{output_text, texts};
use sluice_core::word::{is_ignored, joins};
use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Most text that waits for the end of a word or for what follows it.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// One call's stream on its way out.
pub(crate) struct HoldBack {
    judge: Arc<Judge>,
    /// Of which step; the text is put in for each question.
    subject: Subject,
    /// Ends the call when something is found.
    stop: CancellationToken,
    held: Mutex<Held>,
    added: Notify,
    found: OnceLock<Verdict>,
}

#[derive(Default)]
struct Held {
    text: Channel,
    log: Channel,
    /// Bytes that came since the last check, and when the first of them did.
    fresh: usize,
    since: Option<Instant>,
}

/// Text in order, and what stands between.
#[derive(Default)]
struct Channel {
    text: String,
    marks: VecDeque<(usize, Emission)>,
}

/// How much of what is held is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upto {
    /// Whole words.
    Words,
    /// All of it: nothing follows.
    End,
}

impl HoldBack {
    pub(crate) fn new(judge: Arc<Judge>, subject: Subject, stop: CancellationToken) -> HoldBack {
        let (held, added, found) = (Mutex::default(), Notify::new(), OnceLock::new());
        HoldBack { judge, subject, stop, held, added, found }
    }

    /// Takes what comes out. Completes when it may be followed by more: a full
    /// window is judged first.
    pub(crate) async fn take(&self, emission: Emission, out: &Outlet) -> Result<(), Closed> {
        if self.found.get().is_some() {
            return Err(Closed);
        }
        #[cfg(feature = "sabotage")]
        if self.judge.sabotage.stream_unchecked {
            return out.forward(emission).await;
        }
        let mut held = self.held.lock().await;
        let bytes = match emission {
            // It says nothing, and must be journalled before anything else happens.
            Emission::Process(_) | Emission::ToolEnded(_) => return out.forward(emission).await,
            Emission::Text(text) => held.text.add(&text),
            Emission::Media { .. } => held.text.mark(emission),
            Emission::Log(line) => {
                let bytes = held.log.add(&line) + held.log.add("\n");
                held.log.mark(Emission::Log(line));
                bytes
            }
        };
        held.fresh += bytes;
        held.since.get_or_insert_with(Instant::now);
        self.added.notify_one();
        if held.fresh < self.judge.config.window_bytes {
            return Ok(());
        }
        self.pass(&mut held, Upto::Words, out).await
    }

    /// Whether something that leaves by another way than the stream is cleared.
    pub(crate) async fn clears(&self, value: &Value) -> bool {
        let subject = Subject { text: texts(value), ..self.subject.clone() };
        self.judge.check(&subject, &self.stop).await == Verdict::Clear
    }

    /// Lets a window that is not full go when it has waited long enough. Never ends.
    pub(crate) async fn tick(&self, out: &Outlet) {
        let window = Duration::from_millis(self.judge.config.window_ms);
        loop {
            let since = self.held.lock().await.since;
            let Some(since) = since else {
                self.added.notified().await;
                continue;
            };
            tokio::time::sleep_until(since + window).await;
            let mut held = self.held.lock().await;
            let passed = match held.since == Some(since) {
                true => self.pass(&mut held, Upto::Words, out).await,
                false => Ok(()),
            };
            drop(held);
            if passed.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// Judges what is held, and lets go what can be.
    async fn pass(&self, held: &mut Held, upto: Upto, out: &Outlet) -> Result<(), Closed> {
        let ends = (held.text.end(upto), held.log.end(upto));
        let text = held.judged(ends);
        if !text.is_empty() {
            let subject = Subject { text, ..self.subject.clone() };
            self.heed(self.judge.check(&subject, &self.stop).await)?;
        }
        held.fresh = 0;
        held.since = None;
        held.release((held.text.loose(ends.0, upto), held.log.loose(ends.1, upto)), out).await
    }

    /// Stops everything unless the moderator has nothing against it.
    fn heed(&self, verdict: Verdict) -> Result<(), Closed> {
        if verdict == Verdict::Clear {
            return Ok(());
        }
        let _ = self.found.set(verdict);
        self.stop.cancel();
        Err(Closed)
    }

    /// Judges all of a result, and lets go what is still held. What is found is
    /// told beside it.
    pub(crate) async fn conclude(
        &self,
        execution: Execution,
        out: &Outlet,
    ) -> (Execution, Option<Verdict>) {
        let mut held = self.held.lock().await;
        if let Some(found) = self.found.get() {
            return (ended(execution), Some(found.clone()));
        }
        let mut answer = match execution {
            // Nobody wants it any more, and it may have been cut off while it was let go.
            Execution::Done(_) if self.stop.is_cancelled() => return (execution, None),
            Execution::Done(answer) => answer,
            Execution::Accepted => return self.accepted(&mut held, out).await,
        };
        let said = output_text(&answer);
        let told = answer.error.as_ref().map_or("", |error| error.message.as_str());
        let ends = (held.text.text.len(), held.log.text.len());
        let rest = held.judged(ends);
        // What is held is the end of the answer, as a rule.
        let rest = if said.contains(&rest) { String::new() } else { rest };
        let texts = [said.as_str(), told, &rest];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let subject = Subject { text: texts.join("\n"), ..self.subject.clone() };
        let verdict = self.judge.check(&subject, &self.stop).await;
        match (&verdict, &mut answer.error) {
            (Verdict::Clear, _) => {
                // A mailbox that is closed belongs to a run that is gone.
                let _ = held.release(ends, out).await;
            }
            // It failed anyway, and may be tried again: nothing of it is shown.
            (Verdict::Unavailable(reason), Some(error)) => {
                error.message = format!("what went wrong could not be checked: {reason}");
                return (Execution::Done(answer), None);
            }
            _ => {}
        }
        (Execution::Done(answer), Some(verdict))
    }

    /// The work goes on elsewhere; what came so far is let go, or never shown.
    async fn accepted(&self, held: &mut Held, out: &Outlet) -> (Execution, Option<Verdict>) {
        match self.pass(held, Upto::End, out).await {
            Ok(()) => (Execution::Accepted, None),
            Err(Closed) => match self.found.get() {
                Some(found @ Verdict::Flagged(_)) => {
                    (ended(Execution::Accepted), Some(found.clone()))
                }
                _ => (Execution::Accepted, None),
            },
        }
    }
}

/// What is over because something was found.
fn ended(execution: Execution) -> Execution {
    match execution {
        Execution::Done(_) => execution,
        Execution::Accepted => {
            let message = "it was stopped because of what it said";
            let answer = Answer::failed(CallErrorCode::Cancelled, message);
            Execution::Done(Box::new(Answer { usage: Usage::unknown(), ..answer }))
        }
    }
}

impl Held {
    /// The text for the moderator: what was said and what was logged apart, so
    /// that neither hides a phrase in the other.
    fn judged(&self, (text, log): (usize, usize)) -> String {
        let mut texts = vec![&self.text.text[..text], &self.log.text[..log]];
        for (_, mark) in &self.text.marks {
            if let Emission::Media { url, .. } = mark {
                texts.push(url);
            }
        }
        texts.retain(|text| !text.is_empty());
        texts.join("\n")
    }

    async fn release(&mut self, ends: (usize, usize), out: &Outlet) -> Result<(), Closed> {
        self.log.release(ends.1, Voice::Silent, out).await?;
        self.text.release(ends.0, Voice::Loud, out).await
    }
}

/// Whether the text of a channel is itself what comes out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Loud,
    Silent,
}

impl Channel {
    fn add(&mut self, text: &str) -> usize {
        self.text.push_str(text);
        text.len()
    }

    fn mark(&mut self, emission: Emission) -> usize {
        self.marks.push_back((self.text.len(), emission));
        1
    }

    /// Where what can be judged by now ends: half a word may be another word.
    fn end(&self, upto: Upto) -> usize {
        if upto == Upto::End || self.text.len() > HELD_BYTES_MAX {
            return self.text.len();
        }
        last_break(&self.text).unwrap_or(0)
    }

    /// Where what can be let go ends, of what was judged: before all that could
    /// begin a phrase.
    fn loose(&self, end: usize, upto: Upto) -> usize {
        if upto == Upto::End {
            return end;
        }
        let judged = &self.text[..end];
        let counts = |c: char| !c.is_whitespace() && !is_ignored(c);
        let mut counted = judged.char_indices().rev().filter(|(_, c)| counts(*c));
        let Some((at, _)) = counted.nth(PHRASE_BYTES_MAX) else { return self.overlong(end, 0) };
        let whole = last_break(&judged[..at]).unwrap_or(0);
        self.overlong(end, whole)
    }

    /// What is held is bounded, whatever it is made of.
    fn overlong(&self, end: usize, loose: usize) -> usize {
        if end - loose <= HELD_BYTES_MAX {
            return loose;
        }
        self.text.floor_char_boundary(end - HELD_BYTES_MAX)
    }

    /// Lets go everything before `end`. Whoever drops this half-way lets nothing
    /// go any more: some of it may have gone.
    async fn release(&mut self, mut end: usize, voice: Voice, out: &Outlet) -> Result<(), Closed> {
        loop {
            let mark = self.marks.front().map(|(at, _)| *at).filter(|at| *at <= end);
            let next = mark.unwrap_or(end);
            if next > 0 {
                if voice == Voice::Loud {
                    out.forward(Emission::Text(self.text[..next].to_owned())).await?;
                }
                self.text.drain(..next);
                self.marks.iter_mut().for_each(|(at, _)| *at -= next);
                end -= next;
                continue;
            }
            let Some((_, emission)) = self.marks.front().filter(|_| mark.is_some()) else {
                return Ok(());
            };
            out.forward(emission.clone()).await?;
            self.marks.pop_front();
        }
    }
}

/// The end of the last character that joins no word.
fn last_break(text: &str) -> Option<usize> {
    let breaks = |(_, c): &(usize, char)| !joins(*c) && !is_ignored(*c);
    text.char_indices().rev().find(breaks).map(|(at, c)| at + c.len_utf8())
}

#[cfg(test)]
mod tests;
