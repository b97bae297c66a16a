//! The format of prompt parts in a setup: notes, memory profiles, instructions.

use crate::choice::Choice;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::{Table, WholeNumber};
use crate::doc::read::{DocumentReader, Read, document};
use crate::doc::schema::Defs;
use crate::limits::{
    INSTRUCTION_BYTES_MAX, MEMORY_BYTES_MAX, MEMORY_NOTES_MAX, MEMORY_OUTPUTS_MAX, NOTE_BYTES_MAX,
};
use crate::node::Node;
use crate::plan::policy::LensKind;
use serde_json::Value;
use sluice_govern::registry::{MemoryUse, Whose};

impl Choice for Whose {
    const WHAT: &'static str = "a layer of instructions";
    const WORDS: &'static [(&'static str, Self)] =
        &[("platform", Whose::Platform), ("owner", Whose::Owner)];
}

impl Choice for MemoryUse {
    const WHAT: &'static str = "a use of memory";
    const WORDS: &'static [(&'static str, Self)] =
        &[("allow", MemoryUse::Allow), ("deny", MemoryUse::Deny)];
}

/// A text of at most `MAX` bytes.
#[derive(Debug, Clone)]
pub(crate) struct Prose<const MAX: usize>;

impl<const MAX: usize> Read for Prose<MAX> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Prose<MAX>> {
        let text = cx.text(node)?;
        if text.len() > MAX {
            let message = format!("the text is {} bytes; the limit is {MAX}", text.len());
            cx.add(Problem::new(Code::BadValue, node.span, message));
            return None;
        }
        Some(Prose)
    }

    fn schema(_: &mut Defs) -> Value {
        serde_json::json!({ "type": "string", "maxLength": MAX })
    }
}

document! {
    /// A text that memory profiles load.
    pub(crate) struct NoteDoc {
        /// The text.
        required "text" text: Prose<NOTE_BYTES_MAX>,
        /// Whether it came from outside and no person has checked it (false).
        optional "untrusted" untrusted: bool,
        /// Whether it must not leave the organisation (false).
        optional "private" private: bool,
    }
}

document! {
    /// A memory profile: what a step that names it reads from the past.
    pub(crate) struct MemoryDoc {
        /// Notes by name, in the order of the prompt.
        optional "notes" notes: Vec<String>,
        /// The last outputs of an agent, from any run.
        optional "last_outputs" last_outputs: LastOutputsDoc,
        /// The limit for the whole text in bytes (16384); a longer text is cut.
        optional "max_bytes" max_bytes: WholeNumber<1, { MEMORY_BYTES_MAX as u64 }>,
    }
}

document! {
    /// The last outputs of an agent.
    pub(crate) struct LastOutputsDoc {
        /// The agent.
        required "agent" agent: String,
        /// The maximum number of outputs, newest first.
        required "count" count: WholeNumber<1, { MEMORY_OUTPUTS_MAX as u64 }>,
    }
}

/// A memory profile that is neither empty nor too large.
#[derive(Debug, Clone)]
pub(crate) struct Memory;

impl Read for Memory {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Memory> {
        let map = MemoryDoc::read(node, cx)?;
        let notes = map.notes.as_ref().map_or(0, Vec::len);
        if notes == 0 && map.last_outputs.is_none() {
            let message = "`notes` or `last_outputs` is missing";
            cx.add(Problem::new(Code::MissingField, node.span, message));
        }
        if notes > MEMORY_NOTES_MAX {
            let message = format!("there are {notes} notes; the limit is {MEMORY_NOTES_MAX}");
            cx.add(Problem::new(Code::BadValue, node.span, message));
        }
        Some(Memory)
    }

    fn schema(defs: &mut Defs) -> Value {
        MemoryDoc::schema(defs)
    }
}

document! {
    /// An instruction for every matching prompt, with binding rules.
    pub(crate) struct InstructionDoc {
        /// Its layer: `platform` (layer 2) or `owner` (layer 3).
        required "layer" layer: Whose,
        /// The text in the prompt.
        optional "text" text: Prose<INSTRUCTION_BYTES_MAX>,
        /// Only for runs of these workflows; by default all.
        optional "workflows" workflows: Vec<String>,
        /// Only for steps of these agents; by default all.
        optional "agents" agents: Vec<String>,
        /// Tools that steps may request; by default any.
        optional "allow_tools" allow_tools: Vec<String>,
        /// Tools that steps may not request.
        optional "deny_tools" deny_tools: Vec<String>,
        /// Models that steps may use; by default any.
        optional "models" models: Vec<String>,
        /// Kinds that lenses may have; by default any.
        optional "output_kinds" output_kinds: Vec<LensKind>,
        /// Whether steps may load memory (allow).
        optional "memory" memory: MemoryUse,
        /// Fixed values: arguments and `param_overrides` by name.
        optional "pin" pin: Table<Value>,
    }
}
