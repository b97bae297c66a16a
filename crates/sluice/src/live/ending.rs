//! Prints how a run ended.

use super::Live;
use super::family::Family;
use crate::Exit;
use crate::amount;
use crate::local::Again;
use crate::out::{Layout, Out, harmless};
use crate::picture::Picture;
use crate::values;
use serde_json::Value;
use sluice_core::journal::event::ApprovalSource;
use sluice_core::port::Clock as _;
use sluice_core::run::projection::project;
use sluice_core::run::state::Run;
use sluice_core::status::RunStatus;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_server::service::runs::last_steps;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most steps whose texts are printed in place of outputs.
const LAST_MAX: usize = 20;

/// The exit code for the status of a run.
pub(crate) fn exit(status: RunStatus) -> Exit {
    match status {
        RunStatus::Completed => Exit::Done,
        RunStatus::Failed => Exit::Failed,
        RunStatus::Cancelled => Exit::Cancelled,
        RunStatus::TimedOut => Exit::TimedOut,
        RunStatus::Queued
        | RunStatus::Running
        | RunStatus::Paused
        | RunStatus::Cancelling
        | RunStatus::Recovered => Exit::Waiting,
    }
}

impl Live<'_> {
    /// Whether the engine retries a failed run.
    pub(super) fn recovers(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<bool> {
        let Some(at_ms) = run.recovers_at_ms() else { return Ok(false) };
        if self.failed != run.version {
            self.failed = run.version;
            let wait_ms = at_ms.saturating_sub(SystemClock.now_ms());
            let text = format!("failed; the engine retries it in {}", amount::time(wait_ms));
            self.note(&text, out)?;
        }
        Ok(true)
    }

    /// Prints the state of the run, as the API returns it.
    async fn shown(&self, run: &Run, out: &mut Out) -> anyhow::Result<()> {
        let taken = self.follow.local.store.taken(run.id).await?;
        out.json(Layout::Line, &project(run).with_taken(taken))
    }

    /// Prints the result of a run.
    pub(super) async fn end(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<Exit> {
        if let Some(screen) = &mut self.screen {
            screen.draw(&picture(run), SystemClock.now_ms());
            screen.keep();
        }
        let view = self.follow.view;
        if view.json {
            out.note(&summary(&picture(run)))?;
            self.shown(run, out).await?;
        } else if view.events {
            out.note(&summary(&picture(run)))?;
        } else {
            let shown = picture(run);
            out.print(&format!("{}\n{}", summary(&shown), outputs(&shown, &last_words(run))))?;
        }
        if run.status == RunStatus::Failed {
            let (id, Again { look, work }) = (run.id, &self.follow.again);
            out.note(&format!(
                "look: sluice runs show {id}{look}\nretry: sluice runs retry {id}{work}"
            ))?;
        }
        Ok(exit(run.status))
    }

    /// Prints the approvals that a run waits for.
    pub(super) async fn wait_for_people(
        &mut self,
        run: &Run,
        family: &Family,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        if let Some(screen) = &mut self.screen {
            screen.draw(&picture(run), SystemClock.now_ms());
            screen.keep();
        }
        let Again { look, work } = &self.follow.again;
        let what = if family.open.is_empty() { "an assignment" } else { "an approval" };
        let mut text = format!("{} waits for {what}", run.id);
        for (run_of, id) in &family.open {
            let approval = &run_of.approvals[id];
            let step = run_of.name(approval.at);
            let summary = approval.summary.lines().next().unwrap_or_default();
            let (step, summary) = (visible::brief(&step), visible::brief(summary));
            let _ = write!(text, "\n{step}: {summary}");
            let ways: &[&str] = match approval.source {
                ApprovalSource::Escalation => &["retry", "skip", "abort"],
                ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool => {
                    &["approve", "reject"]
                }
            };
            for way in ways {
                let why = if *way == "reject" { " --reason TEXT" } else { "" };
                let _ = write!(text, "\n  sluice approvals {way} {id}{why}{look}");
            }
        }
        for (run_of, step) in &family.blocked {
            let step = visible::brief(step);
            let _ = write!(text, "\n{step}: no member of the team fits it");
            let _ = write!(text, "\n  sluice runs assign {run_of} {step} MEMBER{look}");
        }
        let _ = write!(text, "\nthen\n  sluice resume {}{work}", run.id);
        out.note(&text)?;
        if self.follow.view.json {
            self.shown(run, out).await?;
        }
        Ok(Exit::Waiting)
    }
}

pub(super) fn picture(run: &Run) -> Picture {
    Picture::from(&project(run))
}

/// [`picture`], with what steps wait for in their child runs.
pub(super) fn picture_with(run: &Run, child_waits: &BTreeMap<String, String>) -> Picture {
    Picture::from(&project(run).with_child_waits(child_waits))
}

/// `completed in 1.2 s, 225 tokens, $0.0097`.
pub(super) fn summary(shown: &Picture) -> String {
    let mut parts = Vec::new();
    if let Some(ms) = shown.duration_ms {
        parts.push(format!("{} in {}", shown.status, amount::time(ms)).replace('_', " "));
    }
    parts.extend(amount::spent(0, shown.tokens(), shown.cost));
    if shown.degraded {
        parts.push("degraded: not everything in it went well".to_owned());
    }
    let mut text = parts.join(", ");
    if let (Some(code), Some(message)) = (&shown.error_code, &shown.error_message) {
        let _ =
            write!(text, "\n{}", values::failure(&visible::brief(code), &visible::brief(message)));
    }
    text
}

/// The outputs of a run, one per line, and the texts of its last steps if the document declares
/// no outputs.
pub(super) fn outputs(shown: &Picture, last: &[(String, Value)]) -> String {
    let named = match &shown.outputs {
        None => return String::new(),
        Some(Value::Object(named)) => named,
        Some(value) => return format!("  {}\n", harmless(value.to_string())),
    };
    let result = named.iter().map(|(name, value)| values::named(name, value));
    let said = last.iter().filter(|(name, _)| !named.contains_key(name)).take(LAST_MAX);
    result.chain(said.map(|(name, said)| values::named(name, said))).collect()
}

/// The texts of the last steps of a run without outputs.
fn last_words(run: &Run) -> Vec<(String, Value)> {
    let last = last_steps(run);
    let shown = project(run);
    let nodes = shown.node_results.iter().filter(|node| last.contains(&&*node.node_id));
    let said = nodes.filter_map(|node| {
        Some((node.node_id.clone().into_owned(), node.output.as_deref()?.clone()))
    });
    said.take(LAST_MAX).collect()
}
