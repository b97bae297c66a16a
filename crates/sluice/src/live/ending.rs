//! How a run ended, told.

use super::family::Family;
use super::{Live, Part};
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
use sluice_core::run::status::RunStatus;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_server::service::runs::last_steps;
use std::fmt::Write as _;

/// Most steps whose texts are shown in place of outputs.
const LAST_MAX: usize = 20;

/// The exit code that a run's status means.
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
    /// Whether a run that failed is taken up again by itself, here.
    pub(super) fn recovers(&mut self, run: &Run, out: &mut Out) -> anyhow::Result<bool> {
        let at_ms = run.recovers_at_ms().filter(|_| self.follow.part != Part::Watch);
        let Some(at_ms) = at_ms else { return Ok(false) };
        if self.failed != run.version {
            self.failed = run.version;
            let wait_ms = at_ms.saturating_sub(SystemClock.now_ms());
            let text = format!("failed; it is taken up again in {}", amount::time(wait_ms));
            self.note(&text, out)?;
        }
        Ok(true)
    }

    /// The run as programs see it, with what other runs took from it.
    async fn shown(&self, run: &Run, out: &mut Out) -> anyhow::Result<()> {
        let taken = self.follow.local.store.taken(run.id).await?;
        out.json(Layout::Line, &project(run).with_taken(taken))
    }

    /// The run has ended.
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

    /// Only people who are not here can make the run go on.
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
        let what = if family.open.is_empty() { "somebody to be assigned" } else { "an answer" };
        let mut text = format!("{} waits for {what}", run.id);
        for (asker, id) in &family.open {
            let asked = &asker.approvals[id];
            let step = asker.name(asked.at);
            let summary = asked.summary.lines().next().unwrap_or_default();
            let (step, summary) = (visible::brief(&step), visible::brief(summary));
            let _ = write!(text, "\n{step}: {summary}");
            let ways: &[&str] = match asked.source {
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
        for (asker, step) in &family.blocked {
            let step = visible::brief(step);
            let _ = write!(text, "\n{step}: nobody in the team fits it");
            let _ = write!(text, "\n  sluice runs assign {asker} {step} MEMBER{look}");
        }
        let _ = write!(text, "\nthen\n  sluice resume {}{work}", run.id);
        out.note(&text)?;
        if self.follow.view.json {
            self.shown(run, out).await?;
        }
        Ok(Exit::Waiting)
    }
}

/// A run as it is drawn.
pub(super) fn picture(run: &Run) -> Picture {
    Picture::from(&project(run))
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
        let _ = write!(text, "\n{}: {}", visible::brief(code), visible::brief(message));
    }
    text
}

/// The run's result, a name a line, and what its last steps said, where the
/// document does not say what the result is.
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

/// The texts of the steps that stand for the result.
fn last_words(run: &Run) -> Vec<(String, Value)> {
    let last = last_steps(run);
    let shown = project(run);
    let nodes = shown.node_results.iter().filter(|node| last.contains(&&*node.node_id));
    let said = nodes.filter_map(|node| {
        Some((node.node_id.clone().into_owned(), node.output.as_deref()?.clone()))
    });
    said.take(LAST_MAX).collect()
}
