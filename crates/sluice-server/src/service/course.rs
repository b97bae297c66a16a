//! Changes the course of a run: retry, rewind, restart, branch.

use super::{Service, checkpoint, find};
use crate::refused::{self, Failure, NOTHING_FAILED, RUN_NOT_ENDED, Refused, ServiceResult};
use serde_json::{Map, Value};
use sluice_core::id::RunId;
use sluice_core::journal::event::Origin;
use sluice_core::run::command::{Command, Dispatching, Refusal};
use sluice_core::run::start::Carried;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::error::Delivered;
use sluice_engine::start::Start;
use std::collections::{BTreeMap, BTreeSet};

/// Sends a command to a run; `key` identifies it if it goes through the mailbox.
pub(crate) async fn send_command(
    service: &Service,
    run: RunId,
    command: Command,
    key: &str,
) -> ServiceResult<Delivered> {
    let delivered = service.engine.command(run, command, key).await;
    delivered.map_err(|error| refused::command(run, error))
}

/// The command that retries a failed run.
pub fn retry(run: &Run, by: &str) -> Result<Command, Refused> {
    if run.status != RunStatus::Failed {
        return Err(Refused::by_run(run.id, &Refusal::NotFailed(run.status)));
    }
    Ok(Command::Retry { by: by.to_owned() })
}

/// The command that rewinds a run to a checkpoint, and the steps that stay completed.
pub async fn rewind(
    service: &Service,
    run: &Run,
    to: usize,
    by: &str,
) -> ServiceResult<(Command, BTreeSet<u32>)> {
    let then = checkpoint::at(service, run, to).await?;
    let keep = kept(&then, run);
    Ok((Command::Rewind { by: by.to_owned(), keep: keep.clone() }, keep))
}

/// The steps that were done at the checkpoint and have not been repeated since.
fn kept(then: &Run, now: &Run) -> BTreeSet<u32> {
    let steps = (0u32..).zip(then.steps.iter().zip(&now.steps));
    steps
        .filter(|(_, (then, now))| {
            let done = matches!(then.status(), StepStatus::Completed | StepStatus::Skipped);
            done && then.generation == now.generation
        })
        .map(|(position, _)| position)
        .collect()
}

/// The steps that were dispatched and would not stay completed.
pub(crate) fn repeated_steps(run: &Run, keep: &BTreeSet<u32>) -> Vec<String> {
    let begun = |at: &u32| run.steps[*at as usize].dispatch_no > 0;
    let steps = (0u32..).zip(&run.definition.plan.steps);
    let again = steps.filter(|(at, _)| begun(at) && !keep.contains(at));
    again.map(|(_, step)| step.id.clone()).collect()
}

/// A new run that is derived from an existing one.
pub struct Renewal<'a> {
    source: &'a Run,
    /// `restart` or `branch`.
    pub kind: &'static str,
    carried: Carried,
    args: Map<String, Value>,
}

impl<'a> Renewal<'a> {
    /// A new run that repeats steps of a run that ended: the named ones, or those that
    /// failed.
    pub fn restart(source: &'a Run, from: &[String]) -> Result<Renewal<'a>, Refused> {
        if !source.status.is_terminal() {
            let message = format!("{} has not ended; it is {}", source.id, source.status);
            let remedy =
                format!("`sluice runs cancel {0}` first, or `sluice runs rewind {0}`", source.id);
            return Err(Refused::new(RUN_NOT_ENDED, message, remedy));
        }
        let again: Result<BTreeSet<u32>, Refused> =
            from.iter().map(|name| position(source, name)).collect();
        let carried = Carried::for_restart(source, again?);
        if carried.repeats(&source.definition.plan).is_empty() {
            let message = format!("nothing in {} failed, so no step would be repeated", source.id);
            let remedy = "name the first step to repeat with `--from STEP`";
            return Err(Refused::new(NOTHING_FAILED, message, remedy));
        }
        let args = (*source.started.args).clone();
        Ok(Renewal { source, kind: "restart", carried, args })
    }

    /// A new run from a checkpoint, whose state is `source`, with some arguments and outputs
    /// changed.
    pub fn branch(
        source: &'a Run,
        args: Map<String, Value>,
        set: &BTreeMap<u32, Map<String, Value>>,
    ) -> Renewal<'a> {
        let mut all = (*source.started.args).clone();
        all.extend(args);
        Renewal { source, kind: "branch", carried: Carried::for_branch(source, set), args: all }
    }

