//! Standing instructions of the platform and of the owner, and their directives.

use super::row::{Form, row};
use crate::choice::choices;
use crate::limits::INSTRUCTION_BYTES_MAX;
use serde_json::Value;
use std::collections::BTreeMap;

const INSTRUCTION: Form = Form::Prose(INSTRUCTION_BYTES_MAX);

// A looser layer that contradicts a directive is refused.
row! {
    /// An instruction for every matching prompt, with binding rules.
    pub struct Instruction, "InstructionDoc" {
        /// Its layer: `platform` (layer 2) or `owner` (layer 3).
        required layer: InstructionLayer,
        /// The text in the prompt.
        optional text: String as INSTRUCTION,
        /// Only for runs of these workflows; by default all.
        optional workflows: Vec<String>,
        /// Only for steps of these agents; by default all.
        optional agents: Vec<String>,
        /// Tools that steps may request; by default any.
        optional allow_tools: Vec<String>,
        /// Tools that steps may not request.
        optional deny_tools: Vec<String>,
        /// Models that steps may use; by default any.
        optional models: Vec<String>,
        /// Kinds that lenses may have; by default any.
        optional output_kinds: Vec<LensKind>,
        /// Whether steps may load memory (allow).
        optional memory: MemoryUse,
        /// Fixed values: arguments and `param_overrides` by name.
        optional pin: BTreeMap<String, Value>,
    }
}

choices! {
    /// The layer that issues an instruction. The first is the stricter one.
    pub enum InstructionLayer, "a layer of instructions" {
        /// The operator of the platform: layer 2.
        Platform = "platform",
        /// The owner of the workflows: layer 3.
        Owner = "owner",
    }
}

choices! {
    /// Whether steps may load memory.
    #[derive(Default)]
    pub enum MemoryUse, "a use of memory" {
        /// Allowed.
        #[default]
        Allow = "allow",
        /// Forbidden.
        Deny = "deny",
    }
}

choices! {
    /// What a lens produces or does.
    pub enum LensKind, "a lens kind" {
        /// The lens answers with text.
        Text = "text",
        /// The lens answers with an image.
        Image = "image",
        /// The lens answers with a video.
        Video = "video",
        /// A sound.
        Audio = "audio",
        /// A piece of music.
        Music = "music",
        /// Research findings.
        Research = "research",
        /// A PDF file.
        Pdf = "pdf",
        /// Transformed data.
        Transform = "transform",
        /// The coordination of other work.
        Orchestration = "orchestration",
        /// A judgement of other work.
        Validation = "validation",
        /// A choice of route.
        Routing = "routing",
    }
}

impl Instruction {
    /// Whether it applies to a step of this workflow and agent.
    pub fn applies(&self, workflow: &str, agent: &str) -> bool {
        let among = |list: &[String], one: &str| list.is_empty() || list.iter().any(|it| it == one);
        among(&self.workflows, workflow) && among(&self.agents, agent)
    }
}
