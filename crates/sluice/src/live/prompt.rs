//! Prompts for approvals at the terminal.

use crate::local;
use crate::out::Out;
use serde_json::{Map, Value};
use sluice_core::id::ApprovalId;
use sluice_core::journal::event::ApprovalSource;
use sluice_core::outputs::schema::FieldSchema;
use sluice_core::plan::step::Work;
use sluice_core::run::command::{Decision, Refusal, Resolve};
use sluice_core::run::state::Run;
use sluice_core::visible;
use std::io::BufRead as _;
use tokio::sync::mpsc;

/// Most lines of a summary.
const SUMMARY_LINES_MAX: usize = 20;

/// Lines typed at the terminal. A separate thread reads them, because a started read cannot be
/// cancelled.
#[derive(Default)]
pub(super) struct Prompt {
    lines: Option<mpsc::UnboundedReceiver<String>>,
}

impl Prompt {
    /// Prompts for a decision; none when the terminal is closed.
    pub(super) async fn decide(
        &mut self,
        run: &Run,
        id: ApprovalId,
        who: &str,
        unfit: Option<&Refusal>,
        out: &mut Out,
    ) -> anyhow::Result<Option<Resolve>> {
        let approval = &run.approvals[&id];
        self.forget();
        match unfit {
            Some(refusal) => out.note(&format!("  {}", visible::brief(&refusal.to_string())))?,
            None => {
                let step = run.name(approval.at);
                out.note(&format!("{} needs an approval  ({id})", visible::brief(&step)))?;
                for line in approval.summary.lines().take(SUMMARY_LINES_MAX) {
                    out.note(&format!("  {}", visible::brief(line)))?;
                }
            }
        }
        let choice = match approval.source {
            ApprovalSource::Escalation => self.choice(out).await?,
            ApprovalSource::Step | ApprovalSource::Policy | ApprovalSource::Tool => {
                self.yes_or_no(out).await?
            }
        };
        let Some(decision) = choice else { return Ok(None) };
        let mut resolve = Resolve {
            approval: id,
            decision,
            by: who.to_owned(),
            comment: None,
            values: Map::new(),
            roles: local::roles(&[]),
            constraints: None,
        };
        let step = run.step(approval.at);
        let asks_values = matches!(step.work, Work::Approval) && decision == Decision::Approve;
        for (name, schema) in step.outputs.iter().filter(|_| asks_values) {
            let Some(text) = self.read(&field_prompt(name, schema), out).await? else {
                return Ok(None);
            };
            if !text.is_empty() {
                resolve.values.insert(name.clone(), Value::from(text));
            }
        }
        if decision == Decision::Reject {
            let Some(reason) = self.read("  why? ", out).await? else { return Ok(None) };
            resolve.comment = Some(reason).filter(|reason| !reason.is_empty());
        }
        Ok(Some(resolve))
    }

    async fn yes_or_no(&mut self, out: &mut Out) -> anyhow::Result<Option<Decision>> {
        loop {
            let answer = self.read("  approve? [y/n] ", out).await?;
            let Some(answer) = answer else { return Ok(None) };
            match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(Some(Decision::Approve)),
                "n" | "no" => return Ok(Some(Decision::Reject)),
                _ => {}
            }
        }
    }

    async fn choice(&mut self, out: &mut Out) -> anyhow::Result<Option<Decision>> {
        let prompt = "  retry, skip or abort the step? [retry/skip/abort] ";
        loop {
            let Some(answer) = self.read(prompt, out).await? else { return Ok(None) };
            match answer.to_ascii_lowercase().as_str() {
                "r" | "retry" => return Ok(Some(Decision::Retry)),
                "s" | "skip" => return Ok(Some(Decision::Skip)),
                "a" | "abort" => return Ok(Some(Decision::Abort)),
                _ => {}
            }
        }
    }

    /// Reads one line; none when the terminal is closed.
    async fn read(&mut self, prompt: &str, out: &mut Out) -> anyhow::Result<Option<String>> {
        out.prompt(prompt)?;
        let lines = self.lines.get_or_insert_with(reader);
        let line = lines.recv().await;
        if line.is_none() {
            out.note("")?;
        }
        Ok(line.map(|line| line.trim().to_owned()))
    }

    /// Discards lines that were typed before the prompt.
    fn forget(&mut self) {
        if let Some(lines) = &mut self.lines {
            while lines.try_recv().is_ok() {}
        }
    }
}

fn reader() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn field_prompt(name: &str, schema: &FieldSchema) -> String {
    let mut about = vec![schema.kind.map_or("any", |kind| kind.as_str()).to_owned()];
    if !schema.values.is_empty() {
        let values: Vec<String> = schema.values.iter().map(shown).collect();
        about = vec![values.join(" | ")];
    }
    if !schema.required {
        about.push("optional".to_owned());
    }
    format!("  {} ({}): ", visible::brief(name), visible::brief(&about.join(", ")))
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
