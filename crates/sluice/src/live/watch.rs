//! Shows a run that another process works on, through the stream of its events.

use super::ending::{self, outputs, summary};
use super::line::EventLines;
use super::screen::Screen;
use crate::Exit;
use crate::cli::run::View;
use crate::client::{ApiAnswer, Client, EventStream, StreamItem};
use crate::environment;
use crate::out::{Layout, Out};
use crate::picture::Picture;
use serde_json::Value;
use sluice_core::port::Clock as _;
use sluice_core::status::StepStatus;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr};
use std::time::Duration;
use tokio::time::Instant;

/// Interval of redraws.
const DRAW_MS: u64 = 100;
/// Shortest time between two reads of the run.
const GAP_MS: u64 = 250;
/// Longest time between two reads of a run with sub-workflows: a wait in a child run is not an
/// event of this run.
const CHILDREN_MS: u64 = 1000;

/// Follows a run until it has ended; events up to `after` are not shown.
pub(crate) async fn watch(
    client: &Client,
    run: &str,
    after: u64,
    view: View,
    again: &str,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let on_terminal = stderr().is_terminal() && !environment::terminal_is_dumb();
    let drawn = on_terminal && !view.json && !view.events;
    let events = EventStream::new(client, run, after);
    let mut watcher = RunWatcher {
        client,
        run,
        events,
        view,
        has_children: has_children(client, run).await?,
        lines: EventLines::default(),
        screen: drawn.then(Screen::new),
    };
    let state = watcher.until_ended(out).await?;
    watcher.end(state, again, out).await
}

struct RunWatcher<'a> {
    client: &'a Client,
    run: &'a str,
    events: EventStream,
    view: View,
    /// Whether steps of the run are sub-workflows.
    has_children: bool,
    lines: EventLines,
    screen: Option<Screen>,
}

