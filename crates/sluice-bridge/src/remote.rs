//! The engine's adapter for a gateway behind a bridge: dispatches go to the bridge; results
//! come back by callback, or as the response if the bridge answers synchronously.
//!
//! A dispatch that may not have arrived is sent again: a bridge executes the same dispatch
//! once. While the engine waits for a synchronous result, it follows the bridge's event stream.

pub(crate) mod exchange;
mod follow;
#[cfg(test)]
mod tests;

use crate::directory::Callbacks;
use crate::limits::{
    CALLBACK_BYTES_MAX, DISPATCH_TRY_MS, FOLLOW_DRAIN_MS, FOLLOW_OPEN_MS, HEALTH_ANSWER_BYTES_MAX,
    HEALTH_TRY_MS, RECALL_TRIES, REMOTE_GRACE_MS, REMOTE_PAUSES_MS, SYNC_MARGIN_MS,
    SYNC_TIMEOUT_MS_MAX,
};
use crate::outbound::error::OutboundError;
use crate::protocol::callback::{CallbackBody, ExecutedDispatch};
use crate::protocol::dispatch::{DispatchBody, ReturnAddress};
use crate::protocol::{CANCEL_PATH, CancelBody, DISPATCH_PATH, HEALTH_PATH, SYNC_PATH};
use crate::secret::keyring::{Keyring, NamedSecret};
use crate::secret::{NoSecret, Secret};
use crate::token::Dispatched;
use crate::wire::{RequestIndex, Wire};
use exchange::{ExchangeOutcome, RemoteExchange, WorkStarted};
use follow::{EventFollower, FollowedDispatch};
use sluice_core::choice::find;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Execution, Health, Recall, Request, Usage,
};
use sluice_govern::registry::{ANYTHING, Gateway};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Capability of a gateway with a bridge that returns results synchronously.
pub const SYNC: &str = "sync";

/// Retry and cancellation times of a remote adapter.
#[derive(Debug, Clone)]
pub struct RemoteTiming {
    /// Pauses before a dispatch is sent again.
    pub pauses: Vec<Duration>,
    /// Time that a bridge has to stop a cancelled dispatch.
    pub grace: Duration,
}

impl Default for RemoteTiming {
    fn default() -> RemoteTiming {
        RemoteTiming {
            pauses: REMOTE_PAUSES_MS.map(Duration::from_millis).to_vec(),
            grace: Duration::from_millis(REMOTE_GRACE_MS),
        }
    }
}

/// Sends dispatches to the bridge of a gateway.
#[derive(Debug)]
pub struct RemoteAdapter {
    gateway: String,
    url: String,
    provider: String,
    key: Option<NamedSecret>,
    /// Whether the bridge returns results synchronously.
    sync: bool,
    callbacks: Option<Callbacks>,
    wire: Arc<dyn Wire>,
    patience: RemoteTiming,
}

/// Request numbers within a dispatch are fixed, so that a replay finds each request; those of
/// dispatching start at 1.
const CANCELLING: u32 = 11;
const FOLLOWING: u32 = 21;

impl RemoteAdapter {
    /// Adapter for the row of a gateway; `None` if the row has no `url`.
    pub fn new(
        name: &str,
        row: &Gateway,
        secrets: &Keyring,
        callbacks: Option<Callbacks>,
        wire: Arc<dyn Wire>,
    ) -> Option<RemoteAdapter> {
        let url = row.url.as_ref()?.trim_end_matches('/').to_owned();
        let can = |capability: &String| capability == SYNC || capability == ANYTHING;
        // A replay sends no key and may run where none is configured.
        let reference = row.key.as_ref().filter(|_| wire.is_live());
        Some(RemoteAdapter {
            gateway: name.to_owned(),
            url,
            provider: row.provider.clone(),
            key: reference.map(|reference| secrets.of_row(reference, row.operator_secret)),
            sync: row.capabilities.iter().any(can),
            callbacks,
            wire,
            patience: RemoteTiming::default(),
        })
    }

    #[cfg(test)]
    #[must_use]
    pub(crate) fn with_timing(self, patience: RemoteTiming) -> RemoteAdapter {
        RemoteAdapter { patience, ..self }
    }

    fn key(&self) -> Result<Option<Secret>, NoSecret> {
        self.key.as_ref().map(|key| key.read_for(&self.url)).transpose()
    }

    fn body(&self, request: &Request, path: &str) -> Vec<u8> {
        // If the gateway's row names no provider, the agent's name selects the bridge's
        // adapter.
        let named = Some(&self.provider).filter(|provider| !provider.is_empty());
        let provider = named.unwrap_or(&request.agent);
        let mut return_to = return_address(self.callbacks.as_ref(), request, &self.gateway);
        if path == SYNC_PATH {
            // The event stream has the parts while the engine waits for the result.
            return_to.parts_url = None;
        }
        let body = DispatchBody::new(request, provider, return_to);
        serde_json::to_vec(&body).expect("a dispatch is plain JSON")
    }

