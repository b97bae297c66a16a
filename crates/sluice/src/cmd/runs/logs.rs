//! `sluice runs logs`: the lines that steps logged.

use crate::Exit;
use crate::amount;
use crate::cli::Reader;
use crate::cli::runs::Logs;
use crate::client::{Client, Follow, Sent};
use crate::desk::Desk;
use crate::local::Local;
use crate::out::Out;
use serde_json::Value;
use sluice_core::journal::envelope::Seen;
use sluice_core::visible;
use sluice_server::refused;
use sluice_server::service::find;
use std::time::Duration;

/// How often a run that is followed is read again even if nothing seems to have happened.
const LOOK_MS: u64 = 500;
/// How long to wait before a stream that ended is opened again.
const GAP_MS: u64 = 250;

pub(super) async fn run(args: &Logs, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::read(&args.data).await?;
    let mut printer = Printer { args, out, printed: false };
    match &desk {
        Desk::Here(local) => here(local, &mut printer).await?,
        Desk::There(client) => there(client, &mut printer).await?,
    }
    let printed = printer.printed;
    desk.close().await;
    if !printed && args.json.reader() == Reader::Person {
        out.note("no log lines")?;
    }
    Ok(Exit::Done)
}

/// Prints the lines that were asked for.
struct Printer<'a> {
    args: &'a Logs,
    out: &'a mut Out,
    printed: bool,
}

impl Printer<'_> {
    /// Prints an event if it is a line that was asked for.
    fn see(&mut self, kind: &str, json: &str) -> anyhow::Result<()> {
        if kind != "node.log" {
            return Ok(());
        }
        let envelope: Value = serde_json::from_str(json)?;
        let payload = &envelope["payload"];
        let step = payload["nodeId"].as_str().unwrap_or_default();
        let Some(text) = payload["text"].as_str().filter(|_| self.wants(step)) else {
            return Ok(());
        };
        self.printed = true;
        if self.args.json.reader() == Reader::Program {
            return self.out.json_text(json);
        }
        let at = envelope["timestamp"].as_str().and_then(amount::ms).map(amount::moment);
        let (at, step) = (at.unwrap_or_default(), visible::brief(step));
        // Lines that come at once are one event.
        for line in text.trim_end().split('\n') {
            let line = format!("{at}  {step}  {}", visible::line(line));
            self.out.print(&format!("{}\n", line.trim_end()))?;
        }
        Ok(())
    }

    /// Of one step all instances are meant.
    fn wants(&self, step: &str) -> bool {
        self.args.step.as_deref().is_none_or(|wanted| {
            let rest = step.strip_prefix(wanted);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        })
    }
}

async fn here(local: &Local, printer: &mut Printer<'_>) -> anyhow::Result<()> {
    let id = find::run(local, &printer.args.run.id).await?.run;
    let mut run = find::load(local, id).await?;
    if let Some(step) = &printer.args.step {
        find::step(&run, step)?;
    }
    let mut reader = local.engine.reader(id, 0).await.map_err(refused::load)?;
    loop {
        loop {
            let page = reader.read().await.map_err(refused::load)?;
            if page.is_empty() {
                break;
            }
            for seen in page {
                if let Seen::Event(event) = &*seen {
                    printer.see(&event.kind, &event.json)?;
                }
            }
        }
        printer.out.flush()?;
        // What was journalled before its end was read above.
        if !printer.args.follow || run.status.is_terminal() {
            return Ok(());
        }
        local.store.changed(LOOK_MS).await;
        run = find::load(local, id).await?;
    }
}

async fn there(client: &Client, printer: &mut Printer<'_>) -> anyhow::Result<()> {
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
        for event in page.read::<Vec<Value>>()? {
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            printer.see(&kind, &event.to_string())?;
        }
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// The stream ends with the run, or with the server: then it is opened again.
async fn follow(client: &Client, id: &str, printer: &mut Printer<'_>) -> anyhow::Result<()> {
    let mut events = Follow::new(client, id, 0);
    loop {
        while let Some(sent) = events.next().await? {
            if let Sent::Event { kind, json, .. } = sent {
                printer.see(&kind, &json)?;
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
