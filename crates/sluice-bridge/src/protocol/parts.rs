//! Parts of an answer, as a bridge delivers them while it works.
//!
//! Batches of one dispatch follow each other: a batch is sent when the engine has the
//! one before it, and sent again unchanged until the engine has it. The result follows
//! the last of them.

use super::{BadBody, bounded, check_step, run_id};
use crate::limits::{MEDIA_URL_BYTES_MAX, NAME_BYTES_MAX, PARTS_MAX, PARTS_NUMBER_MAX};
use serde::{Deserialize, Serialize};
use sluice_core::port::adapter::{Emission, ToolEnded};
use sluice_core::run::id::RunId;

/// Some parts of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartsBody {
    /// The run.
    #[serde(with = "run_id")]
    pub run_id: RunId,
    /// The step; `step[3]` for an instance.
    pub step_id: String,
    /// Which dispatch of it.
    pub dispatch_no: u32,
    /// The number of the first part within the dispatch, from 0.
    pub first: u64,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Text of the answer.
    Text {
        /// This much of it.
        text: String,
    },
    /// A picture or sound, by address.
    Media {
        /// Where it is.
        url: String,
        /// What it is.
        mime: String,
    },
    /// A line for the log.
    Log {
        /// The line.
        text: String,
    },
    /// A tool that was allowed has answered.
    ToolEnded {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Whether it failed.
        #[serde(default)]
        failed: bool,
        /// How long its answer was.
        #[serde(default)]
        bytes: u64,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
    },
}

impl PartsBody {
    /// Reads one, and checks every length and number.
    pub fn read(bytes: &[u8]) -> Result<PartsBody, BadBody> {
        let body: PartsBody = serde_json::from_slice(bytes).map_err(|error| BadBody::of(&error))?;
        check_step(&body.step_id)?;
        if body.parts.is_empty() || body.parts.len() > PARTS_MAX {
            return Err(BadBody(format!("`parts` has 1 to {PARTS_MAX} entries")));
        }
        if body.first > PARTS_NUMBER_MAX {
            return Err(BadBody(format!("a dispatch has at most {PARTS_NUMBER_MAX} parts")));
        }
        for part in &body.parts {
            match part {
                Part::Media { url, mime } => {
                    bounded("url", url, MEDIA_URL_BYTES_MAX)?;
                    bounded("mime", mime, NAME_BYTES_MAX)?;
                }
                Part::ToolEnded { call_id, tool, .. } => {
                    bounded("call_id", call_id, NAME_BYTES_MAX)?;
                    bounded("tool", tool, NAME_BYTES_MAX)?;
                }
                Part::Text { .. } | Part::Log { .. } => {}
            }
        }
        Ok(body)
    }

    /// What the parts mean to the core.
    pub fn emissions(self) -> Vec<Emission> {
        self.parts.into_iter().map(Part::emission).collect()
    }
}

impl Part {
    /// Of what an adapter emits; none of what only its own machine needs.
    pub fn of(emission: Emission) -> Option<Part> {
        Some(match emission {
            Emission::Text(text) => Part::Text { text },
            Emission::Media { url, mime } => Part::Media { url, mime },
            Emission::Log(text) => Part::Log { text },
            Emission::ToolEnded(ended) => Part::ToolEnded {
                call_id: ended.id,
                tool: ended.tool,
                failed: ended.failed,
                bytes: ended.bytes,
                duration_ms: ended.duration_ms,
            },
            Emission::Process(_) => return None,
        })
    }

    fn emission(self) -> Emission {
        match self {
            Part::Text { text } => Emission::Text(text),
            Part::Media { url, mime } => Emission::Media { url, mime },
            Part::Log { text } => Emission::Log(text),
            Part::ToolEnded { call_id, tool, failed, bytes, duration_ms } => {
                Emission::ToolEnded(ToolEnded { id: call_id, tool, failed, bytes, duration_ms })
            }
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Part::Text { text } | Part::Log { text } => text.len(),
            Part::Media { url, mime } => url.len() + mime.len(),
            Part::ToolEnded { call_id, tool, .. } => call_id.len() + tool.len(),
        }
    }
}
