//! Events as short lines.

use super::world::World;
use crate::journal::event::{Event, LogLine, Path, Ruling, StepAt, StepEvent};
use serde_json::Value;

impl World {
    /// The line of an event, by number.
    pub(super) fn line(&mut self, number: usize) -> String {
        let event = self.journal[number - 1].1.clone();
        let told = match &event {
            Event::Step(at, node) => self.node_line(*at, node),
            Event::RunStatusChanged { status, reason, by } => {
                let by = by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
                format!("{status} ({reason}){by}")
            }
            Event::RunCompleted { outputs } => outputs.to_string(),
            Event::RunFailed { code, message } => format!("{code}: {message}"),
            Event::RunCancelled { reason } => reason.clone(),
            Event::RunTimedOut { timeout_ms } => crate::duration::format(*timeout_ms),
            Event::BudgetAlert(figures) => Value::Object(figures.0.clone()).to_string(),
            Event::RunStarted(_) | Event::RunRecovered => String::new(),
        };
        let line = format!("{} {} {told}", self.shown, event.name());
        self.shorten(line.trim_end())
    }

    fn node_line(&self, at: StepAt, node: &StepEvent) -> String {
        let told = match node {
            StepEvent::Queued { items } => {
                items.as_ref().map_or(String::new(), |items| format!("items={}", items.len()))
            }
            StepEvent::Waiting(wait) => {
                let cause = wait.cause.as_ref().map_or(String::new(), |cause| format!(" {cause}"));
                let code = wait.code.as_ref().map_or(String::new(), |code| format!(" {code}"));
                format!(
                    "{} attempt={}{cause}{code} delay={}",
                    wait.reason, wait.attempt, wait.delay_ms
                )
            }
            StepEvent::Started(dispatch) => {
                let path = match dispatch.path {
                    Path::Edge => String::new(),
                    Path::Bridge => " bridge".to_owned(),
                    Path::Sync => " bridge_sync".to_owned(),
                    Path::Child(child) => format!(" {child}"),
                    Path::FanOut => " fan_out".to_owned(),
                };
                format!("attempt={} dispatch={}{path}", dispatch.attempt, dispatch.dispatch_no)
            }
            StepEvent::Delta(delta) => format!("index={} {:?}", delta.index, delta.part),
            StepEvent::Log { line: LogLine::Text(text), .. } => text.clone(),
            StepEvent::Log { line: LogLine::Process(process), .. } => {
                format!("process {}", process.group)
            }
            StepEvent::Log { line: LogLine::Tool(asked), .. } => {
                let why = match &asked.ruling {
                    Ruling::Denied(why) => format!(": {why}"),
                    Ruling::Allowed(Some(_)) => " by consent".to_owned(),
                    Ruling::Allowed(None) | Ruling::Held(_) => String::new(),
                };
                format!("tool {} {}{why}", asked.tool, asked.ruling.as_str())
            }
            StepEvent::Log { line: LogLine::ToolEnded(call), .. } => {
                let ended = &call.ended;
                format!("tool {} {}", ended.tool, if ended.failed { "failed" } else { "answered" })
            }
            StepEvent::Log { line: LogLine::ModerationAsked { prepared, .. }, .. } => {
                let new = if prepared.is_some() { " (prepared)" } else { "" };
                format!("the moderator is asked{new}")
            }
            StepEvent::Log { line: LogLine::ModerationCleared { phase, .. }, .. } => {
                format!("{phase} cleared")
            }
            StepEvent::Log { line: LogLine::Child { pace, .. }, .. } => format!("child {pace}"),
            StepEvent::Retried(retried) => {
                let reask = if retried.reask { " reask" } else { "" };
                format!(
                    "attempt={} {} delay={}{reask}",
                    retried.attempt, retried.cause, retried.delay_ms
                )
            }
            StepEvent::Completed(completed) => {
                let carried = completed.carried.map_or("", |_| " carried");
                let coerced = if completed.coercions.is_empty() { "" } else { " coerced" };
                let mut outputs = completed.outcome.outputs.clone();
                // Times are printed by the wire tests.
                if let (Some(map), true) = (outputs.as_object_mut(), is_grant(node)) {
                    map.shift_remove("at");
                }
                format!("{outputs}{coerced}{carried}")
            }
            StepEvent::Failed(ending) | StepEvent::TimedOut(ending) => {
                format!("{}: {}", ending.code, ending.message)
            }
            StepEvent::Cancelled { code, reason, .. } => format!("{code}: {reason}"),
            StepEvent::Skipped(skip) => {
                let error = skip.error.as_ref();
                let error = error.map_or(String::new(), |(code, _)| format!(" [{code}]"));
                let carried = skip.carried.map_or("", |_| " carried");
                format!("{}: {}{error}{carried}", skip.cause.as_str(), skip.reason)
            }
            other => self.gate_line(other),
        };
        format!("{} {told}", self.run.name(at)).trim_end().to_owned()
    }

    fn gate_line(&self, node: &StepEvent) -> String {
        match node {
            StepEvent::Blocked { code, message, waits, .. } => {
                let waits = if *waits { " (waits)" } else { "" };
                format!("{code}: {message}{waits}")
            }
            StepEvent::Assigned(assigned) => format!("{:?}", assigned.assignee),
            StepEvent::Provenance(row) => {
                let run = row.source_run.map_or(String::new(), |run| format!("{run} "));
                let how = row.transform.as_ref().map_or(String::new(), |how| format!(" ({how})"));
                let from = format!("{} {}", row.source_node, row.source_output_path);
                format!("{} <- {run}{}{how}", row.target_input_path, from.trim_start())
            }
            StepEvent::Endorsed(endorsed) => {
                let by = endorsed.approval.map_or(String::new(), |by| format!(" by {by}"));
                format!("{} loses {}{by}", endorsed.output, endorsed.origins.join(", "))
            }
            StepEvent::ContractViolated { phase, errors } => {
                let errors: Vec<String> =
                    errors.iter().map(|one| format!("{} {}", one.field, one.reason)).collect();
                format!("{phase} {}", errors.join(", "))
            }
            StepEvent::ModerationFlagged { phase, decision } => format!("{phase} {decision}"),
            StepEvent::ApprovalRequested(asked) => {
                let changes = asked.action.iter().flat_map(|asked| &asked.changes);
                let changes: Vec<String> = changes
                    .map(|one| format!(" {}: {} -> {}", one.path, one.before, one.after))
                    .collect();
                let source = asked.source.as_str();
                format!("{} {source} {:?}{}", asked.approval, asked.summary, changes.concat())
            }
            StepEvent::GovernanceDecided(decision) => {
                let decision = decision.value();
                let by = &decision.get("blockedBy").map_or(Value::Null, |by| by["gate"].clone());
                format!("{} {}", decision["disposition"], by)
            }
            StepEvent::Reconciled { dispatch_no, usage } => {
                format!("dispatch={dispatch_no} cost={}", usage.cost)
            }
            StepEvent::ApprovalReminded { approval, level } => format!("{approval} {level}"),
            StepEvent::ApprovalResolved(resolved) => {
                let by = resolved.by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
                format!("{} {}{by}", resolved.approval, resolved.resolution.as_str())
            }
            _ => String::new(),
        }
    }
}

fn is_grant(node: &StepEvent) -> bool {
    matches!(node, StepEvent::Completed(done) if done.outcome.outputs.get("approved").is_some())
}
