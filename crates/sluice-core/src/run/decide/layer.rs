//! The layers of a step's prompt: gathered, compared, kept with what it is given.

use super::Turn;
use super::bind::{SHELL, Unfit};
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Assignee, LogLine, Prepared, StepAt, StepEvent};
use crate::label::label;
use crate::layers::{Bounds, Layer, Sheet, Wants, contradictions, number};
use crate::limits::LAYERS_BYTES_MAX;
use crate::memory;
use crate::plan::Member;
use crate::plan::step::Work;
use crate::port::memo::Memo;
use sluice_govern::registry::{Instruction, MemoryUse, Whose};

/// The variable that holds memory, for a shell.
const MEMORY_VARIABLE: &str = "SLUICE_MEMORY";

/// The profile that a step loads, and the layer that says so.
type Profile<'a> = (&'a str, u8, String);

impl Turn<'_> {
    /// Adds the layers that are not in the plan. A step that has none is left as
    /// it is, and nothing of it is written down.
    pub(super) fn add_layers(&self, at: StepAt, prepared: &mut Prepared) -> Result<(), Unfit> {
        let step = self.run.step(at);
        if !matches!(step.work, Work::Command { .. } | Work::Lens(_)) || self.has_no_layers(at) {
            return Ok(());
        }
        let agent = self.run.agent_of(at.step).unwrap_or_default();
        let profile = self.profile(at, agent);
        self.agree(at)?;
        let mut layers = self.standing(at, agent);
        if let Some((name, _, _)) = profile {
            let loaded = self.recall(name).unwrap_or_default();
            prepared.labels = prepared.labels.with(loaded.labels);
            if agent == SHELL {
                prepared.env.push((MEMORY_VARIABLE.to_owned(), loaded.text.clone()));
            }
            // Of a past without anything in it there is nothing to tell.
            if !loaded.text.is_empty() {
                let (number, source) = (number::MEMORY, name.to_owned());
                layers.push(Layer { number, source, text: loaded.text });
            }
        }
        let bytes: usize = layers.iter().map(|layer| layer.text.len()).sum();
        if bytes > LAYERS_BYTES_MAX {
            let message =
                format!("the layers are {bytes} bytes, over the {LAYERS_BYTES_MAX} allowed");
            return Err(Failure::new(Code::ContextTooLarge, message).into());
        }
        if !layers.is_empty() {
            layers.insert(0, Layer::guardrails());
        }
        prepared.layers = layers;
        Ok(())
    }

    /// Whether no layer contradicts a stricter one. What was prepared earlier is
    /// held to what is in force now.
    pub(super) fn agree(&self, at: StepAt) -> Result<(), Unfit> {
        let step = self.run.step(at);
        if !matches!(step.work, Work::Command { .. } | Work::Lens(_)) || self.has_no_layers(at) {
            return Ok(());
        }
        let agent = self.run.agent_of(at.step).unwrap_or_default();
        let profile = self.profile(at, agent);
        let found = contradictions(&self.sheets(at, agent, profile.as_ref()));
        match Failure::of(Code::LayerContradiction, found) {
            Some(failure) => Err(Unfit::Layers(failure)),
            None => Ok(()),
        }
    }

    /// Whether a step plainly has none: the usual case, and it costs nothing.
    fn has_no_layers(&self, at: StepAt) -> bool {
        let authority = self.given.authority;
        let agent = self.run.agent_of(at.step).and_then(|name| authority.agent(name));
        self.run.definition.plan.team.is_none()
            && authority.fabric().instructions.is_empty()
            && self.run.step(at).memory.is_none()
            && agent.is_none_or(|agent| agent.system_prompt.is_none() && agent.memory.is_none())
    }

    /// The memory a step loads: its own, else its member's, else its agent's.
    fn profile(&self, at: StepAt, agent: &str) -> Option<Profile<'_>> {
        let step = self.run.step(at);
        let member = self.run.member_of(at.step);
        let own = step.memory.as_deref().map(|name| (name, number::NODE, step.id.clone()));
        own.or_else(|| {
            let member = member?;
            let name = member.memory_profile.as_deref()?;
            Some((name, number::PERSONALITY, format!("member {}", member.id)))
        })
        .or_else(|| {
            let row = self.given.authority.agent(agent)?;
            Some((row.memory.as_deref()?, number::PERSONALITY, format!("agent {agent}")))
        })
    }

    /// What a profile loads; none if there is no such profile.
    fn recall(&self, name: &str) -> Option<memory::Loaded> {
        let fabric = self.given.authority.fabric();
        let profile = fabric.memories.get(name)?;
        let mut memos: Vec<Memo> = Vec::new();
        if let Some(last) = &profile.last_outputs {
            memos.extend(self.memos.iter().rev().cloned());
            memos.extend(self.given.authority.memos(&last.agent).iter().cloned());
        }
        Some(memory::load(fabric, profile, &memos))
    }

    /// Says in the step's log what of its memory is not there. A step goes on
    /// without, but not in silence.
    pub(super) fn tell_missing_memory(&mut self, at: StepAt) {
        let works = matches!(self.run.step(at).work, Work::Command { .. } | Work::Lens(_));
        if !works || self.has_no_layers(at) {
            return;
        }
        let agent = self.run.agent_of(at.step).unwrap_or_default();
        let Some((name, _, _)) = self.profile(at, agent) else { return };
        let fabric = self.given.authority.fabric();
        let text = match fabric.memories.get(name) {
            None => format!("there is no memory profile `{name}`; nothing was loaded"),
            Some(profile) => {
                let gone = profile.notes.iter().filter(|note| !fabric.notes.contains_key(*note));
                let gone: Vec<String> = gone.map(|note| format!("`{note}`")).collect();
                if gone.is_empty() {
                    return;
                }
                format!(
                    "memory profile `{name}` names notes that are not there: {}",
                    gone.join(", ")
                )
            }
        };
        let dispatch_no = self.run.state(at).dispatch_no;
        self.node(at, StepEvent::Log { dispatch_no, line: LogLine::Text(text) });
    }

    /// Remembers an answer, if some memory profile loads those of its agent.
    pub(super) fn remember(&mut self, at: StepAt, event: &StepEvent) {
        let remembered = &self.given.authority.fabric().remembered;
        let StepEvent::Completed(done) = event else { return };
        if remembered.is_empty() || done.carried.is_some() {
            return;
        }
        let agent = self.run.state(at).agent();
        if let Some(agent) = agent.filter(|agent| remembered.contains(*agent)) {
            let (run, step) = (self.run.id, self.run.name(at));
            let memo = memory::memo(agent, run, &step, &done.outcome, self.given.now_ms);
            self.memos.push(memo);
        }
    }

    fn instructions(&self, agent: &str) -> Vec<(&String, &Instruction)> {
        let workflow = &self.run.started.workflow;
        let rows = self.given.authority.fabric().instructions.iter();
        let mut rows: Vec<_> = rows.filter(|(_, row)| row.applies(workflow, agent)).collect();
        rows.sort_by_key(|(_, row)| row.layer);
        rows
    }

    /// Layers 2 to 5, as texts.
    fn standing(&self, at: StepAt, agent: &str) -> Vec<Layer> {
        let mut layers = Vec::new();
        let mut add = |number: u8, source: String, text: &str| {
            if !text.trim().is_empty() {
                layers.push(Layer { number, source, text: text.trim_end().to_owned() });
            }
        };
        for (name, row) in self.instructions(agent) {
            add(layer_of(row.layer), name.clone(), &row.text);
        }
        let member = self.run.member_of(at.step);
        if let Some(member) = member {
            let text = profile_text(member, &self.run.tools_of(at.step));
            add(number::TEAM, format!("member {}", member.id), &text);
        }
        let row = self.given.authority.agent(agent);
        if let Some(text) = row.and_then(|row| row.system_prompt.as_deref()) {
            add(number::PERSONALITY, format!("agent {agent}"), text);
        }
        if let Some((member, text)) =
            member.and_then(|m| Some((m, m.system_prompt_patch.as_ref()?)))
        {
            add(number::PERSONALITY, format!("member {}", member.id), text);
        }
        layers
    }

    /// What each layer bounds and wants.
    fn sheets(&self, at: StepAt, agent: &str, profile: Option<&Profile<'_>>) -> Vec<Sheet> {
        let step = self.run.step(at);
        let mut sheets: Vec<Sheet> = self.instructions(agent).into_iter().map(of_row).collect();
        sheets.extend(self.run.member_of(at.step).map(|member| self.of_member(at, member)));
        let row = self.given.authority.agent(agent);
        let unnamed = self.run.model_of(at.step).is_none();
        let model = row.and_then(|row| row.model.clone()).filter(|_| unnamed);
        let configured = self.run.started.fallback_model.clone();
        let configured = configured.filter(|_| unnamed && model.is_none());
        let of_agent = format!("agent {agent}");
        let mut wants = vec![
            (number::PERSONALITY, of_agent, Wants { model, ..Wants::default() }),
            (
                number::PERSONALITY,
                "configuration".to_owned(),
                Wants { model: configured, ..Wants::default() },
            ),
        ];
        // A model that the caller names is the caller's want, unless the step has its own.
        let of_caller = self.run.started.default_model.clone().filter(|_| step.model.is_none());
        let of_document = self.run.definition.plan.default_model.clone();
        let of_document = of_document.filter(|_| of_caller.is_none());
        let mut own = Wants {
            tools: step.tools.clone(),
            model: step.model.clone().or(of_document),
            tier: step.required_tier.clone(),
            ..Wants::default()
        };
        if let Work::Lens(work) = &step.work {
            let output_kind = Some(work.lens_kind.to_string());
            let source = format!("{}@{}", work.lens_id, work.version_id);
            wants.push((number::LENS, source, Wants { output_kind, ..Wants::default() }));
            let sets = work.param_overrides.iter();
            own.sets = sets.map(|(name, value)| (label(name), value.clone())).collect();
        }
        wants.push((number::NODE, step.id.clone(), own));
        let sets = self.run.started.args.iter();
        let sets = sets.map(|(name, value)| (label(name), value.clone())).collect();
        let given = Wants { sets, model: of_caller, ..Wants::default() };
        wants.push((number::CALLER, self.run.started.initiator.clone(), given));
        if let Some((name, number, source)) = profile {
            let memory = Some((*name).to_owned());
            wants.push((*number, source.clone(), Wants { memory, ..Wants::default() }));
        }
        sheets.extend(wants.into_iter().map(|(number, source, wants)| Sheet {
            number,
            source,
            wants,
            ..Sheet::default()
        }));
        sheets
    }

    /// A member's profile binds the node. An assignment overrides the tier, but
    /// grants no tool: one that the profile forbids is a contradiction.
    fn of_member(&self, at: StepAt, member: &Member) -> Sheet {
        let assigned = self.run.steps[at.step as usize].assigned.as_ref();
        let chosen = assigned == Some(&Assignee::Member(member.id.clone()));
        let bounds = Bounds {
            allow_tools: (!member.requires_approval).then(|| member.allow_tools.clone()),
            deny_tools: member.deny_tools.clone(),
            tier: member.support_level.clone().filter(|_| !chosen),
            ..Bounds::default()
        };
        let source = format!("member {}", member.id);
        Sheet { number: number::TEAM, source, bounds, ..Sheet::default() }
    }
}

