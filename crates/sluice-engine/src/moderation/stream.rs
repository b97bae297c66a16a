//! Withholds the streamed output of a moderated step until the moderator clears it.
//!
//! Text is collected in a window. A cleared window is released except for its end: that
//! may be the start of a flagged phrase and is checked again with the text that follows.
//! Log lines and media URLs are withheld in the same way.
//!
//! INVARIANT: nothing is released before its check has passed, and no part of a flagged
//! phrase of up to `PHRASE_BYTES_MAX` bytes is released, however the stream is split.
//! After a finding nothing is released any more.

use crate::moderation::ask::ModeratorClient;
use crate::perform::CallOutput;
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

/// Most text that is withheld until a word or phrase is complete.
const WITHHELD_BYTES_MAX: usize = 64 * 1024;

/// The output stream of one call.
pub(crate) struct ModeratedStream {
    moderator: Arc<ModeratorClient>,
    /// The step that is checked; each check fills in the text.
    subject: Subject,
    /// Cancels the call after a finding.
    stop: CancellationToken,
    withheld: Mutex<Withheld>,
    added: Notify,
    found: OnceLock<Verdict>,
}

#[derive(Default)]
struct Withheld {
    text: MarkedText,
    log: MarkedText,
    /// Bytes since the last check, and when the first of them arrived.
    fresh: usize,
    since: Option<Instant>,
}

/// Text, and the other emissions at their positions in it.
#[derive(Default)]
struct MarkedText {
    text: String,
    marks: VecDeque<(usize, Emission)>,
}

/// How much of the withheld text is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckUpTo {
    /// Up to the last complete word.
    LastWord,
    /// Everything: the stream has ended.
    End,
}

impl ModeratedStream {
    pub(crate) fn new(
        moderator: Arc<ModeratorClient>,
        subject: Subject,
        stop: CancellationToken,
    ) -> ModeratedStream {
        let (withheld, added, found) = (Mutex::default(), Notify::new(), OnceLock::new());
        ModeratedStream { moderator, subject, stop, withheld, added, found }
    }

    /// Withholds an emission. A full window is checked before this returns, which slows
    /// the adapter down.
    pub(crate) async fn emit(&self, emission: Emission, out: &CallOutput) -> Result<(), Closed> {
        if self.found.get().is_some() {
            return Err(Closed);
        }
        let mut withheld = self.withheld.lock().await;
        let bytes = match emission {
            // Carries no text, and must be journalled first.
            Emission::Process(_) | Emission::ToolEnded(_) => return out.forward(emission).await,
            Emission::Text(text) => withheld.text.add(&text),
            Emission::Media { .. } => withheld.text.mark(emission),
            Emission::Log(line) => {
                let bytes = withheld.log.add(&line) + withheld.log.add("\n");
                withheld.log.mark(Emission::Log(line));
                bytes
            }
        };
        withheld.fresh += bytes;
        withheld.since.get_or_insert_with(Instant::now);
        self.added.notify_one();
        if withheld.fresh < self.moderator.config.window_bytes {
            return Ok(());
        }
        self.check_and_release(&mut withheld, CheckUpTo::LastWord, out).await
    }

    /// Checks a value that leaves the step outside the stream.
    pub(crate) async fn clears(&self, value: &Value) -> bool {
        let subject = Subject { text: texts(value), ..self.subject.clone() };
        self.moderator.check(&subject, &self.stop).await == Verdict::Clear
    }

