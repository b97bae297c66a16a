//! The tool `watch_run`, which waits for events of a run.
//!
//! INVARIANT: the returned cursor is after every event that is returned and before every
//! event that is not: a client that continues from it misses nothing.

use super::arguments::{Until, WatchRun};
use super::result::{ToolData, ToolRefusal};
use crate::api::admission;
use crate::api::problem::{Rejection, UNAUTHENTICATED};
use crate::api::route::Need;
use crate::app::App;
use crate::auth::Caller;
use crate::limits::{MCP_EVENT_BYTES, MCP_RESULT_BYTES_MAX};
use crate::organisation::Organisation;
use crate::refused::{self, Failure, Refused};
use crate::service::find;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use sluice_core::id::RunId;
use sluice_core::journal::envelope::Seen;
use sluice_core::run::state::Run;
use sluice_engine::tail::Reader;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const DELTA: &str = "node.stream.delta";
const APPROVAL_REQUESTED: &str = "approval.requested";
const DECIDED: &str = "governance.decided";

/// A client that waits for a run.
pub(super) struct Watcher<'a> {
    pub(super) app: &'a App,
    pub(super) organisation: &'a Arc<Organisation>,
    pub(super) caller: &'a Caller,
    /// The permission that the client needs.
    pub(super) need: Need,
    pub(super) context: &'a RequestContext<RoleServer>,
}

/// The events read so far.
struct WatchedEvents {
    events: Vec<Value>,
    bytes: usize,
    cursor: u64,
    full: bool,
    /// Whether an approval was requested.
    arguments: bool,
}

impl Watcher<'_> {
    /// Waits at most as long as the arguments allow.
    pub(super) async fn watch(
        self,
        arguments: &WatchRun,
    ) -> Result<(String, ToolData), ToolRefusal> {
        admission::permitted(self.need, self.caller)?;
        let refuse = |failure: Failure| ToolRefusal::from(Rejection::from(failure).into_refused());
        let service = self.organisation.service();
        let run = find::run(service, &arguments.run_id).await.map_err(refuse)?.run;
        let reader = service.engine.reader(run, arguments.after).await;
        let reader = reader.map_err(refused::load).map_err(refuse)?;
        let seen_events = self.listen(arguments, run, reader).await.map_err(refuse)?;
        self.check_token()?;
        let now = find::load(service, run).await.map_err(refuse)?;
        Ok(result(&now, &seen_events))
    }

    async fn listen(
        &self,
        arguments: &WatchRun,
        run: RunId,
        mut reader: Reader,
    ) -> Result<WatchedEvents, Failure> {
        let until = Instant::now() + Duration::from_secs(arguments.wait_seconds);
        let mut seen_events = WatchedEvents {
            events: Vec::new(),
            bytes: 0,
            cursor: arguments.after,
            full: false,
            arguments: false,
        };
        let mut changes = self.organisation.changes();
        loop {
            let page = tokio::select! {
                biased;
                () = self.app.stop().cancelled() => return Err(Failure::Stopping),
                () = self.context.ct.cancelled() => return Ok(seen_events),
                Ok(()) = changes.changed() => {
                    self.check_token()?;
                    continue;
                }
                page = timeout_at(until, reader.next()) => page,
            };
            // The time is over, or the run has ended.
            let Ok(page) = page else { return Ok(seen_events) };
            let Some(page) = page.map_err(refused::load)? else { return Ok(seen_events) };
            seen_events.add(&page, arguments);
            self.progress(seen_events.cursor).await;
            let enough = match arguments.until {
                Until::Event => !seen_events.events.is_empty(),
                Until::End => seen_events.arguments && self.has_open_approvals(run).await?,
            };
            if seen_events.full || enough {
                return Ok(seen_events);
            }
            seen_events.arguments = false;
        }
    }

    async fn has_open_approvals(&self, run: RunId) -> Result<bool, Failure> {
        let run = find::load(self.organisation.service(), run).await?;
        Ok(open(&run).next().is_some())
    }

    /// Reports progress, if the client requested it.
    async fn progress(&self, cursor: u64) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        #[expect(clippy::cast_precision_loss, reason = "ids of events are far below 2^53")]
        let progress = ProgressNotificationParam::new(token, cursor as f64);
        let progress = progress.with_message(format!("{cursor} events"));
        // A client that has disconnected does not receive the result either.
        let _ = self.context.peer.notify_progress(progress).await;
    }

    /// Refuses a token that was revoked meanwhile.
    fn check_token(&self) -> Result<(), Refused> {
        if self.caller.is_local() {
            return Ok(());
        }
        let now_ms = self.app.now_ms();
        let identities = self.organisation.identities();
        let Some((_, permissions)) = identities.standing(&self.caller.token, now_ms) else {
            return Err(Refused::new(
                UNAUTHENTICATED,
                "the token has expired or was revoked",
                "use another token",
            ));
        };
        admission::permitted(self.need, &Caller { permissions, ..self.caller.clone() })
    }
}

impl WatchedEvents {
    fn add(&mut self, page: &[Arc<Seen>], arguments: &WatchRun) {
        for seen in page {
            if let Seen::Event(event) = &**seen
                && (arguments.deltas || event.kind != DELTA)
            {
                let most = self.events.len() == usize::from(arguments.limit);
                if most || self.bytes > MCP_RESULT_BYTES_MAX / 2 {
                    self.full = true;
                    return;
                }
                self.arguments |= event.kind == APPROVAL_REQUESTED;
                // Longer events are shortened in the result anyway.
                self.bytes += event.json.len().min(MCP_EVENT_BYTES);
                self.events.push(brief(&event.json));
            }
            self.cursor = seen.id();
        }
    }
}

/// An event without the facts of a decision, which are many times as long as the decision
/// itself.
fn brief(event: &str) -> Value {
    let mut event: Value = serde_json::from_str(event).unwrap_or_default();
    if event["type"] == DECIDED
        && let Some(payload) = event["payload"].as_object_mut()
    {
        payload.remove("facts");
    }
    event
}

/// The ids of open approvals.
fn open(run: &Run) -> impl Iterator<Item = String> {
    let open = run.approvals.iter().filter(|(_, arguments)| arguments.resolution.is_none());
    open.map(|(id, _)| id.to_string())
}

fn result(run: &Run, seen_events: &WatchedEvents) -> (String, ToolData) {
    let caught_up = seen_events.cursor >= run.version;
    let ended = run.status.is_terminal() && caught_up;
    let open: Vec<String> = open(run).collect();
    let mut summary = format!("{} is {}.", run.id, run.status);
    if ended {
        summary.push_str(" It has ended, and all events were returned.");
    } else if !open.is_empty() {
        summary.push_str(" It waits for an approval.");
    }
    let data = json!({
        "run_id": run.id.to_string(),
        "status": run.status.to_string(),
        "ended": ended,
        "more": !caught_up,
        "cursor": seen_events.cursor,
        "open_approvals": open,
        "events": seen_events.events,
    });
    (summary, ToolData { data, next_cursor: None })
}