const fn layer_of(whose: Whose) -> u8 {
    match whose {
        Whose::Platform => number::PLATFORM,
        Whose::Owner => number::OWNER,
    }
}

fn of_row((name, row): (&String, &Instruction)) -> Sheet {
    let pins = row.pin.iter().map(|(name, value)| (label(name), value.clone()));
    let pins: std::collections::BTreeMap<_, _> = pins.collect();
    Sheet {
        number: layer_of(row.layer),
        source: name.clone(),
        bounds: Bounds {
            allow_tools: (!row.allow_tools.is_empty()).then(|| row.allow_tools.clone()),
            deny_tools: row.deny_tools.clone(),
            models: row.models.clone(),
            tier: None,
            output_kinds: row.output_kinds.clone(),
            no_memory: row.memory == MemoryUse::Deny,
            pins: pins.clone(),
        },
        // Whoever fixes a value sets it: an owner cannot fix it otherwise.
        wants: Wants { sets: pins, ..Wants::default() },
    }
}

/// A tool profile in words.
fn profile_text(member: &Member, tools: &[String]) -> String {
    let role = member.role.as_ref().map(|role| format!(", {role}")).unwrap_or_default();
    let mut text = format!("You are {}{role}, a member of a team.", member.id);
    if !tools.is_empty() {
        text.push_str(&format!(" Tools for this step: {}.", tools.join(", ")));
    }
    if !member.deny_tools.is_empty() {
        text.push_str(&format!(" Never use: {}.", member.deny_tools.join(", ")));
    }
    text
}