    async fn dispatch(&self, request: &Request, call: &dyn Call) -> Execution {
        let key = match self.key() {
            Ok(key) => key,
            Err(why) => {
                return failed(CallErrorCode::Auth, &format!("the key of the gateway: {why}"));
            }
        };
        let sync = self.sync && request.timeout_ms <= SYNC_TIMEOUT_MS_MAX;
        if !sync && self.callbacks.is_none() {
            let message = "the gateway has no capability `sync` and this process has no callback address for its results";
            return failed(CallErrorCode::InvalidRequest, message);
        }
        let exchange = RemoteExchange { wire: &*self.wire, key: key.as_ref(), peer: "the bridge" };
        if sync {
            self.dispatch_sync(&exchange, request, call).await
        } else {
            self.dispatch_async(&exchange, request, call).await
        }
    }

    /// Hands the dispatch to the bridge; its result comes by callback.
    async fn dispatch_async(
        &self,
        exchange: &RemoteExchange<'_>,
        request: &Request,
        call: &dyn Call,
    ) -> Execution {
        let patience = Duration::from_millis(DISPATCH_TRY_MS);
        tokio::select! {
            biased;
            () = call.cancelled() => {
                self.cancel(exchange, &recall(request)).await;
                cancelled()
            }
            sent = self.send(exchange, request, DISPATCH_PATH, patience) => match sent {
                Ok(_) => Execution::Accepted,
                Err(answer) => Execution::Done(answer),
            },
        }
    }

    /// Waits for the result, and passes on the bridge's events meanwhile.
    async fn dispatch_sync(
        &self,
        exchange: &RemoteExchange<'_>,
        request: &Request,
        call: &dyn Call,
    ) -> Execution {
        let whole = Duration::from_millis(request.timeout_ms.saturating_add(SYNC_MARGIN_MS));
        let of = FollowedDispatch { run: request.run, index: index(request, FOLLOWING) };
        let opening = EventFollower::open(exchange, &self.url, of, whole);
        let opening = timeout(Duration::from_millis(FOLLOW_OPEN_MS), opening).await;
        let mut following = pin!(async {
            if let Ok(Some(follow)) = opening {
                follow.forward(call).await;
            }
        });
        let mut sending = pin!(self.send(exchange, request, SYNC_PATH, whole));
        let of = recall(request);
        let mut calling_off = pin!(self.cancel(exchange, &of));
        let (mut followed, mut cancelled_remotely, mut until) = (false, false, None);
        let sent = loop {
            tokio::select! {
                biased;
                sent = &mut sending => break sent,
                () = &mut following, if !followed => followed = true,
                () = call.cancelled(), if until.is_none() => {
                    until = Some(Instant::now() + self.patience.grace);
                }
                () = &mut calling_off, if until.is_some() && !cancelled_remotely => cancelled_remotely = true,
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    return cancelled();
                }
            }
        };
        if !followed {
            // The result may overtake events that precede it.
            let _ = timeout(Duration::from_millis(FOLLOW_DRAIN_MS), following).await;
        }
        match sent {
            Ok(None) => Execution::Accepted,
            Ok(Some(bytes)) => Execution::Done(Box::new(parse_result(&bytes, request))),
            Err(answer) => Execution::Done(answer),
        }
    }

    /// Sends a dispatch, repeatedly if it may not have arrived. Returns the result, or
    /// `None` if it comes by callback.
    async fn send(
        &self,
        exchange: &RemoteExchange<'_>,
        request: &Request,
        path: &str,
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, Box<Answer>> {
        let (url, body) = (format!("{}{path}", self.url), self.body(request, path));
        let mut arrived = WorkStarted::No;
        let mut pauses = self.patience.pauses.iter();
        for number in 1.. {
            let sent = exchange.post(index(request, number), &url, body.clone(), patience).await;
            let (answer, reached) = match sent {
                ExchangeOutcome::Result(bytes) if path == SYNC_PATH => return Ok(Some(bytes)),
                ExchangeOutcome::Result(_) | ExchangeOutcome::Accepted => return Ok(None),
                ExchangeOutcome::Failed(answer) => return Err(answer),
                ExchangeOutcome::Retryable(answer, reached) => (answer, reached),
            };
            arrived = arrived.max(reached);
            let Some(pause) = pauses.next() else {
                return Err(Box::new(arrived.with_known_cost(*answer)));
            };
            sleep(*pause).await;
        }
        unreachable!("there are only so many pauses")
    }

    /// Asks the bridge to cancel a dispatch.
    async fn cancel(&self, exchange: &RemoteExchange<'_>, dispatch: &Recall) {
        let url = format!("{}{CANCEL_PATH}", self.url);
        let body = serde_json::to_vec(&CancelBody::from(dispatch)).expect("it is plain JSON");
        let patience = Duration::from_millis(DISPATCH_TRY_MS);
        for (tried, number) in (CANCELLING..CANCELLING + RECALL_TRIES).enumerate() {
            let index =
                RequestIndex { step: &dispatch.step, dispatch_no: dispatch.dispatch_no, number };
            match exchange.post(index, &url, body.clone(), patience).await {
                ExchangeOutcome::Retryable(..) => {
                    sleep(self.patience.pauses.get(tried).copied().unwrap_or_default()).await;
                }
                _ => return,
            }
        }
        tracing::warn!(gateway = self.gateway, "could not send a cancellation to the bridge");
    }

    async fn request_health(&self) -> Option<Health> {
        let key = self.key().ok()?;
        let exchange = RemoteExchange { wire: &*self.wire, key: key.as_ref(), peer: "the bridge" };
        let url = format!("{}{HEALTH_PATH}", self.url);
        let patience = Duration::from_millis(HEALTH_TRY_MS);
        let index = RequestIndex { step: "", dispatch_no: 0, number: 1 };
        let body = exchange.get(index, &url, patience, HEALTH_ANSWER_BYTES_MAX).await?;
        let health: serde_json::Value = serde_json::from_slice(&body).ok()?;
        find(health["status"].as_str()?)
    }
}

