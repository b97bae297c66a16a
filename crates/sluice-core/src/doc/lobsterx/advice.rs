//! Warnings about what is allowed but seldom meant.

use super::step::Draft;
use super::written::Document;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::read::{Part, Reader};
use crate::doc::team::TeamField;
use crate::plan::graph::Graph;
use std::collections::BTreeSet;

/// Warns of declared roles that no step uses.
pub(super) fn unused_roles<'n>(document: &Document, drafts: &[Draft<'n>], cx: &mut Reader<'n, '_>) {
    // Which roles a team has that is not known, nobody can say.
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
            cx.within(Part::Key("roles"), |cx| cx.add(problem));
        }
    }
}

/// Warns of steps that say nothing of failure though everything after them ends
/// in something that cannot be repeated.
pub(super) fn unprotected_steps<'n>(drafts: &[Draft<'n>], graph: &Graph, cx: &mut Reader<'n, '_>) {
    let has_effect = |draft: &Draft<'_>| draft.doc.idempotent == Some(false);
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
                    "every path to `{}`, which cannot be repeated, passes `{}`, which says nothing of failure",
                    effect.id(),
                    draft.id()
                );
                let problem = Problem::new(Code::UnprotectedStep, draft.span(), message)
                    .with_hint("set `on_failure` or `retry`");
                cx.deeper(&[Part::Key("steps"), Part::Index(draft.index)], |cx| cx.add(problem));
            }
            above = dominators[on];
        }
    }
}
