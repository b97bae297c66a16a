//! Finds runs and approvals by id or by a prefix of their id.

use super::Service;
use crate::refused::{self, APPROVAL_UNKNOWN, ID_AMBIGUOUS, RUN_UNKNOWN, Refused, ServiceResult};
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::journal::event::StepAt;
use sluice_core::port::store::{Filter, RunRow, Store};
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::error::LoadError;
use std::ops::RangeInclusive;

/// Maximum number of ids that a refusal lists.
const LISTED_MAX: usize = 5;
/// Runs per query.
const PAGE: usize = 1000;
/// Maximum number of recent runs that are searched for a resolved approval.
const LATELY_MAX: usize = 1000;

/// The statuses of runs that have not ended.
pub const UNFINISHED: [RunStatus; 5] = [
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Paused,
    RunStatus::Cancelling,
    RunStatus::Recovered,
];

/// The run whose id is `text`, or the only one whose id begins with it.
pub async fn run(service: &Service, text: &str) -> ServiceResult<RunRow> {
    run_in(&*service.store, text).await
}

/// [`run`], for callers that have only a store.
pub async fn run_in(store: &dyn Store, text: &str) -> ServiceResult<RunRow> {
    let unknown = || {
        let remedy = "`sluice runs list` lists the runs";
        Refused::new(RUN_UNKNOWN, format!("there is no run `{text}`"), remedy)
    };
    let (from, to) = range(text, "run_").ok_or_else(unknown)?;
    let before = to.checked_add(1).map(RunId);
    let filter = Filter { before, limit: LISTED_MAX + 1, ..Filter::default() };
    let mut rows = store.list(filter).await?;
    rows.retain(|row| row.run.0 >= from);
    match rows.as_slice() {
        [] => Err(unknown().into()),
        [_] => Ok(rows.remove(0)),
        several => Err(ambiguous(text, several.iter().map(|row| row.run.to_string())).into()),
    }
}

/// The run with this complete id, for operations that change it: a prefix could match
/// a different run by the time the change arrives.
pub async fn whole_run(service: &Service, text: &str) -> ServiceResult<RunRow> {
    if RunId::parse(text).is_none() {
        let message = format!("`{}` is not a complete run id", visible::brief(text));
        let remedy = "send `run_` and all 32 digits";
        return Err(Refused::new(RUN_UNKNOWN, message, remedy).into());
    }
    run(service, text).await
}

/// The approval with this complete id, and its run; see [`whole_run`].
pub(crate) async fn whole_approval(
    service: &Service,
    text: &str,
) -> ServiceResult<(Run, ApprovalId)> {
    if ApprovalId::parse(text).is_none() {
        let message = format!("`{}` is not a complete approval id", visible::brief(text));
        let remedy = "send `apr_` and all 32 digits";
        return Err(Refused::new(APPROVAL_UNKNOWN, message, remedy).into());
    }
    approval(service, text).await
}

/// The approval whose id is `text`, or the only one whose id begins with it, and its run.
pub async fn approval(service: &Service, text: &str) -> ServiceResult<(Run, ApprovalId)> {
    let unknown = || {
        let remedy = "`sluice approvals list` lists the open approvals";
        Refused::new(APPROVAL_UNKNOWN, format!("there is no approval `{text}`"), remedy)
    };
    let (from, to) = range(text, "apr_").ok_or_else(unknown)?;
    let wanted = ApprovalId(from)..=ApprovalId(to);
    let mut found = among(service, runs_with_open_approvals(service).await?, &wanted).await?;
    if found.is_empty() {
        let filter = Filter { limit: LATELY_MAX, ..Filter::default() };
        // It may be resolved, in a recent run.
        let rows = service.store.list(filter).await?;
        found = among(service, rows, &wanted).await?;
    }
    match found.len() {
        0 => Err(unknown().into()),
        1 => Ok(found.remove(0)),
        _ => Err(ambiguous(text, found.iter().map(|(_, id)| id.to_string())).into()),
    }
}