/// Where and with which token the result of a request comes back.
pub(crate) fn return_address(
    callbacks: Option<&Callbacks>,
    request: &Request,
    gateway: &str,
) -> ReturnAddress {
    let Some(callbacks) = callbacks else { return ReturnAddress::default() };
    let token = callbacks.key.token(Dispatched {
        gateway,
        run: request.run,
        step: &request.step,
        dispatch_no: request.dispatch_no,
    });
    ReturnAddress {
        callback_url: Some(callbacks.url.clone()),
        dispatch_token: Some(token),
        tool_url: callbacks.tool_url.clone(),
        parts_url: callbacks.parts_url.clone(),
    }
}

/// Parses a result that came as the response.
pub(crate) fn parse_result(bytes: &[u8], request: &Request) -> Answer {
    let (run, step, dispatch_no) = (request.run, request.step.as_str(), request.dispatch_no);
    let worked = ExecutedDispatch { run, step, dispatch_no, from_ms: 0, to_ms: 0 };
    debug_assert!(bytes.len() <= CALLBACK_BYTES_MAX);
    match CallbackBody::read_reply(bytes, worked) {
        Ok(body) => body.answer(),
        Err(bad) => {
            let message = format!("the response is not a valid result: {bad}");
            let answer = Answer::failed(CallErrorCode::ProviderError, message);
            let text = String::from_utf8_lossy(bytes).into_owned();
            let text = Some(text).filter(|text| !text.is_empty());
            Answer { text, usage: Usage::unknown(), ..answer }
        }
    }
}

fn index(request: &Request, number: u32) -> RequestIndex<'_> {
    RequestIndex { step: &request.step, dispatch_no: request.dispatch_no, number }
}

fn recall(request: &Request) -> Recall {
    let (run, step) = (request.run, request.step.clone());
    Recall { run, step, dispatch_no: request.dispatch_no }
}

pub(crate) fn failed(code: CallErrorCode, message: &str) -> Execution {
    Execution::Done(Box::new(Answer::failed(code, message)))
}

/// Answer of a cancelled dispatch without a cost reported by the bridge.
fn cancelled() -> Execution {
    let answer = Answer::failed(CallErrorCode::Cancelled, "cancelled");
    Execution::Done(Box::new(Answer { usage: Usage::unknown(), ..answer }))
}

impl Adapter for RemoteAdapter {
    fn provider(&self) -> &'static str {
        "bridge"
    }

    fn capabilities(&self) -> Capabilities {
        let streaming = self.sync
            || self.callbacks.as_ref().is_some_and(|callbacks| callbacks.parts_url.is_some());
        Capabilities { streaming, tools: true, structured_output: true, cancel: true }
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(async move {
            if let Some(health) = self.request_health().await {
                return health;
            }
            // A destination that the outbound guard refuses is a configuration
            // error; the error of a dispatch says how to allow it.
            match self.wire.reach(&self.url, Duration::from_millis(HEALTH_TRY_MS)).await {
                Err(OutboundError::Refused(_)) => Health::Degraded,
                _ => Health::Offline,
            }
        })
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(self.dispatch(request, call))
    }

    fn recall<'a>(&'a self, dispatch: &'a Recall) -> Later<'a, ()> {
        Box::pin(async move {
            let Ok(key) = self.key() else { return };
            let exchange =
                RemoteExchange { wire: &*self.wire, key: key.as_ref(), peer: "the bridge" };
            self.cancel(&exchange, dispatch).await;
        })
    }
}
