//! The layers of a prompt that are not in the plan: gathered, and compared for
//! contradictions.

use super::bind::Unfit;
use crate::code::Code;
use crate::failure::Failure;
use crate::journal::event::{Assignee, LogLine, Prepared, StepAt};
use crate::label::label;
use crate::layers::{Bounds, Layer, Sheet, Wants, contradictions, number};
use crate::limits::LAYERS_BYTES_MAX;
use crate::memory;
use crate::plan::Member;
use crate::plan::step::Work;
use crate::port::remembered_output::RememberedOutput;
use crate::run::decide::draft::Draft;
use crate::run::seat::SHELL;
use sluice_govern::registry::{Instruction, InstructionLayer, MemoryUse};
use std::collections::BTreeMap;

/// The environment variable with the memory of a shell step.
const MEMORY_VARIABLE: &str = "SLUICE_MEMORY";

/// The memory profile that a step loads, with the layer and the source that name it.
type Profile<'a> = (&'a str, u8, String);

/// Adds the layers that are not in the plan.
pub(super) fn add_layers(
    draft: &Draft<'_>,
    at: StepAt,
    prepared: &mut Prepared,
) -> Result<(), Unfit> {
    if !has_layers(draft, at) {
        return Ok(());
    }
    let agent = draft.run.agent_of(at.step).unwrap_or_default();
    let profile = profile(draft, at, agent);
    check_layers(draft, at)?;
    let mut layers = standing(draft, at, agent);
    if let Some((name, _, _)) = profile {
        let loaded = recall(draft, name).unwrap_or_default();
        prepared.labels.join(&loaded.labels);
        if agent == SHELL {
            prepared.env.push((MEMORY_VARIABLE.to_owned(), loaded.text.clone()));
        }
        // Empty memory adds no layer.
        if !loaded.text.is_empty() {
            let (number, source) = (number::MEMORY, name.to_owned());
            layers.push(Layer { number, source, text: loaded.text });
        }
    }
    let bytes: usize = layers.iter().map(|layer| layer.text.len()).sum();
    if bytes > LAYERS_BYTES_MAX {
        let message = format!("the layers are {bytes} bytes, over the {LAYERS_BYTES_MAX} allowed");
        return Err(Failure::new(Code::ContextTooLarge, message).into());
    }
    if !layers.is_empty() {
        layers.insert(0, Layer::guardrails());
    }
    prepared.layers = layers;
    Ok(())
}

/// Refuses a layer that contradicts a stricter one. A step that was prepared earlier is
/// checked against the rows in force now.
pub(super) fn check_layers(draft: &Draft<'_>, at: StepAt) -> Result<(), Unfit> {
    if !has_layers(draft, at) {
        return Ok(());
    }
    let agent = draft.run.agent_of(at.step).unwrap_or_default();
    let profile = profile(draft, at, agent);
    let found = contradictions(&sheets(draft, at, agent, profile.as_ref()));
    match Failure::of(Code::LayerContradiction, found) {
        Some(failure) => Err(Unfit::Layers(failure)),
        None => Ok(()),
    }
}

/// Whether a step can have layers that are not in the plan. Most steps have none, so this
/// is checked first.
fn has_layers(draft: &Draft<'_>, at: StepAt) -> bool {
    let authority = draft.given.authority;
    let step = draft.run.step(at);
    let agent = draft.run.agent_of(at.step).and_then(|name| authority.agent(name));
    matches!(step.work, Work::Command { .. } | Work::Lens(_))
        && (draft.run.definition.plan.team.is_some()
            || !authority.fabric().instructions.is_empty()
            || step.memory.is_some()
            || agent.is_some_and(|agent| agent.system_prompt.is_some() || agent.memory.is_some()))
}

/// The memory a step loads: its own, else its member's, else its agent's.
fn profile<'d>(draft: &'d Draft<'_>, at: StepAt, agent: &str) -> Option<Profile<'d>> {
    let step = draft.run.step(at);
    let member = draft.run.member_of(at.step);
    let own = step.memory.as_deref().map(|name| (name, number::NODE, step.id.clone()));
    own.or_else(|| {
        let member = member?;
        let name = member.memory_profile.as_deref()?;
        Some((name, number::PERSONALITY, format!("member {}", member.id)))
    })
    .or_else(|| {
        let row = draft.given.authority.agent(agent)?;
        Some((row.memory.as_deref()?, number::PERSONALITY, format!("agent {agent}")))
    })
}

/// The content of a memory profile; none if there is no such profile.
fn recall(draft: &Draft<'_>, name: &str) -> Option<memory::Loaded> {
    let fabric = draft.given.authority.fabric();
    let profile = fabric.memories.get(name)?;
    let mut remembered_outputs: Vec<RememberedOutput> = Vec::new();
    if let Some(last) = &profile.last_outputs {
        remembered_outputs.extend(draft.remembered_outputs.iter().rev().cloned());
        remembered_outputs
            .extend(draft.given.authority.remembered_outputs(&last.agent).iter().cloned());
    }
    Some(memory::load(fabric, profile, &remembered_outputs))
}