/// The approvals of some runs with ids in a range. A run that cannot be read does not
/// hide the approvals of other runs.
async fn among(
    service: &Service,
    rows: Vec<RunRow>,
    wanted: &RangeInclusive<ApprovalId>,
) -> ServiceResult<Vec<(Run, ApprovalId)>> {
    let mut found = Vec::new();
    for row in rows {
        let Some(run) = load_if_readable(service, row.run).await? else { continue };
        let ids: Vec<ApprovalId> = run.approvals.range(wanted.clone()).map(|(id, _)| *id).collect();
        found.extend(ids.into_iter().map(|id| (run.clone(), id)));
    }
    Ok(found)
}

/// Every run that has an open approval, newest first.
pub(crate) async fn runs_with_open_approvals(service: &Service) -> ServiceResult<Vec<RunRow>> {
    let mut rows: Vec<RunRow> = Vec::new();
    loop {
        let before = rows.last().map(|row| row.run);
        let page = Filter { asking: true, before, limit: PAGE, ..Filter::default() };
        let page = service.store.list(page).await?;
        let last = page.len() < PAGE;
        rows.extend(page);
        if last {
            return Ok(rows);
        }
    }
}

/// Loads a run; `None` if its journal cannot be read.
pub(crate) async fn load_if_readable(service: &Service, run: RunId) -> ServiceResult<Option<Run>> {
    match service.engine.load(run).await {
        Ok(run) => Ok(Some(run)),
        Err(LoadError::Poison { .. }) => Ok(None),
        Err(error) => Err(refused::load(error)),
    }
}

/// Loads a run.
pub async fn load(service: &Service, run: RunId) -> ServiceResult<Run> {
    service.engine.load(run).await.map_err(refused::load)
}

/// The step or instance with this name.
pub fn step(run: &Run, name: &str) -> Result<StepAt, Refused> {
    if let Some(at) = run.find(name) {
        return Ok(at);
    }
    let steps = run.definition.plan.steps.iter().map(|step| step.id.as_str());
    let remedy = match suggest(name, steps) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`sluice runs show {}` lists its steps", run.id),
    };
    let message = format!("{} has no step `{}`", run.id, visible::brief(name));
    Err(Refused::new("unknown_step", message, remedy))
}

/// The range of ids that begin with `text`, with or without their prefix.
fn range(text: &str, prefix: &str) -> Option<(u128, u128)> {
    const DIGITS: usize = 32;
    let digits = text.strip_prefix(prefix).unwrap_or(text);
    let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.is_empty() || digits.len() > DIGITS || !digits.bytes().all(hexadecimal) {
        return None;
    }
    let filled = |with: &str| {
        let rest = with.repeat(DIGITS - digits.len());
        u128::from_str_radix(&format!("{digits}{rest}"), 16).ok()
    };
    Some((filled("0")?, filled("f")?))
}

fn ambiguous(text: &str, ids: impl ExactSizeIterator<Item = String>) -> Refused {
    let more = ids.len() > LISTED_MAX;
    let mut notes: Vec<String> = ids.take(LISTED_MAX).collect();
    if more {
        notes.push("…".to_owned());
    }
    let message = format!("several ids begin with `{text}`");
    Refused::new(ID_AMBIGUOUS, message, "give a longer prefix of the id").with_notes(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_range_of_ids() {
        let all = u128::MAX;
        assert_eq!(range("run_0", "run_"), Some((0, all >> 4)));
        assert_eq!(range("f", "run_"), Some((15 << 124, all)));
        let whole = "0198c7d2aaaaaaaabbbbbbbbcccccccc";
        let id = u128::from_str_radix(whole, 16).unwrap();
        assert_eq!(range(whole, "run_"), Some((id, id)));
        for text in ["", "run_", "apr_01", "run_0198C7", "run_xyz", "run_+1", &"0".repeat(33)] {
            assert_eq!(range(text, "run_"), None, "{text}");
        }
    }
}
