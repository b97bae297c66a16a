//! Body of a batch of parts, which a bridge sends while it works.
//!
//! The batches of a dispatch are sent in order: each after the engine has accepted the previous
//! one, and repeated unchanged until it is accepted. The result follows the last batch.

use super::{BadBody, bounded, check_step, run_id};
use crate::limits::{MEDIA_URL_BYTES_MAX, NAME_BYTES_MAX, PARTS_MAX, PARTS_NUMBER_MAX};
use serde::{Deserialize, Serialize};
use sluice_core::id::RunId;
use sluice_core::port::adapter::{Emission, ToolContent, ToolEnded};

/// Body of a batch of parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartsBody {
    /// Run of the step.
    #[serde(with = "run_id")]
    pub run_id: RunId,
    /// Step id; `step[3]` for an instance.
    pub step_id: String,
    /// Number of the step's dispatch.
    pub dispatch_no: u32,
    /// Number of the first part within the dispatch, from 0.
    pub first: u64,
    /// The parts, in order.
    pub parts: Vec<AnswerPart>,
}

/// What a bridge reports while it executes a dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerPart {
    /// Text of the answer.
    Text {
        /// Next piece of the text.
        text: String,
    },
    /// An image or audio, by URL.
    Media {
        /// URL of the file.
        url: String,
        /// MIME type.
        mime: String,
    },
    /// A line for the log.
    Log {
        /// The line.
        text: String,
    },
    /// A tool call has ended.
    ToolEnded {
        /// Id of the call.
        call_id: String,
        /// Qualified name of the tool.
        tool: String,
        /// Whether it failed.
        #[serde(default)]
        failed: bool,
        /// Length of its answer, in bytes.
        #[serde(default)]
        bytes: u64,
        /// Duration of the call.
        #[serde(default)]
        duration_ms: u64,
        /// What the tool answered. Without it, the engine treats every value of a later call
        /// as a stranger's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ToolContent>,
    },
}

impl PartsBody {
    /// Parses a body and checks every length and number.
    pub fn read(bytes: &[u8]) -> Result<PartsBody, BadBody> {
        let body: PartsBody =
            serde_json::from_slice(bytes).map_err(|error| BadBody::from_json_error(&error))?;
        check_step(&body.step_id)?;
        if body.parts.is_empty() || body.parts.len() > PARTS_MAX {
            return Err(BadBody(format!("`parts` must have between 1 and {PARTS_MAX} entries")));
        }
        if body.first > PARTS_NUMBER_MAX {
            return Err(BadBody(format!("a dispatch has at most {PARTS_NUMBER_MAX} parts")));
        }
        for part in &body.parts {
            match part {
                AnswerPart::Media { url, mime } => {
                    bounded("url", url, MEDIA_URL_BYTES_MAX)?;
                    bounded("mime", mime, NAME_BYTES_MAX)?;
                }
                AnswerPart::ToolEnded { call_id, tool, .. } => {
                    bounded("call_id", call_id, NAME_BYTES_MAX)?;
                    bounded("tool", tool, NAME_BYTES_MAX)?;
                }
                AnswerPart::Text { .. } | AnswerPart::Log { .. } => {}
            }
        }
        Ok(body)
    }

    /// Converts the parts for the core.
    pub fn emissions(self) -> Vec<Emission> {
        self.parts.into_iter().map(AnswerPart::emission).collect()
    }
}

impl AnswerPart {
    /// Converts an emission; `None` if only the local machine needs it.
    pub(crate) fn from_emission(emission: Emission) -> Option<AnswerPart> {
        Some(match emission {
            Emission::Text(text) => AnswerPart::Text { text },
            Emission::Media { url, mime } => AnswerPart::Media { url, mime },
            Emission::Log(text) => AnswerPart::Log { text },
            Emission::ToolEnded(ended) => AnswerPart::ToolEnded {
                call_id: ended.id,
                tool: ended.tool,
                failed: ended.failed,
                bytes: ended.bytes,
                duration_ms: ended.duration_ms,
                content: ended.content,
            },
            Emission::Process(_) => return None,
        })
    }

    fn emission(self) -> Emission {
        match self {
            AnswerPart::Text { text } => Emission::Text(text),
            AnswerPart::Media { url, mime } => Emission::Media { url, mime },
            AnswerPart::Log { text } => Emission::Log(text),
            AnswerPart::ToolEnded { call_id, tool, failed, bytes, duration_ms, content } => {
                let id = call_id;
                let ended = ToolEnded { id, tool, failed, bytes, duration_ms, content };
                Emission::ToolEnded(ended)
            }
        }
    }

    /// Approximate size.
    pub fn bytes(&self) -> usize {
        match self {
            AnswerPart::Text { text } | AnswerPart::Log { text } => text.len(),
            AnswerPart::Media { url, mime } => url.len() + mime.len(),
            AnswerPart::ToolEnded { call_id, tool, content, .. } => {
                let content = content.as_ref().map_or(0, ToolContent::bytes);
                call_id.len() + tool.len() + content
            }
        }
    }
}
