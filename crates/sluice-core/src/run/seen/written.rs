//! What was seen, in a snapshot of its run. The index is built again when it is needed.

use super::{OpenCall, OutputSeen, SeenLog, SeenSource};
use crate::id::ApprovalId;
use crate::journal::event::{EndedCall, StepAt, StepOutcome};
use crate::port::adapter::ToolEnded;
use crate::run::state::StepState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_govern::catalog::AnswerFields;
use std::sync::Arc;

/// The sources of values, as they are written.
#[derive(Serialize, Deserialize)]
pub(crate) struct WrittenSeen {
    sources: Vec<WrittenSource>,
    open: Vec<OpenCall>,
    content_bytes: usize,
}

#[derive(Serialize, Deserialize)]
enum WrittenSource {
    Prompt(u32),
    /// The step, whether a person made it, and the outcome unless the step still has it.
    Output(u32, bool, Option<Arc<StepOutcome>>),
    Answer(StepAt, Box<WrittenCall>),
    Comment(ApprovalId),
}

/// An ended call. The content is written as JSON text, because its form leaves fields out.
#[derive(Serialize, Deserialize)]
struct WrittenCall {
    id: String,
    tool: String,
    failed: bool,
    bytes: u64,
    duration_ms: u64,
    content: Option<String>,
    records: Vec<String>,
    private: Vec<String>,
    lists: Vec<String>,
}

impl WrittenSeen {
    /// What a snapshot keeps, next to the states of the steps.
    pub(crate) fn new(seen: &SeenLog, steps: &[StepState]) -> WrittenSeen {
        let sources = seen.sources.iter().map(|source| match source {
            SeenSource::Prompt(step) => WrittenSource::Prompt(*step),
            SeenSource::Output(OutputSeen { step, by_person, outcome }) => {
                let current = steps[*step as usize].outcome();
                let is_current = current.is_some_and(|current| Arc::ptr_eq(current, outcome));
                let outcome = (!is_current).then(|| Arc::clone(outcome));
                WrittenSource::Output(*step, *by_person, outcome)
            }
            SeenSource::Answer(at, call) => {
                WrittenSource::Answer(*at, Box::new(WrittenCall::new(call)))
            }
            SeenSource::Comment(approval) => WrittenSource::Comment(*approval),
        });
        let (open, content_bytes) = (seen.open.clone(), seen.content_bytes);
        WrittenSeen { sources: sources.collect(), open, content_bytes }
    }

    /// The sources as the run keeps them; `None` if they do not fit the steps.
    pub(crate) fn read(self, steps: &[StepState]) -> Option<SeenLog> {
        let source = |source| {
            Some(match source {
                WrittenSource::Prompt(step) => {
                    steps.get(step as usize)?;
                    SeenSource::Prompt(step)
                }
                WrittenSource::Output(step, by_person, outcome) => {
                    let state = steps.get(step as usize)?;
                    let outcome = outcome.or_else(|| state.outcome().cloned())?;
                    SeenSource::Output(OutputSeen { step, by_person, outcome })
                }
                WrittenSource::Answer(at, call) => SeenSource::Answer(at, Arc::new(call.read()?)),
                WrittenSource::Comment(approval) => SeenSource::Comment(approval),
            })
        };
        let WrittenSeen { sources, open, content_bytes } = self;
        let sources: Option<Vec<SeenSource>> = sources.into_iter().map(source).collect();
        Some(SeenLog { sources: sources?, open, content_bytes, ..SeenLog::default() })
    }
}

impl WrittenCall {
    fn new(call: &EndedCall) -> WrittenCall {
        let EndedCall { ended, fields } = call.clone();
        let ToolEnded { id, tool, failed, bytes, duration_ms, content } = ended;
        let AnswerFields { records, private, lists } = fields;
        let content = content.map(|content| json!(content).to_string());
        WrittenCall { id, tool, failed, bytes, duration_ms, content, records, private, lists }
    }

    fn read(self) -> Option<EndedCall> {
        let content = match self.content {
            Some(text) => Some(serde_json::from_str::<Value>(&text).ok()?),
            None => None,
        };
        let content = content.map(serde_json::from_value).transpose().ok()?;
        let WrittenCall { id, tool, failed, bytes, duration_ms, .. } = self;
        let ended = ToolEnded { id, tool, failed, bytes, duration_ms, content };
        let WrittenCall { records, private, lists, .. } = self;
        let fields = AnswerFields { records, private, lists };
        Some(EndedCall { ended, fields })
    }
}
