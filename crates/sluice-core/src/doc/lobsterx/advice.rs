//! Warnings about valid documents that probably do not do what the author wants.

use super::declared_names::DeclaredNames;
use super::step::{StepDraft, located};
use super::written::Document;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, PathPart};
use crate::doc::team::TeamField;
use crate::expr::Denial;
use crate::path::{Reference, Segment};
use crate::plan::graph::Graph;
use crate::plan::policy::{OnFailure, OnParentFailure};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Warns about declared roles that no step uses.
pub(super) fn unused_roles<'n>(
    document: &Document,
    drafts: &[StepDraft<'n>],
    cx: &mut DocumentReader<'n, '_>,
) {
    // The roles of an unknown team are unknown.
    if document.team.as_ref().is_some_and(|team| team.team().is_none()) {
        return;
    }
    let steps = drafts.iter().filter_map(|draft| draft.doc.role.as_ref());
    let members = document.team.iter().filter_map(TeamField::team);
    let members = members.flat_map(|team| team.members.iter().flatten());
    let members = members.filter_map(|member| member.role.as_deref());
    let used: BTreeSet<&str> = steps.map(|role| role.value.as_str()).chain(members).collect();
    for (role, _) in document.roles.iter().flat_map(|roles| &roles.0) {
        if !used.contains(role.value.as_str()) {
            let message = format!("no step uses the role `{}`", role.value);
            let problem = Problem::new(Code::UnusedRole, role.span, message);
            cx.within(PathPart::Key("roles"), |cx| cx.add(problem));
        }
    }
}

/// Warns about steps without a failure policy if everything after them ends in a step that
/// cannot be repeated.
pub(super) fn unprotected_steps<'n>(
    drafts: &[StepDraft<'n>],
    graph: &Graph,
    cx: &mut DocumentReader<'n, '_>,
) {
    let has_effect = |draft: &StepDraft<'_>| draft.doc.idempotent == Some(false);
    if !drafts.iter().any(has_effect) {
        return;
    }
    let dominators = graph.immediate_dominators();
    let mut seen = vec![false; drafts.len()];
    for (at, effect) in drafts.iter().enumerate().filter(|(_, draft)| has_effect(draft)) {
        let mut above = dominators[at];
        while let Some(on) = above {
            let on = on as usize;
            if std::mem::replace(&mut seen[on], true) {
                break;
            }
            let draft = &drafts[on];
            if draft.doc.on_failure.is_none() && draft.doc.retry.is_none() {
                let message = format!(
                    "every path to `{}`, which cannot be repeated, passes through `{}`, which has no failure policy",
                    effect.id(),
                    draft.id()
                );
                let problem = Problem::new(Code::UnprotectedStep, draft.span(), message)
                    .with_hint("set `on_failure` or `retry`");
                cx.deeper(&[PathPart::Key("steps"), PathPart::Index(draft.index)], |cx| {
                    cx.add(problem);
                });
            }
            above = dominators[on];
        }
    }
}

/// Warns about steps that are meant for a rejected approval and never run. A rejection fails
/// its step, and a step that depends on it alone fails or is skipped before its condition is
/// evaluated.
pub(super) fn rejected_branches<'n>(
    drafts: &[StepDraft<'n>],
    known: &DeclaredNames<'_>,
    graph: &Graph,
    cx: &mut DocumentReader<'n, '_>,
) {
    let dominators = OnceCell::new();
    for (at, draft) in drafts.iter().enumerate() {
        let Some(condition) = &draft.doc.condition else { continue };
        for (reference, denial) in condition.value.denials() {
            let Some(approval_step) = approval_step(reference, drafts, known) else { continue };
            let skipped = || {
                all_skipped(
                    at,
                    approval_step,
                    dominators.get_or_init(|| graph.immediate_dominators()),
                )
            };
            let Some((message, hint)) =
                unreached(&drafts[at], &drafts[approval_step], denial, skipped)
            else {
                continue;
            };
            let node = draft.field("condition");
            let span = located(node, condition.span, reference.span, cx);
            let problem = Problem::new(Code::UnreachableRejection, span, message).with_hint(hint);
            let parts =
                [PathPart::Key("steps"), PathPart::Index(draft.index), PathPart::Key("condition")];
            cx.deeper(&parts, |cx| cx.add(problem));
        }
    }
}

/// The step whose approval a path reads: `id.approved`.
fn approval_step(
    reference: &Reference,
    drafts: &[StepDraft<'_>],
    known: &DeclaredNames<'_>,
) -> Option<usize> {
    let path = &reference.path;
    let at = *known.steps.get(path.head())? as usize;
    let rest = match path.rest() {
        [Segment::Key(word), rest @ ..] if word == "outputs" => rest,
        rest => rest,
    };
    let approved = matches!(rest, [Segment::Key(word)] if word == "approved");
    (approved && drafts[at].needs_approval()).then_some(at)
}

/// Why a step does not run if the approval of `approval_step` is rejected, and how to change that;
/// `None` if it runs. `skipped` says whether it is skipped together with `approval_step`.
fn unreached(
    draft: &StepDraft<'_>,
    approval_step: &StepDraft<'_>,
    denial: Denial,
    skipped: impl FnOnce() -> bool,
) -> Option<(String, String)> {
    let (step, asks) = (draft.id(), approval_step.id());
    if denial == Denial::False {
        let message = format!("`{asks}.approved` is true or null, never false");
        return Some((message, format!("write `not ${asks}.approved`")));
    }
    let on_failure = approval_step.doc.on_failure.as_ref().map(|policy| policy.value);
    let also = format!("let `{step}` also depend on a step that is done by then");
    if on_failure == Some(OnFailure::Skip) {
        let message = format!("`{step}` is skipped with `{asks}` when that is rejected");
        return skipped().then_some((message, also));
    }
    let substitutes = draft.doc.on_parent_failure == Some(OnParentFailure::SubstituteDefault);
    let message = format!("`{step}` does not run when `{asks}` is rejected: that fails the run");
    let hint = format!("set `on_failure: skip` on `{asks}`, and {also}");
    (!substitutes).then_some((message, hint))
}

/// Whether every dependency of the step is skipped with `approval_step`: skips cascade if every path
/// from a root passes through it.
fn all_skipped(at: usize, approval_step: usize, dominators: &[Option<u32>]) -> bool {
    let above = |on: &usize| dominators[*on].map(|on| on as usize);
    std::iter::successors(above(&at), above).any(|on| on == approval_step)
}
