//! A tool that waits for a run.
//!
//! INVARIANT: the cursor that is answered is behind every event that is answered
//! and before every one that is not: who goes on from it misses nothing.

use super::answer::{Answered, Refusal};
use super::arguments::{Until, WatchRun};
use crate::api::gate;
use crate::api::problem::{Rejection, UNAUTHENTICATED};
use crate::api::route::Need;
use crate::app::App;
use crate::auth::Caller;
use crate::house::House;
use crate::limits::{MCP_EVENT_BYTES, MCP_RESULT_BYTES_MAX};
use crate::refused::{self, Failure, Refused};
use crate::service::find;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use sluice_core::journal::envelope::Seen;
use sluice_core::run::id::RunId;
use sluice_core::run::state::Run;
use sluice_engine::tail::Reader;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const DELTA: &str = "node.stream.delta";
const ASKED: &str = "approval.requested";
const DECIDED: &str = "governance.decided";

/// Who waits.
pub(super) struct Watcher<'a> {
    pub(super) app: &'a App,
    pub(super) house: &'a Arc<House>,
    pub(super) caller: &'a Caller,
    /// What whoever waits must be allowed to.
    pub(super) need: Need,
    pub(super) context: &'a RequestContext<RoleServer>,
}

/// What was seen so far.
struct Heard {
    events: Vec<Value>,
    bytes: usize,
    cursor: u64,
    full: bool,
    /// Whether somebody was asked.
    asked: bool,
}

impl Watcher<'_> {
    /// Waits as long as was asked for.
    pub(super) async fn watch(self, asked: &WatchRun) -> Result<(String, Answered), Refusal> {
        gate::permitted(self.need, self.caller)?;
        let told = |failure: Failure| Refusal::from(Rejection::from(failure).into_refused());
        let service = self.house.service();
        let run = find::run(service, &asked.run_id).await.map_err(told)?.run;
        let reader = service.engine.reader(run, asked.after).await;
        let reader = reader.map_err(refused::load).map_err(told)?;
        let heard = self.listen(asked, run, reader).await.map_err(told)?;
        self.still_may()?;
        let now = find::load(service, run).await.map_err(told)?;
        Ok(answered(&now, &heard))
    }

    async fn listen(
        &self,
        asked: &WatchRun,
        run: RunId,
        mut reader: Reader,
    ) -> Result<Heard, Failure> {
        let until = Instant::now() + Duration::from_secs(asked.wait_seconds);
        let mut heard =
            Heard { events: Vec::new(), bytes: 0, cursor: asked.after, full: false, asked: false };
        let mut changes = self.house.changes();
        loop {
            let page = tokio::select! {
                biased;
                () = self.app.stop().cancelled() => return Err(Failure::Stopping),
                () = self.context.ct.cancelled() => return Ok(heard),
                Ok(()) = changes.changed() => {
                    self.still_may()?;
                    continue;
                }
                page = timeout_at(until, reader.next()) => page,
            };
            // The time is over, or the run is.
            let Ok(page) = page else { return Ok(heard) };
            let Some(page) = page.map_err(refused::load)? else { return Ok(heard) };
            heard.take(&page, asked);
            self.progress(heard.cursor).await;
            let enough = match asked.until {
                Until::Event => !heard.events.is_empty(),
                Until::End => heard.asked && self.waits_for_people(run).await?,
            };
            if heard.full || enough {
                return Ok(heard);
            }
            heard.asked = false;
        }
    }

    async fn waits_for_people(&self, run: RunId) -> Result<bool, Failure> {
        let run = find::load(self.house.service(), run).await?;
        Ok(open(&run).next().is_some())
    }

    /// Says how far it got, if whoever waits wants to know.
    async fn progress(&self, cursor: u64) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        #[expect(clippy::cast_precision_loss, reason = "ids of events are far below 2^53")]
        let told = ProgressNotificationParam::new(token, cursor as f64);
        let told = told.with_message(format!("{cursor} events"));
        // Whoever left will not hear the answer either.
        let _ = self.context.peer.notify_progress(told).await;
    }

    /// A token that was revoked meanwhile is told nothing.
    fn still_may(&self) -> Result<(), Refused> {
        if self.caller.token.is_empty() {
            return Ok(());
        }
        let now_ms = self.app.now_ms();
        let identities = self.house.identities();
        let Some((_, permissions)) = identities.standing(&self.caller.token, now_ms) else {
            return Err(Refused::new(UNAUTHENTICATED, "the token counts no more", "use another"));
        };
        gate::permitted(self.need, &Caller { permissions, ..self.caller.clone() })
    }
}

impl Heard {
    fn take(&mut self, page: &[Arc<Seen>], asked: &WatchRun) {
        for seen in page {
            if let Seen::Event(event) = &**seen
                && (asked.deltas || event.kind != DELTA)
            {
                let most = self.events.len() == usize::from(asked.limit);
                if most || self.bytes > MCP_RESULT_BYTES_MAX / 2 {
                    self.full = true;
                    return;
                }
                self.asked |= event.kind == ASKED;
                // Longer texts are cut anyway.
                self.bytes += event.json.len().min(MCP_EVENT_BYTES);
                self.events.push(brief(&event.json));
            }
            self.cursor = seen.id();
        }
    }
}

/// An event without what only a page of its own shows: the facts of a decision are
/// many times as long as what was decided.
fn brief(event: &str) -> Value {
    let mut event: Value = serde_json::from_str(event).unwrap_or_default();
    if event["type"] == DECIDED
        && let Some(payload) = event["payload"].as_object_mut()
    {
        payload.remove("facts");
    }
    event
}

/// The questions that are open.
fn open(run: &Run) -> impl Iterator<Item = String> {
    let open = run.approvals.iter().filter(|(_, asked)| asked.resolution.is_none());
    open.map(|(id, _)| id.to_string())
}

fn answered(run: &Run, heard: &Heard) -> (String, Answered) {
    let caught_up = heard.cursor >= run.version;
    let ended = run.status.is_terminal() && caught_up;
    let open: Vec<String> = open(run).collect();
    let mut said = format!("{} is {}.", run.id, run.status);
    if ended {
        said.push_str(" It has ended, and every event was answered.");
    } else if !open.is_empty() {
        said.push_str(" It waits for an answer of people.");
    }
    let data = json!({
        "run_id": run.id.to_string(),
        "status": run.status.to_string(),
        "ended": ended,
        "more": !caught_up,
        "cursor": heard.cursor,
        "open_approvals": open,
        "events": heard.events,
    });
    (said, Answered { data, next_cursor: None })
}