impl RunWatcher<'_> {
    /// Shows events until the run has ended. Returns its final state.
    async fn until_ended(&mut self, out: &mut Out) -> anyhow::Result<ApiAnswer> {
        loop {
            match self.screen {
                Some(_) => self.draw().await?,
                None => self.print_events(out).await?,
            }
            // The stream ends with the run, or with the server.
            let state = self.state().await?;
            if state.data["is_running"] == false {
                return Ok(state);
            }
            tokio::time::sleep(Duration::from_millis(GAP_MS)).await;
        }
    }

    async fn state(&self) -> anyhow::Result<ApiAnswer> {
        self.client.get_patiently(&["runs", self.run, "state"]).await
    }

    /// Prints events, as lines of text or of JSON.
    async fn print_events(&mut self, out: &mut Out) -> anyhow::Result<()> {
        while let Some(sent) = self.next_event(out).await? {
            match sent {
                StreamItem::Event { json, .. } if self.view.events => {
                    out.json_text(one_line(&json)?)?;
                }
                StreamItem::Event { kind, json, .. } => {
                    if let Some(lines) = self.lines.draw(&kind, &json) {
                        out.note(&lines)?;
                    }
                }
                StreamItem::Elided(which) if self.view.events => {
                    out.note(&format!("events {}", visible::brief(&which)))?;
                }
                StreamItem::Elided(_) => {}
            }
            out.flush()?;
        }
        Ok(())
    }

    /// The next event. Prints waits in child runs meanwhile.
    async fn next_event(&mut self, out: &mut Out) -> anyhow::Result<Option<StreamItem>> {
        let RunWatcher { client, run, events, view, has_children, lines, .. } = self;
        // Pinned, so that a timer does not restart a connection attempt.
        let next = events.next();
        tokio::pin!(next);
        loop {
            tokio::select! {
                sent = &mut next => return sent,
                () = tokio::time::sleep(Duration::from_millis(CHILDREN_MS)),
                    if *has_children && !view.events => {}
            }
            let state = client.get_patiently(&["runs", run, "state"]).await?;
            for line in lines.draw_child_waits(&child_waits(&state.data)?) {
                out.note(&line)?;
            }
            out.flush()?;
        }
    }

    /// Redraws the run in place, and reads it again after events.
    async fn draw(&mut self) -> anyhow::Result<()> {
        let mut shown = picture(&self.state().await?.data)?;
        let (mut read_at, mut stale) = (Instant::now(), false);
        let RunWatcher { client, run, events, has_children, screen: Some(screen), .. } = self
        else {
            return Ok(());
        };
        loop {
            // Pinned, so that redraws do not restart a connection attempt.
            let next = events.next();
            tokio::pin!(next);
            let sent = loop {
                screen.draw(&shown, SystemClock.now_ms());
                stale |= *has_children && read_at.elapsed() >= Duration::from_millis(CHILDREN_MS);
                if stale && read_at.elapsed() >= Duration::from_millis(GAP_MS) {
                    shown = picture(&client.get_patiently(&["runs", run, "state"]).await?.data)?;
                    (read_at, stale) = (Instant::now(), false);
                }
                tokio::select! {
                    sent = &mut next => break sent?,
                    () = tokio::time::sleep(Duration::from_millis(DRAW_MS)) => {}
                }
            };
            match sent {
                Some(_) => stale = true,
                None => return Ok(()),
            }
        }
    }

    /// Prints the result of the run.
    async fn end(&mut self, state: ApiAnswer, again: &str, out: &mut Out) -> anyhow::Result<Exit> {
        let shown = picture(&state.data)?;
        if let Some(screen) = &mut self.screen {
            screen.draw(&shown, SystemClock.now_ms());
            screen.keep();
        }
        if self.view.json {
            out.note(&summary(&shown))?;
            out.json(Layout::Line, &state.raw)?;
        } else if self.view.events {
            out.note(&summary(&shown))?;
        } else {
            let last = match &shown.outputs {
                Some(_) => self.last_words(&state.data).await?,
                None => Vec::new(),
            };
            out.print(&format!("{}\n{}", summary(&shown), outputs(&shown, &last)))?;
        }
        if shown.status == sluice_core::status::RunStatus::Failed {
            let id = visible::brief(&shown.run_id);
            out.note(&format!(
                "look: sluice runs show {id}{again}\nretry: sluice runs retry {id}{again}"
            ))?;
        }
        Ok(ending::exit(shown.status))
    }

    /// The texts of the last steps of a run without outputs.
    async fn last_words(&self, state: &Value) -> anyhow::Result<Vec<(String, Value)>> {
        let detail = self.client.get(&["runs", self.run], &[]).await?.data;
        let last = detail["last_steps"].as_array().cloned().unwrap_or_default();
        let nodes = state["node_results"].as_array().cloned().unwrap_or_default();
        let said = nodes.into_iter().filter_map(|mut node| {
            let output = node["output"].take();
            let id = node["node_id"].as_str()?;
            let counts = last.iter().any(|one| one == id) && !output.is_null();
            counts.then(|| (id.to_owned(), output))
        });
        Ok(said.collect())
    }
}

/// Checks that an event is JSON.
fn one_line(json: &str) -> anyhow::Result<&str> {
    serde_json::from_str::<&serde_json::value::RawValue>(json)?;
    Ok(json)
}

/// Whether steps of a run are sub-workflows.
async fn has_children(client: &Client, run: &str) -> anyhow::Result<bool> {
    let detail = client.get_patiently(&["runs", run]).await?.data;
    let steps = detail["steps"].as_array();
    Ok(steps.is_some_and(|steps| steps.iter().any(|step| step["kind"] == "workflow")))
}

/// What running steps wait for in their child runs, by step.
fn child_waits(state: &Value) -> anyhow::Result<BTreeMap<String, String>> {
    let steps = picture(state)?.node_results.into_iter();
    let waiting = steps.filter(|step| step.status == StepStatus::Running && step.is_at_gate());
    Ok(waiting.filter_map(|step| Some((step.node_id, step.unblock_hint?))).collect())
}

fn picture(state: &Value) -> anyhow::Result<Picture> {
    Ok(<Picture as serde::Deserialize>::deserialize(state)?)
}
