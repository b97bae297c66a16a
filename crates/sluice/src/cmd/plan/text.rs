//! A plan as text: its waves, and each step with its work and dependencies.

use super::arrows::{condition, does, one_line};
use super::{id, picture};
use crate::cmd::count;
use sluice_core::plan::Plan;
use sluice_core::plan::policy::{Family, OnFailure};
use sluice_core::plan::step::{Approval, ForEach, Items, Step, Work};
use sluice_core::visible;
use std::fmt::Write as _;

/// Longest line about a step, in characters.
const NOTE_CHARS_MAX: usize = 160;
/// Most dependencies named for a step.
const AFTER_MAX: usize = 12;
/// Characters of the hash that are printed.
const HASH_CHARS: usize = 12;

pub(super) fn draw(plan: &Plan) -> String {
    let mut text = head(plan);
    if let Some(picture) = picture::draw(plan) {
        let _ = writeln!(text, "\n{picture}");
    }
    let width_id = plan.steps.iter().map(|step| step.id.len()).max().unwrap_or(0).min(32);
    let what: Vec<String> = plan.steps.iter().map(does).collect();
    let width_does = what.iter().map(|does| does.chars().count()).max().unwrap_or(0).min(44);
    for (wave, positions) in plan.graph.layers().iter().enumerate() {
        let _ = writeln!(text, "\nwave {}", wave + 1);
        for at in positions {
            let position = *at as usize;
            let step = &plan.steps[position];
            let after = after(plan, position);
            let line = format!("  {:width_id$}  {:width_does$}  {after}", step.id, what[position]);
            let _ = writeln!(text, "{}", line.trim_end());
            for note in notes(plan, step) {
                let note = visible::clipped(&note, NOTE_CHARS_MAX);
                let _ = writeln!(text, "  {:width_id$}  {note}", "");
            }
        }
    }
    text
}

fn head(plan: &Plan) -> String {
    let hash = plan.hash();
    let mut text = format!("{}", visible::brief(&plan.name));
    if let Some(version) = plan.version {
        let _ = write!(text, ", version {version}");
    }
    let _ = writeln!(text, " ({}, plan {})", plan.family, hash.get(..HASH_CHARS).unwrap_or(&hash));
    if let Some(description) = &plan.description {
        let _ = writeln!(text, "{}", visible::brief(&one_line(description)));
    }
    let steps = count(plan.steps.len(), "step");
    let waves = count(plan.graph.layers().len(), "wave");
    let edges = plan.graph.edge_count();
    let edges =
        if edges == 1 { "1 dependency".to_owned() } else { format!("{edges} dependencies") };
    let _ = writeln!(text, "{steps} in {waves}, {edges}, at most {} at once", plan.max_parallel);
    if !plan.phases.is_empty() {
        let _ = writeln!(text, "phases: {}", phases(plan));
    }
    text
}

/// The phases in order, with their numbers of steps.
fn phases(plan: &Plan) -> String {
    let shown = plan.phases.iter().map(|phase| {
        let of = |step: &&Step| step.phase.as_deref() == Some(&phase.id);
        let steps = count(plan.steps.iter().filter(of).count(), "step");
        format!("{} ({steps})", visible::brief(&phase.name))
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn named<'p>(plan: &'p Plan, id: &'p str) -> &'p str {
    let found = plan.phases.iter().find(|phase| phase.id == id);
    found.map_or(id, |phase| phase.name.as_str())
}

fn after(plan: &Plan, position: usize) -> String {
    let all = plan.graph.dependencies(position);
    let shown = &all[..all.len().min(AFTER_MAX)];
    let ids: Vec<&str> = shown.iter().map(|on| id(plan, *on)).collect();
    match all.len() - shown.len() {
        _ if all.is_empty() => String::new(),
        0 => format!("after {}", ids.join(", ")),
        more => format!("after {} and {more} more", ids.join(", ")),
    }
}

/// Special properties of a step, one per line.
fn notes(plan: &Plan, step: &Step) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(step.phase.as_deref().map(|phase| format!("phase {}", named(plan, phase))));
    notes.extend(step.condition.as_ref().map(|when| format!("if {}", one_line(when.source()))));
    notes.extend(step.edges.iter().filter_map(|edge| {
        let condition = condition(edge.condition.as_ref()?);
        Some(format!(
            "edge {} from {}.{}: {condition}",
            edge.id, edge.source, edge.source_output_key
        ))
    }));
    notes.extend(step.for_each.as_deref().map(for_each));
    notes.extend(step.approval.as_ref().map(|approval| needs(step, approval)));
    let usual = match plan.family {
        Family::Lobsterx => Some(OnFailure::Halt),
        Family::Lens => None,
    };
    let policy = step.on_failure.filter(|_| step.on_failure != usual);
    notes.extend(policy.map(|policy| format!("on failure: {policy}")));
    notes
}

fn for_each(each: &ForEach) -> String {
    let items = match &each.items {
        Items::From(path) => format!("item of {path}"),
        Items::List(list) => format!("of {}", count(list.len(), "item")),
    };
    let together = each.max_parallel.map(|most| format!(", {most} at once")).unwrap_or_default();
    format!("for each {items}, at most {}{together}", each.max_items)
}

fn needs(step: &Step, approval: &Approval) -> String {
    let what = if step.work == Work::Approval { "decided" } else { "approved" };
    let mut text = match approval.approvers.is_empty() {
        true => format!("{what} by any approver"),
        false => format!("{what} by {}", approval.approvers.join(" or ")),
    };
    if approval.quorum > 1 {
        let _ = write!(text, ", {} of them", approval.quorum);
    }
    if approval.not_initiator {
        text.push_str(", not the initiator");
    }
    if step.work == Work::Approval && !step.outputs.is_empty() {
        let names: Vec<&str> = step.outputs.keys().map(String::as_str).collect();
        let _ = write!(text, ", who gives {}", names.join(", "));
    }
    text
}
