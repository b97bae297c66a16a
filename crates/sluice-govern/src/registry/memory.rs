//! Context from the past for agents: notes, and profiles that load them.

use super::row::{Form, row};
use crate::limits::{MEMORY_BYTES_MAX, MEMORY_OUTPUTS_MAX, NOTE_BYTES_MAX};

const NOTE: Form = Form::Prose(NOTE_BYTES_MAX);
const MEMORY_BYTES: Form = Form::Number(1, MEMORY_BYTES_MAX as u64);
const OUTPUTS: Form = Form::Number(1, MEMORY_OUTPUTS_MAX as u64);

row! {
    /// A text that memory profiles load.
    #[derive(Eq)]
    pub struct Note, "NoteDoc", default {
        /// The text.
        required text: String as NOTE,
        /// Whether it came from outside and no person has checked it (false).
        optional untrusted: bool,
        /// Whether it must not leave the organisation (false).
        optional private: bool,
        /// Where the text came from, by name.
        optional origin: Vec<String> as Form::FlowLabels,
        /// Secrets that the text contains, by name.
        optional sensitive: Vec<String> as Form::FlowLabels,
    }
}

row! {
    /// A memory profile: what a step that names it reads from the past.
    #[derive(Eq)]
    pub struct MemoryProfile, "MemoryDoc", default {
        /// Notes by name, in the order of the prompt.
        optional notes: Vec<String>,
        /// The last outputs of an agent, from any run.
        optional last_outputs: Option<LastOutputs>,
        /// The limit for the whole text in bytes (16384); a longer text is cut.
        optional max_bytes: Option<u32> as MEMORY_BYTES,
        /// Where the loaded text came from, by name, besides the origins of its parts.
        optional origin: Vec<String> as Form::FlowLabels,
        /// Secrets that the loaded text contains, by name, besides those of its parts.
        optional sensitive: Vec<String> as Form::FlowLabels,
    }
}

row! {
    /// The last outputs of an agent.
    #[derive(Eq)]
    pub struct LastOutputs, "LastOutputsDoc" {
        /// The agent.
        required agent: String,
        /// The maximum number of outputs, newest first.
        required count: u32 as OUTPUTS,
    }
}
