//! `sluice runs logs`: prints the log lines of steps.

use crate::Exit;
use crate::amount;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::runs::Logs;
use crate::client::{Client, EventStream, StreamItem};
use crate::out::Out;
use crate::values::{answered, block};
use serde_json::Value;
use serde_json::value::RawValue;
use sluice_core::visible;
use std::time::Duration;

/// How long to wait before a stream that ended is reopened.
const GAP_MS: u64 = 250;

pub(super) async fn run(args: &Logs, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let mut printer = LogPrinter { args, out, printed: false };
    print(&client, &mut printer).await?;
    let printed = printer.printed;
    client.close().await;
    if !printed && args.target.output() == OutputFormat::Text {
        out.note("no log lines")?;
    }
    Ok(Exit::Done)
}

/// Prints the log lines of the selected steps.
struct LogPrinter<'a> {
    args: &'a Logs,
    out: &'a mut Out,
    printed: bool,
}

impl LogPrinter<'_> {
    /// Prints an event that is a log line of a selected step.
    fn print(&mut self, json: &str) -> anyhow::Result<()> {
        let envelope: Value = serde_json::from_str(json)?;
        if envelope["type"] != "node.log" {
            return Ok(());
        }
        let payload = &envelope["payload"];
        let step = payload["nodeId"].as_str().unwrap_or_default();
        let Some(text) = payload["text"].as_str().filter(|_| self.is_selected(step)) else {
            return Ok(());
        };
        self.printed = true;
        if self.args.target.output() == OutputFormat::Json {
            return self.out.json_text(json);
        }
        let at = envelope["timestamp"].as_str().and_then(amount::ms).map(amount::moment);
        let (at, step) = (at.unwrap_or_default(), visible::brief(step));
        // One event may hold several lines.
        for line in text.trim_end().split('\n') {
            let line = format!("{at}  {step}  {}", visible::line(line));
            self.out.print(&format!("{}\n", line.trim_end()))?;
        }
        // What a tool answered.
        self.out.print(&block("    ", &answered(&payload["content"])))?;
        Ok(())
    }

    /// A step name selects all instances of the step.
    fn is_selected(&self, step: &str) -> bool {
        self.args.step.as_deref().is_none_or(|wanted| {
            let rest = step.strip_prefix(wanted);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        })
    }
}

async fn print(client: &Client, printer: &mut LogPrinter<'_>) -> anyhow::Result<()> {
    let id = super::id(client, &printer.args.run.id).await?;
    if let Some(step) = &printer.args.step {
        client.get(&["runs", &id, "steps", step], &[]).await?;
    }
    if printer.args.follow {
        return follow(client, &id, printer).await;
    }
    let mut cursor: Option<String> = None;
    loop {
        let query: Vec<(&str, String)> =
            cursor.take().into_iter().map(|cursor| ("cursor", cursor)).collect();
        let page = client.get(&["runs", &id, "journal"], &query).await?;
        cursor.clone_from(&page.next_cursor);
        for event in page.read::<Vec<Box<RawValue>>>()? {
            printer.print(event.get())?;
        }
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// The stream ends with the run, or with the server: then it is opened again until the
/// run has ended.
async fn follow(client: &Client, id: &str, printer: &mut LogPrinter<'_>) -> anyhow::Result<()> {
    let mut events = EventStream::new(client, id, 0);
    loop {
        while let Some(item) = events.next().await? {
            if let StreamItem::Event { json, .. } = item {
                printer.print(&json)?;
                printer.out.flush()?;
            }
        }
        let state = client.get_patiently(&["runs", id, "state"]).await?;
        if state.data["is_running"] == false {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(GAP_MS)).await;
    }
}
