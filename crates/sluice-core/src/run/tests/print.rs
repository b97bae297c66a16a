//! Events as short lines.

use super::world::World;
use crate::journal::event::{Event, Line, NodeEvent, Path, Ruling, StepAt};
use serde_json::Value;

impl World {
    /// The line of an event, by number.
    pub(super) fn line(&mut self, number: usize) -> String {
        let event = self.journal[number - 1].1.clone();
        let told = match &event {
            Event::Node(at, node) => self.node_line(*at, node),
            Event::RunStatusChanged { status, reason, by } => {
                let by = by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
                format!("{status} ({reason}){by}")
            }
            Event::RunCompleted { outputs } => outputs.to_string(),
            Event::RunFailed { code, message } => format!("{code}: {message}"),
            Event::RunCancelled { reason } => reason.clone(),
            Event::RunTimedOut { timeout_ms } => crate::duration::format(*timeout_ms),
            Event::BudgetAlert(figures) => Value::Object(figures.clone()).to_string(),
            Event::RunStarted(_) | Event::RunRecovered => String::new(),
        };
        let line = format!("{} {} {told}", self.shown, event.name());
        self.shorten(line.trim_end())
    }

    fn node_line(&self, at: StepAt, node: &NodeEvent) -> String {
        let told = match node {
            NodeEvent::Queued { items } => {
                items.as_ref().map_or(String::new(), |items| format!("items={}", items.len()))
            }
            NodeEvent::Waiting(wait) => {
                let cause = wait.cause.as_ref().map_or(String::new(), |cause| format!(" {cause}"));
                let code = wait.code.as_ref().map_or(String::new(), |code| format!(" {code}"));
                format!(
                    "{} attempt={}{cause}{code} delay={}",
                    wait.reason, wait.attempt, wait.delay_ms
                )
            }
            NodeEvent::Started(dispatch) => {
                let path = match dispatch.path {
                    Path::Edge => String::new(),
                    Path::Bridge => " bridge".to_owned(),
                    Path::Sync => " bridge_sync".to_owned(),
                    Path::Child(child) => format!(" {child}"),
                    Path::FanOut => " fan_out".to_owned(),
                };
                format!("attempt={} dispatch={}{path}", dispatch.attempt, dispatch.dispatch_no)
            }
            NodeEvent::Delta(delta) => format!("index={} {:?}", delta.index, delta.part),
            NodeEvent::Log { line: Line::Text(text), .. } => text.clone(),
            NodeEvent::Log { line: Line::Process(process), .. } => {
                format!("process {}", process.group)
            }
            NodeEvent::Log { line: Line::Tool(asked), .. } => {
                let why = match &asked.ruling {
                    Ruling::Denied(why) => format!(": {why}"),
                    Ruling::Allowed(Some(_)) => " by consent".to_owned(),
                    Ruling::Allowed(None) | Ruling::Held(_) => String::new(),
                };
                format!("tool {} {}{why}", asked.tool, asked.ruling.as_str())
            }
            NodeEvent::Log { line: Line::ToolEnded(ended), .. } => {
                format!("tool {} {}", ended.tool, if ended.failed { "failed" } else { "answered" })
            }
            NodeEvent::Log { line: Line::Asked { prepared, .. }, .. } => {
                let new = if prepared.is_some() { " (prepared)" } else { "" };
                format!("the moderator is asked{new}")
            }
            NodeEvent::Log { line: Line::Cleared { phase, .. }, .. } => format!("{phase} cleared"),
            NodeEvent::Log { line: Line::Child { pace, .. }, .. } => format!("child {pace}"),
            NodeEvent::Retried(retried) => {
                let reask = if retried.reask { " reask" } else { "" };
                format!(
                    "attempt={} {} delay={}{reask}",
                    retried.attempt, retried.cause, retried.delay_ms
                )
            }
            NodeEvent::Completed(completed) => {
                let carried = completed.carried.map_or("", |_| " carried");
                let coerced = if completed.coercions.is_empty() { "" } else { " coerced" };
                let mut outputs = completed.outcome.outputs.clone();
                // How a time is written is the wire's affair.
                if let (Some(map), true) = (outputs.as_object_mut(), is_grant(node)) {
                    map.shift_remove("at");
                }
                format!("{outputs}{coerced}{carried}")
            }
            NodeEvent::Failed(ending) | NodeEvent::TimedOut(ending) => {
                format!("{}: {}", ending.code, ending.message)
            }
            NodeEvent::Cancelled { code, reason, .. } => format!("{code}: {reason}"),
            NodeEvent::Skipped(skip) => {
                let error = skip.error.as_ref();
                let error = error.map_or(String::new(), |(code, _)| format!(" [{code}]"));
                let carried = skip.carried.map_or("", |_| " carried");
                format!("{}: {}{error}{carried}", skip.cause.as_str(), skip.reason)
            }
            other => self.gate_line(other),
        };
        format!("{} {told}", self.run.name(at)).trim_end().to_owned()
    }

    fn gate_line(&self, node: &NodeEvent) -> String {
        match node {
            NodeEvent::Blocked { code, message, waits, .. } => {
                let waits = if *waits { " (waits)" } else { "" };
                format!("{code}: {message}{waits}")
            }
            NodeEvent::Assigned(assigned) => format!("{:?}", assigned.whom),
            NodeEvent::Provenance(row) => {
                let run = row.source_run.map_or(String::new(), |run| format!("{run} "));
                let how = row.transform.as_ref().map_or(String::new(), |how| format!(" ({how})"));
                let from = format!("{} {}", row.source_node, row.source_output_path);
                format!("{} <- {run}{}{how}", row.target_input_path, from.trim_start())
            }
            NodeEvent::ContractViolated { phase, errors } => {
                let errors: Vec<String> =
                    errors.iter().map(|one| format!("{} {}", one.field, one.reason)).collect();
                format!("{phase} {}", errors.join(", "))
            }
            NodeEvent::ModerationFlagged { phase, decision } => format!("{phase} {decision}"),
            NodeEvent::ApprovalRequested(asked) => {
                let changes = asked.action.iter().flat_map(|asked| &asked.changes);
                let changes: Vec<String> = changes
                    .map(|one| format!(" {}: {} -> {}", one.path, one.before, one.after))
                    .collect();
                let source = asked.source.as_str();
                format!("{} {source} {:?}{}", asked.approval, asked.summary, changes.concat())
            }
            NodeEvent::GovernanceDecided(decision) => {
                let decision = decision.value();
                let by = &decision.get("blockedBy").map_or(Value::Null, |by| by["gate"].clone());
                format!("{} {}", decision["disposition"], by)
            }
            NodeEvent::Reconciled { dispatch_no, usage } => {
                format!("dispatch={dispatch_no} cost={}", usage.cost)
            }
            NodeEvent::ApprovalReminded { approval, level } => format!("{approval} {level}"),
            NodeEvent::ApprovalResolved(resolved) => {
                let by = resolved.by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
                format!("{} {}{by}", resolved.approval, resolved.resolution.as_str())
            }
            _ => String::new(),
        }
    }
}

fn is_grant(node: &NodeEvent) -> bool {
    matches!(node, NodeEvent::Completed(done) if done.outcome.outputs.get("approved").is_some())
}
