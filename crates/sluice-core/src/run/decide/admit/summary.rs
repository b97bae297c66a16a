//! The summary of an approval.

use super::lens::label_names;
use crate::failure::Failure;
use crate::journal::event::{Prepared, StepAt};
use crate::plan::policy::Family;
use crate::plan::step::Work;
use crate::run::scope::RunScope;
use crate::run::state::Run;

/// The text that approvers read: as the step declares it, else its prompt.
pub(super) fn summary(run: &Run, at: StepAt, prepared: &Prepared) -> Result<String, Failure> {
    let step = run.step(at);
    if let Some(summary) = step.approval.as_ref().and_then(|approval| approval.summary.as_ref()) {
        let scope = RunScope::of_step(run, at);
        let scope = match run.definition.plan.family {
            Family::Lobsterx => scope.with_locals(&prepared.inputs),
            Family::Lens => scope.with_locals(&label_names(run, at)?),
        };
        return Ok(summary.render(&scope)?);
    }
    let name = run.name(at);
    Ok(match step.work {
        Work::Approval => format!("Approve `{name}`?"),
        _ => format!("Let `{name}` do this?\n{}", prepared.prompt),
    })
}
