//! Results, output parts and tool calls that gateways send back.
//!
//! The sender has authenticated with the token of a gateway. The token of the dispatch
//! proves that this gateway received this dispatch.
//!
//! INVARIANT: a result is in the mailbox of its run before the sender gets a success
//! response, and is there exactly once.

use crate::organisation::Organisation;
use crate::refused::{self, Failure, RUN_UNKNOWN, Refused, ServiceResult};
use sluice_bridge::protocol::callback::CallbackBody;
use sluice_bridge::protocol::parts::PartsBody;
use sluice_bridge::redacting_adapter::{scrub_answer, scrub_parts, scrub_tool_use};
use sluice_bridge::secret::known;
use sluice_bridge::token::Dispatched;
use sluice_core::id::RunId;
use sluice_core::journal::event::Ruling;
use sluice_core::port::adapter::ToolUse;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::Posted;
use sluice_govern::registry::Gateway;

/// The dispatch was sent to a different gateway.
pub(crate) const CALLBACK_REFUSED: &str = "callback_refused";

/// The gateway that sends a callback.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// Name of the gateway.
    pub name: &'a str,
    /// Registry row of the gateway.
    pub row: &'a Gateway,
    /// Token of the dispatch, if the request has one.
    pub token: Option<&'a str>,
}

/// Whether a callback arrived for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// First time.
    New,
    /// A duplicate, which changes nothing.
    Again,
}

/// Accepts the result of a dispatch.
pub async fn complete(
    organisation: &Organisation,
    sender: Sender<'_>,
    body: CallbackBody,
) -> ServiceResult<Received> {
    let (run, step) = (body.run_id, body.step_id.clone());
    let dispatch_no = match (sender.token, body.dispatch_no) {
        (Some(token), Some(dispatch_no)) => {
            check_dispatch_token(organisation, sender, token, run, &step, dispatch_no).await?;
            dispatch_no
        }
        (None, sent) if sender.row.legacy_callback => {
            let current = in_flight(organisation, sender, run, &step).await?;
            match sent {
                Some(sent) if sent != current => {
                    return Err(refuse(organisation, sender, run, &step).await);
                }
                _ => current,
            }
        }
        _ => return Err(refuse(organisation, sender, run, &step).await),
    };
    // The gateway received its key, and may repeat it in the answer.
    let mut answer = body.answer();
    scrub_answer(&known::process().scrub(), &mut answer);
    let posted = organisation.service().engine.callback(run, &step, dispatch_no, &answer).await?;
    match posted {
        Posted::Done => Ok(Received::New),
        Posted::Duplicate => Ok(Received::Again),
        Posted::NoRun => Err(unknown(run).into()),
    }
}

/// Accepts parts of an answer. The run drops those that arrive after the result.
pub async fn parts(
    organisation: &Organisation,
    sender: Sender<'_>,
    body: PartsBody,
) -> ServiceResult<Received> {
    let (run, step, dispatch_no) = (body.run_id, body.step_id.clone(), body.dispatch_no);
    let Some(token) = sender.token else {
        return Err(refuse(organisation, sender, run, &step).await);
    };
    check_dispatch_token(organisation, sender, token, run, &step, dispatch_no).await?;
    let (first, parts) = (body.first, scrub_parts(&known::process().scrub(), body.emissions()));
    match organisation.service().engine.parts(run, &step, dispatch_no, first, &parts).await? {
        Posted::Done => Ok(Received::New),
        Posted::Duplicate => Ok(Received::Again),
        Posted::NoRun => Err(unknown(run).into()),
    }
}

/// The decision about a tool call; `None` if it is not known yet.
pub async fn use_tool(
    organisation: &Organisation,
    sender: Sender<'_>,
    (run, step, dispatch_no): (RunId, &str, u32),
    mut wanted: ToolUse,
) -> ServiceResult<Option<Ruling>> {
    let Some(token) = sender.token else {
        return Err(refuse(organisation, sender, run, step).await);
    };
    check_dispatch_token(organisation, sender, token, run, step, dispatch_no).await?;
    scrub_tool_use(&known::process().scrub(), &mut wanted);
    let ruling = organisation.service().engine.use_tool(run, step, dispatch_no, wanted).await;
    ruling.map_err(|error| refused::command(run, error))
}

/// Refuses a gateway that did not receive this dispatch.
async fn check_dispatch_token(
    organisation: &Organisation,
    sender: Sender<'_>,
    token: &str,
    run: RunId,
    step: &str,
    dispatch_no: u32,
) -> ServiceResult<()> {
    let of = Dispatched { gateway: sender.name, run, step, dispatch_no };
    if organisation.dispatch_key().is_some_and(|key| key.knows(token, of)) {
        return Ok(());
    }
    Err(refuse(organisation, sender, run, step).await)
}

/// The dispatch of a step that this gateway has in flight, according to the run.
async fn in_flight(
    organisation: &Organisation,
    sender: Sender<'_>,
    run: RunId,
    step: &str,
) -> ServiceResult<u32> {
    let folded = organisation.service().engine.load(run).await.map_err(refused::load)?;
    let found = folded.find(step).map(|at| folded.state(at));
    let its = found.filter(|state| state.gateway() == Some(sender.name));
    let Some(state) = its else { return Err(refuse(organisation, sender, run, step).await) };
    let detail = serde_json::json!({"step": step, "dispatch_no": state.dispatch_no});
    let entry = entry(organisation, sender, run, ("legacy_callback", "execution"), detail);
    let service = organisation.service();
    service.store.record(service.engine.node(), vec![entry]).await?;
    Ok(state.dispatch_no)
}

fn unknown(run: RunId) -> Refused {
    Refused::new(RUN_UNKNOWN, format!("there is no run {run}"), "check the run id")
}

/// Refuses a callback and audits it.
async fn refuse(
    organisation: &Organisation,
    sender: Sender<'_>,
    run: RunId,
    step: &str,
) -> Failure {
    let detail = serde_json::json!({"step": step});
    let entry = entry(organisation, sender, run, (CALLBACK_REFUSED, "security"), detail);
    if let Err(error) = organisation.record_refusal(sender.name, entry).await {
        return error.into();
    }
    let message = "the dispatch does not belong to this gateway";
    let remedy = "send the token of the dispatch as `X-Dispatch-Token`, and its `dispatch_no`";
    Refused::new(CALLBACK_REFUSED, message, remedy).into()
}

/// An audit entry about a callback.
fn entry(
    organisation: &Organisation,
    sender: Sender<'_>,
    run: RunId,
    (what, category): (&str, &'static str),
    detail: serde_json::Value,
) -> Entry {
    Entry {
        at_ms: organisation.service().engine.now_ms(),
        category,
        what: what.to_owned(),
        actor: format!("gateway:{}", sender.name),
        resource_type: "run".to_owned(),
        resource_id: run.to_string(),
        event: None,
        detail,
    }
}