/// Records in the log of a step which parts of its memory are missing. The step runs
/// without them.
pub(super) fn log_missing_memory(draft: &mut Draft<'_>, at: StepAt) {
    if !has_layers(draft, at) {
        return;
    }
    let agent = draft.run.agent_of(at.step).unwrap_or_default();
    let Some((name, _, _)) = profile(draft, at, agent) else { return };
    let fabric = draft.given.authority.fabric();
    let text = match fabric.memories.get(name) {
        None => format!("there is no memory profile `{name}`; nothing was loaded"),
        Some(profile) => {
            let gone = profile.notes.iter().filter(|note| !fabric.notes.contains_key(*note));
            let gone: Vec<String> = gone.map(|note| format!("`{note}`")).collect();
            if gone.is_empty() {
                return;
            }
            format!("memory profile `{name}` names notes that are not there: {}", gone.join(", "))
        }
    };
    draft.log(at, LogLine::Text(text));
}

fn instructions<'d>(draft: &'d Draft<'_>, agent: &str) -> Vec<(&'d String, &'d Instruction)> {
    let workflow = &draft.run.started.workflow;
    let rows = draft.given.authority.fabric().instructions.iter();
    let mut rows: Vec<_> = rows.filter(|(_, row)| row.applies(workflow, agent)).collect();
    rows.sort_by_key(|(_, row)| row.layer);
    rows
}

/// The texts of layers 2 to 5.
fn standing(draft: &Draft<'_>, at: StepAt, agent: &str) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut add = |number: u8, source: String, text: &str| {
        if !text.trim().is_empty() {
            layers.push(Layer { number, source, text: text.trim_end().to_owned() });
        }
    };
    for (name, row) in instructions(draft, agent) {
        add(layer_of(row.layer), name.clone(), &row.text);
    }
    let member = draft.run.member_of(at.step);
    if let Some(member) = member {
        let text = profile_text(member, &draft.run.tools_of(at.step));
        add(number::TEAM, format!("member {}", member.id), &text);
    }
    let row = draft.given.authority.agent(agent);
    if let Some(text) = row.and_then(|row| row.system_prompt.as_deref()) {
        add(number::PERSONALITY, format!("agent {agent}"), text);
    }
    if let Some((member, text)) = member.and_then(|m| Some((m, m.system_prompt_patch.as_ref()?))) {
        add(number::PERSONALITY, format!("member {}", member.id), text);
    }
    layers
}

/// The bounds and requests of each layer.
fn sheets(draft: &Draft<'_>, at: StepAt, agent: &str, profile: Option<&Profile<'_>>) -> Vec<Sheet> {
    let step = draft.run.step(at);
    let mut sheets: Vec<Sheet> = instructions(draft, agent).into_iter().map(of_row).collect();
    sheets.extend(draft.run.member_of(at.step).map(|member| of_member(draft, at, member)));
    let row = draft.given.authority.agent(agent);
    let unnamed = draft.run.model_of(at.step).is_none();
    let model = row.and_then(|row| row.model.clone()).filter(|_| unnamed);
    let configured = draft.run.started.fallback_model.clone();
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
    // A model that the caller names is a request of the caller, unless the step names one.
    let of_caller = draft.run.started.default_model.clone().filter(|_| step.model.is_none());
    let of_document = draft.run.definition.plan.default_model.clone();
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
    let sets = draft.run.started.args.iter();
    let sets = sets.map(|(name, value)| (label(name), value.clone())).collect();
    let given = Wants { sets, model: of_caller, ..Wants::default() };
    wants.push((number::CALLER, draft.run.started.initiator.clone(), given));
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

/// The profile of a member binds its steps. An assignment overrides the tier, but grants
/// no tool: a tool that the profile forbids is a contradiction.
fn of_member(draft: &Draft<'_>, at: StepAt, member: &Member) -> Sheet {
    let assigned = draft.run.steps[at.step as usize].assigned.as_ref();
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

const fn layer_of(layer: InstructionLayer) -> u8 {
    match layer {
        InstructionLayer::Platform => number::PLATFORM,
        InstructionLayer::Owner => number::OWNER,
    }
}

fn of_row((name, row): (&String, &Instruction)) -> Sheet {
    let pins = row.pin.iter().map(|(name, value)| (label(name), value.clone()));
    let pins: BTreeMap<_, _> = pins.collect();
    Sheet {
        number: layer_of(row.layer),
        source: name.clone(),
        bounds: Bounds {
            allow_tools: (!row.allow_tools.is_empty()).then(|| row.allow_tools.clone()),
            deny_tools: row.deny_tools.clone(),
            models: row.models.clone(),
            tier: None,
            output_kinds: row.output_kinds.iter().map(ToString::to_string).collect(),
            no_memory: row.memory == MemoryUse::Deny,
            pins: pins.clone(),
        },
        // A pinned value is also requested, so that another pin of it is a contradiction.
        wants: Wants { sets: pins, ..Wants::default() },
    }
}

/// The text of a member's profile.
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