    /// The run that the new one is derived from.
    pub fn source(&self) -> RunId {
        self.source.id
    }

    /// Steps that would be executed a second time: those that the run, as it is `now`, has
    /// dispatched and whose results the new run does not carry over.
    pub fn repeated(&self, now: &Run) -> Vec<u32> {
        let repeats = self.carried.repeats(&self.source.definition.plan);
        let done = |at: &u32| now.steps[*at as usize].dispatch_no > 0;
        repeats.into_iter().filter(done).collect()
    }

    /// Starts the new run.
    pub async fn start(
        self,
        service: &Service,
        by: &str,
        work: Dispatching,
    ) -> ServiceResult<RunId> {
        let Renewal { source, kind, carried, args } = self;
        let begun = &source.started;
        let Some(hash) = begun.definition else {
            return Err(unstorable(source.id, "it names no definition"));
        };
        let stored = service.engine.definition(hash).await.map_err(refused::load)?;
        let stored = stored.map_err(|why| unstorable(source.id, &why))?;
        let mut start = Start::new(stored, args);
        start.children = begun.children.clone();
        start.source = begun.source;
        by.clone_into(&mut start.initiator);
        start.on_behalf_of.clone_from(&begun.on_behalf_of);
        start.default_agent.clone_from(&begun.default_agent);
        start.default_model.clone_from(&begun.default_model);
        start.recursion_depth_max = begun.recursion_depth_max;
        start.role_bindings = begun.role_bindings.clone();
        start.origin =
            Some(Origin { kind: kind.to_owned(), run: source.id, event: source.version });
        start.carried = carried;
        start.agreed = Carried::agreed(source);
        // A run that another one started keeps the labels of what it was passed.
        start.labels = begun.passed.clone();
        start.args_seen = source.args_seen();
        // The caller wrote the ones that are changed.
        start.args_seen.retain(|name, _| begun.args.get(name) == start.args.get(name));
        start.dispatching = work;
        Ok(service.engine.start(start).await.map_err(refused::start)?.run)
    }
}

fn unstorable(run: RunId, why: &str) -> Failure {
    let message = format!("the definition of {run} cannot be used: {why}");
    Refused::new(refused::RUN_UNREADABLE, message, "start the workflow again").into()
}

/// Overrides of outputs: `STEP.OUTPUT` to a value.
pub fn changes<'v>(
    source: &Run,
    set: impl IntoIterator<Item = (&'v str, Value)>,
) -> Result<BTreeMap<u32, Map<String, Value>>, Refused> {
    let mut changes: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
    for (place, value) in set {
        let Some((step, output)) = place.split_once('.') else {
            let message = format!("`{}` does not name an output", visible::brief(place));
            return Err(Refused::new("bad_reference", message, "write it as STEP.OUTPUT=JSON"));
        };
        let position = position(source, step)?;
        if source.steps[position as usize].status() != StepStatus::Completed {
            let message =
                format!("step `{}` was not completed at this checkpoint", visible::brief(step));
            let remedy = "choose a later checkpoint, or leave this `--set` out";
            return Err(Refused::new("bad_reference", message, remedy));
        }
        changes.entry(position).or_default().insert(output.to_owned(), value);
    }
    Ok(changes)
}

/// The position of a step in the plan of a run.
pub fn position(run: &Run, name: &str) -> Result<u32, Refused> {
    let plan = &run.definition.plan;
    let at = plan.graph.position(name).and_then(|at| u32::try_from(at).ok());
    at.ok_or_else(|| {
        let ids = plan.steps.iter().map(|step| step.id.as_str());
        let remedy = match suggest(name, ids) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("`sluice runs show {}` lists its steps", run.id),
        };
        let message = format!("{} has no step `{}`", run.id, visible::brief(name));
        Refused::new("unknown_step", message, remedy)
    })
}

/// Loads a run by its id or a prefix of it.
pub async fn load(service: &Service, text: &str) -> ServiceResult<Run> {
    let run = find::run(service, text).await?.run;
    find::load(service, run).await
}
