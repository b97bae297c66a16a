//! Cases about requests: which ones a gateway accepts and which it rejects.

use super::super::{CaseResult, failed};
use super::requests::{Credentials, Workload, json};
use super::{CaseContext, QUIET, RESULT};
use crate::limits::HEALTH_MS;
use crate::protocol::dispatch::DispatchBody;
use crate::protocol::{CANCEL_PATH, CancelBody, DISPATCH_PATH, HEALTH_PATH, SYNC_PATH};
use reqwest::Method;
use serde_json::{Value, json};
use sluice_core::choice::find;
use sluice_core::port::adapter::Health;
use std::time::Duration;
use tokio::time::sleep;

pub(super) async fn health(context: &CaseContext<'_>) -> CaseResult {
    let asking = context.send(Method::GET, HEALTH_PATH, Credentials::GatewayKey, Vec::new());
    let Ok(answered) = tokio::time::timeout(Duration::from_millis(HEALTH_MS), asking).await else {
        return failed(format!("it did not answer within {HEALTH_MS} ms"));
    };
    let answered = answered?;
    if answered.status != 200 {
        return failed(format!("`{HEALTH_PATH}` got status {} instead of 200", answered.status));
    }
    match answered.body["status"].as_str().and_then(find::<Health>) {
        Some(_) => Ok(()),
        None => failed("`status` is not `healthy`, `degraded` or `offline`"),
    }
}

pub(super) async fn accepted(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch(Workload::Quick);
    let said = context.submit(&body).await?.body;
    let expected = [
        ("status", "dispatched".to_owned()),
        ("run_id", body.run_id.to_string()),
        ("step_id", body.step_id),
    ];
    for (name, value) in expected {
        if said[name] != value.as_str() {
            return failed(format!(
                "`{name}` of the response is {} instead of \"{value}\"",
                said[name]
            ));
        }
    }
    let at = said["dispatched_at"].as_str().unwrap_or_default();
    if at.parse::<jiff::Timestamp>().is_err() {
        return failed("`dispatched_at` of the response is not an RFC 3339 time");
    }
    Ok(())
}

pub(super) async fn unknown_fields(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch(Workload::Quick);
    let run = body.run_id;
    let mut body = json(&body);
    body["a_field_of_tomorrow"] = json!({"deep": [1, null, "x"]});
    context.submit_json(&body).await?;
    if context.receiver.wait(run, 1, RESULT).await.is_empty() {
        return failed("its result did not arrive");
    }
    Ok(())
}

pub(super) async fn constraint(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch(Workload::Quick);
    let mut bound = json(&body);
    bound["governance_constraints"] = json!({"a_constraint_of_tomorrow": true});
    let answered = context.post(DISPATCH_PATH, &bound).await?;
    if !(400..500).contains(&answered.status) {
        return failed(format!("the dispatch got status {} instead of 4xx", answered.status));
    }
    nothing_ran(context, &body).await
}

/// Checks that the rejected dispatch was not executed, and that it is executed when it is sent
/// properly: otherwise everything may have been rejected for another reason.
async fn nothing_ran(context: &CaseContext<'_>, body: &DispatchBody) -> CaseResult {
    sleep(QUIET).await;
    if !context.receiver.received(body.run_id).is_empty() {
        return failed("the dispatch was rejected, but executed");
    }
    context.submit(body).await?;
    if context.receiver.wait(body.run_id, 1, RESULT).await.is_empty() {
        return failed("the dispatch is not executed when it is sent properly");
    }
    Ok(())
}

pub(super) async fn without_key(context: &CaseContext<'_>) -> CaseResult {
    let body = context.dispatch(Workload::Quick);
    let cancel = CancelBody {
        run_id: body.run_id,
        step_id: body.step_id.clone(),
        dispatch_no: body.dispatch_no,
    };
    let cancel = serde_json::to_value(cancel).unwrap_or_default();
    let mut wanted = vec![(DISPATCH_PATH, json(&body)), (CANCEL_PATH, cancel)];
    if context.target.replies == super::Replies::AtOnce {
        wanted.push((SYNC_PATH, json(&body)));
    }
    for who in [Credentials::Missing, Credentials::Wrong] {
        for (path, body) in &wanted {
            let bytes = body.to_string().into_bytes();
            let status = context.send(Method::POST, path, who, bytes).await?.status;
            if status != 401 {
                let shows =
                    if who == Credentials::Missing { "without a key" } else { "with a wrong key" };
                return failed(format!("`{path}` {shows} got status {status} instead of 401"));
            }
        }
    }
    nothing_ran(context, &body).await
}

/// Malformed dispatches, each with a description.
fn bodies(good: &Value) -> Vec<(String, Vec<u8>)> {
    let raw: [(&str, &[u8]); 6] = [
        ("an empty body", b""),
        ("half an object", b"{\"run_id\": "),
        ("no UTF-8", b"{\"run_id\": \"\xff\xfe\"}"),
        ("a list", b"[]"),
        ("null", b"null"),
        ("an empty object", b"{}"),
    ];
    let mut bodies: Vec<(String, Vec<u8>)> =
        raw.iter().map(|(what, body)| ((*what).to_owned(), body.to_vec())).collect();
    bodies.push(("a deep list".to_owned(), vec![b'['; 100_000]));
    let mut changed = |what: String, change: &dyn Fn(&mut Value)| {
        let mut body = good.clone();
        change(&mut body);
        bodies.push((what, body.to_string().into_bytes()));
    };
    for name in ["run_id", "step_id", "dispatch_no", "provider", "timeout_ms"] {
        changed(format!("no `{name}`"), &|body| {
            body.as_object_mut().and_then(|body| body.remove(name));
        });
    }
    let wrong = [
        ("run_id", json!("x")),
        ("step_id", json!(7)),
        ("step_id", json!("")),
        ("dispatch_no", json!(0)),
        ("dispatch_no", json!(-1)),
        ("dispatch_no", json!("1")),
        ("timeout_ms", json!(0)),
        ("timeout_ms", json!("soon")),
        ("provider", json!("unknown-provider")),
        ("command", json!({})),
    ];
    for (name, value) in wrong {
        changed(format!("`{name}` that is {value}"), &|body| body[name] = value.clone());
    }
    bodies
}

pub(super) async fn malformed(context: &CaseContext<'_>) -> CaseResult {
    let good = json(&context.dispatch(Workload::Quick));
    for (what, body) in bodies(&good) {
        let status =
            context.send(Method::POST, DISPATCH_PATH, Credentials::GatewayKey, body).await?.status;
        if !(400..500).contains(&status) {
            return failed(format!("{what} got status {status} instead of 4xx"));
        }
    }
    let nowhere = context.post("/api/v2/no-such-place", &json!({})).await?.status;
    if !(400..500).contains(&nowhere) {
        return failed(format!("an unknown path got status {nowhere} instead of 4xx"));
    }
    let body = context.dispatch(Workload::Quick);
    context.submit(&body).await?;
    if context.receiver.wait(body.run_id, 1, RESULT).await.is_empty() {
        return failed("a dispatch after the malformed ones is not executed");
    }
    Ok(())
}
