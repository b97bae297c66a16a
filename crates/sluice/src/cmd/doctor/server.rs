//! The server that commands talk to: does it answer, does it know the token.

use super::Check;
use crate::client::{Client, Problem};
use serde_json::Value;
use sluice_core::visible;
use sluice_server::refused::Refused;

pub(super) async fn checks(url: &str) -> Vec<Check> {
    const NAME: &str = "server";
    let client = match Client::new(url) {
        Ok(client) => client,
        Err(refused) => return vec![Check::refused(NAME, &refused)],
    };
    let reached = match client.ready().await {
        Ok((status, _)) if status.is_success() => {
            Check::ok(NAME, format!("{} is ready", client.address()))
        }
        Ok((status, said)) => {
            let why = visible::brief(said["why"].as_str().unwrap_or_default()).into_owned();
            let message = format!("{} is not ready: {} {why}", client.address(), status.as_u16());
            Check::warn(NAME, message.trim_end(), "look at its log, and try again")
        }
        Err(error) => return vec![failed(NAME, &error)],
    };
    let token = match client.get(&["session"], &[]).await {
        Ok(answer) => known(&answer.data),
        Err(error) => failed("token", &error),
    };
    vec![reached, token]
}

/// Whom the server takes the caller for, and what they may do.
fn known(session: &Value) -> Check {
    let word = |name: &str| session[name].as_str().unwrap_or_default();
    let may = session["permissions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let may = may.collect::<Vec<_>>().join(", ");
    let (who, of) = (word("principal"), word("organisation"));
    if may.is_empty() {
        let remedy = "ask for a token with a role: `sluice tokens create NAME --role ROLE`";
        return Check::warn("token", format!("{who} of {of} may do nothing"), remedy);
    }
    Check::ok("token", format!("{who} of {of} may: {may}"))
}

fn failed(name: &'static str, error: &anyhow::Error) -> Check {
    if let Some(problem) = error.downcast_ref::<Problem>() {
        return Check::fail(name, problem.message.clone(), problem.remedy.clone());
    }
    match error.downcast_ref::<Refused>() {
        Some(refused) => Check::refused(name, refused),
        None => Check::fail(name, format!("{error:#}"), "look at the server"),
    }
}