    /// Checks a partly filled window when its time is over. Never returns.
    pub(crate) async fn release_on_timeout(&self, out: &CallOutput) {
        let window = Duration::from_millis(self.moderator.config.window_ms);
        loop {
            let since = self.withheld.lock().await.since;
            let Some(since) = since else {
                self.added.notified().await;
                continue;
            };
            tokio::time::sleep_until(since + window).await;
            let mut withheld = self.withheld.lock().await;
            let passed = match withheld.since == Some(since) {
                true => self.check_and_release(&mut withheld, CheckUpTo::LastWord, out).await,
                false => Ok(()),
            };
            drop(withheld);
            if passed.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// Checks the withheld text and releases what is safe.
    async fn check_and_release(
        &self,
        withheld: &mut Withheld,
        upto: CheckUpTo,
        out: &CallOutput,
    ) -> Result<(), Closed> {
        let ends = (withheld.text.end(upto), withheld.log.end(upto));
        let text = withheld.text_to_check(ends);
        if !text.is_empty() {
            let subject = Subject { text, ..self.subject.clone() };
            self.stop_unless_clear(self.moderator.check(&subject, &self.stop).await)?;
        }
        withheld.fresh = 0;
        withheld.since = None;
        withheld
            .release(
                (withheld.text.releasable(ends.0, upto), withheld.log.releasable(ends.1, upto)),
                out,
            )
            .await
    }

    /// Cancels the call unless the verdict is `Clear`.
    fn stop_unless_clear(&self, verdict: Verdict) -> Result<(), Closed> {
        if verdict == Verdict::Clear {
            return Ok(());
        }
        let _ = self.found.set(verdict);
        self.stop.cancel();
        Err(Closed)
    }

    /// Checks a whole result and releases what is still withheld. Returns the verdict
    /// with the result.
    pub(crate) async fn conclude(
        &self,
        execution: Execution,
        out: &CallOutput,
    ) -> (Execution, Option<Verdict>) {
        let mut withheld = self.withheld.lock().await;
        if let Some(found) = self.found.get() {
            return (stopped(execution), Some(found.clone()));
        }
        let mut answer = match execution {
            // A cancelled call: its result is unwanted, and its stream may be incomplete.
            Execution::Done(_) if self.stop.is_cancelled() => return (execution, None),
            Execution::Done(answer) => answer,
            Execution::Accepted => return self.conclude_accepted(&mut withheld, out).await,
        };
        let output = output_text(&answer);
        let error_text = answer.error.as_ref().map_or("", |error| error.message.as_str());
        let ends = (withheld.text.text.len(), withheld.log.text.len());
        let rest = withheld.text_to_check(ends);
        // Usually the withheld text is the end of the answer.
        let rest = if output.contains(&rest) { String::new() } else { rest };
        let texts = [output.as_str(), error_text, &rest];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let subject = Subject { text: texts.join("\n"), ..self.subject.clone() };
        let verdict = self.moderator.check(&subject, &self.stop).await;
        match (&verdict, &mut answer.error) {
            (Verdict::Clear, _) => {
                // A closed mailbox belongs to a run that has left memory.
                let _ = withheld.release(ends, out).await;
            }
            // The attempt failed and may be retried: hide its unchecked message.
            (Verdict::Unavailable(reason), Some(error)) => {
                error.message = format!("the error message could not be moderated: {reason}");
                return (Execution::Done(answer), None);
            }
            _ => {}
        }
        (Execution::Done(answer), Some(verdict))
    }

    /// A bridge accepted the work: releases what was streamed so far if it is clear.
    async fn conclude_accepted(
        &self,
        withheld: &mut Withheld,
        out: &CallOutput,
    ) -> (Execution, Option<Verdict>) {
        match self.check_and_release(withheld, CheckUpTo::End, out).await {
            Ok(()) => (Execution::Accepted, None),
            Err(Closed) => match self.found.get() {
                Some(found @ Verdict::Flagged(_)) => {
                    (stopped(Execution::Accepted), Some(found.clone()))
                }
                _ => (Execution::Accepted, None),
            },
        }
    }
}

/// The result of a call that was cancelled because of a finding.
fn stopped(execution: Execution) -> Execution {
    match execution {
        Execution::Done(_) => execution,
        Execution::Accepted => {
            let message = "cancelled: the moderator did not clear its output";
            let answer = Answer::failed(CallErrorCode::Cancelled, message);
            Execution::Done(Box::new(Answer { usage: Usage::unknown(), ..answer }))
        }
    }
}

impl Withheld {
    /// The text to check. Output and log are kept apart, so that neither hides a phrase in
    /// the other.
    fn text_to_check(&self, (text, log): (usize, usize)) -> String {
        let mut texts = vec![&self.text.text[..text], &self.log.text[..log]];
        for (_, mark) in &self.text.marks {
            if let Emission::Media { url, .. } = mark {
                texts.push(url);
            }
        }
        texts.retain(|text| !text.is_empty());
        texts.join("\n")
    }

    async fn release(&mut self, ends: (usize, usize), out: &CallOutput) -> Result<(), Closed> {
        self.log.release(ends.1, Release::MarksOnly, out).await?;
        self.text.release(ends.0, Release::TextAndMarks, out).await
    }
}

/// Whether the text itself is emitted, or only the marks in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Release {
    TextAndMarks,
    MarksOnly,
}

impl MarkedText {
    fn add(&mut self, text: &str) -> usize {
        self.text.push_str(text);
        text.len()
    }

    fn mark(&mut self, emission: Emission) -> usize {
        self.marks.push_back((self.text.len(), emission));
        1
    }

    /// End of the text that can be checked now: an incomplete word may become another word.
    fn end(&self, upto: CheckUpTo) -> usize {
        if upto == CheckUpTo::End || self.text.len() > WITHHELD_BYTES_MAX {
            return self.text.len();
        }
        last_break(&self.text).unwrap_or(0)
    }

    /// End of the checked text that can be released: everything that may start a phrase
    /// stays.
    fn releasable(&self, end: usize, upto: CheckUpTo) -> usize {
        if upto == CheckUpTo::End {
            return end;
        }
        let checked = &self.text[..end];
        let is_significant = |c: char| !c.is_whitespace() && !is_ignored(c);
        let mut significant = checked.char_indices().rev().filter(|(_, c)| is_significant(*c));
        let Some((at, _)) = significant.nth(PHRASE_BYTES_MAX) else {
            return self.at_most_max(end, 0);
        };
        let whole = last_break(&checked[..at]).unwrap_or(0);
        self.at_most_max(end, whole)
    }

    /// Bounds the withheld text, whatever it consists of.
    fn at_most_max(&self, end: usize, loose: usize) -> usize {
        if end - loose <= WITHHELD_BYTES_MAX {
            return loose;
        }
        self.text.floor_char_boundary(end - WITHHELD_BYTES_MAX)
    }

    /// Releases everything before `end`. Must not be dropped half-way: part of the text
    /// would be lost.
    async fn release(
        &mut self,
        mut end: usize,
        what: Release,
        out: &CallOutput,
    ) -> Result<(), Closed> {
        loop {
            let mark = self.marks.front().map(|(at, _)| *at).filter(|at| *at <= end);
            let next = mark.unwrap_or(end);
            if next > 0 {
                if what == Release::TextAndMarks {
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

/// The end of the last character that separates words.
fn last_break(text: &str) -> Option<usize> {
    let breaks = |(_, c): &(usize, char)| !joins(*c) && !is_ignored(*c);
    text.char_indices().rev().find(breaks).map(|(at, c)| at + c.len_utf8())
}

#[cfg(test)]
mod tests;
