//! Results that come from elsewhere, and tools that are asked for from there.
//!
//! Whoever sends one has shown the token of a gateway. What is believed here is
//! that this gateway was given this dispatch: its token says so.
//!
//! INVARIANT: a result is in its run's inbox before its sender is told that it was
//! received, and is there once.

use crate::house::House;
use crate::refused::{self, Done, Failure, RUN_UNKNOWN, Refused};
use sluice_bridge::protocol::callback::CallbackBody;
use sluice_bridge::protocol::parts::PartsBody;
use sluice_bridge::scrubbed::{scrub_answer, scrub_parts, scrub_tool_use};
use sluice_bridge::secret::known;
use sluice_bridge::token::Dispatched;
use sluice_core::journal::event::Ruling;
use sluice_core::port::adapter::ToolUse;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::Posted;
use sluice_core::run::id::RunId;
use sluice_govern::registry::Gateway;

/// It was another gateway that was given this.
pub const CALLBACK_REFUSED: &str = "callback_refused";

/// The gateway that sends something.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its row.
    pub row: &'a Gateway,
    /// The token of the dispatch, if it shows one.
    pub token: Option<&'a str>,
}

/// Whether something came for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It did.
    New,
    /// It came before, and changes nothing.
    Again,
}

/// Takes a result.
pub async fn complete(house: &House, sender: Sender<'_>, body: CallbackBody) -> Done<Received> {
    let (run, step) = (body.run_id, body.step_id.clone());
    let dispatch_no = match (sender.token, body.dispatch_no) {
        (Some(token), Some(dispatch_no)) => {
            entrusted(house, sender, token, run, &step, dispatch_no).await?;
            dispatch_no
        }
        (None, said) if sender.row.legacy_callback => {
            let meant = in_flight(house, sender, run, &step).await?;
            match said {
                Some(said) if said != meant => return Err(refuse(house, sender, run, &step).await),
                _ => meant,
            }
        }
        _ => return Err(refuse(house, sender, run, &step).await),
    };
    // A gateway was shown its key, and may repeat it.
    let mut answer = body.answer();
    scrub_answer(&known::process().scrub(), &mut answer);
    let posted = house.service().engine.callback(run, &step, dispatch_no, &answer).await?;
    match posted {
        Posted::Done => Ok(Received::New),
        Posted::Duplicate => Ok(Received::Again),
        Posted::NoRun => Err(unknown(run).into()),
    }
}

/// Takes parts of an answer. The run drops those that come after the result.
pub async fn parts(house: &House, sender: Sender<'_>, body: PartsBody) -> Done<Received> {
    let (run, step, dispatch_no) = (body.run_id, body.step_id.clone(), body.dispatch_no);
    let Some(token) = sender.token else { return Err(refuse(house, sender, run, &step).await) };
    entrusted(house, sender, token, run, &step, dispatch_no).await?;
    let (first, parts) = (body.first, scrub_parts(&known::process().scrub(), body.emissions()));
    match house.service().engine.parts(run, &step, dispatch_no, first, &parts).await? {
        Posted::Done => Ok(Received::New),
        Posted::Duplicate => Ok(Received::Again),
        Posted::NoRun => Err(unknown(run).into()),
    }
}

/// What was decided about a tool; none if that is not known yet.
pub async fn use_tool(
    house: &House,
    sender: Sender<'_>,
    (run, step, dispatch_no): (RunId, &str, u32),
    mut wanted: ToolUse,
) -> Done<Option<Ruling>> {
    let Some(token) = sender.token else { return Err(refuse(house, sender, run, step).await) };
    entrusted(house, sender, token, run, step, dispatch_no).await?;
    scrub_tool_use(&known::process().scrub(), &mut wanted);
    let asked = house.service().engine.use_tool(run, step, dispatch_no, wanted).await;
    asked.map_err(|error| refused::command(run, error))
}

/// Refuses who was not given this dispatch.
async fn entrusted(
    house: &House,
    sender: Sender<'_>,
    token: &str,
    run: RunId,
    step: &str,
    dispatch_no: u32,
) -> Done<()> {
    let of = Dispatched { gateway: sender.name, run, step, dispatch_no };
    if house.dispatch_key().is_some_and(|key| key.knows(token, of)) {
        return Ok(());
    }
    Err(refuse(house, sender, run, step).await)
}

/// The dispatch of a step that this gateway has in flight, as the run itself says.
async fn in_flight(house: &House, sender: Sender<'_>, run: RunId, step: &str) -> Done<u32> {
    let folded = house.service().engine.load(run).await.map_err(refused::load)?;
    let found = folded.find(step).map(|at| folded.state(at));
    let its = found.filter(|state| state.gateway.as_deref() == Some(sender.name));
    let Some(state) = its else { return Err(refuse(house, sender, run, step).await) };
    let detail = serde_json::json!({"step": step, "dispatch_no": state.dispatch_no});
    let entry = entry(house, sender, run, ("legacy_callback", "execution"), detail);
    let service = house.service();
    service.store.record(service.engine.node(), vec![entry]).await?;
    Ok(state.dispatch_no)
}

fn unknown(run: RunId) -> Refused {
    Refused::new(RUN_UNKNOWN, format!("there is no run {run}"), "check the id")
}

/// Says no, and writes down who tried.
async fn refuse(house: &House, sender: Sender<'_>, run: RunId, step: &str) -> Failure {
    let detail = serde_json::json!({"step": step});
    let entry = entry(house, sender, run, (CALLBACK_REFUSED, "security"), detail);
    if let Err(error) = house.refused(sender.name, entry).await {
        return error.into();
    }
    let message = "this gateway was not given this dispatch";
    let remedy = "send the dispatch's own token as `X-Dispatch-Token`, and its `dispatch_no`";
    Refused::new(CALLBACK_REFUSED, message, remedy).into()
}

/// A line of the audit about what a gateway sent.
fn entry(
    house: &House,
    sender: Sender<'_>,
    run: RunId,
    (what, category): (&str, &'static str),
    detail: serde_json::Value,
) -> Entry {
    Entry {
        at_ms: house.service().engine.now_ms(),
        category,
        what: what.to_owned(),
        actor: format!("gateway:{}", sender.name),
        resource_type: "run".to_owned(),
        resource_id: run.to_string(),
        event: None,
        detail,
    }
}
