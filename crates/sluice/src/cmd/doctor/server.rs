//! Checks the configured server: whether it answers and accepts the token.

use super::DoctorCheck;
use crate::client::{ApiProblem, Client, HttpClient};
use serde_json::Value;
use sluice_core::visible;
use sluice_server::refused::Refused;

pub(super) async fn checks(url: &str) -> Vec<DoctorCheck> {
    const NAME: &str = "server";
    let server = match HttpClient::new(url) {
        Ok(server) => server,
        Err(refused) => return vec![DoctorCheck::refused(NAME, &refused)],
    };
    let reached = match server.ready().await {
        Ok((status, _)) if status.is_success() => {
            DoctorCheck::ok(NAME, format!("{} is ready", server.address()))
        }
        Ok((status, said)) => {
            let why = visible::brief(said["why"].as_str().unwrap_or_default()).into_owned();
            let message = format!("{} is not ready: {} {why}", server.address(), status.as_u16());
            DoctorCheck::warn(NAME, message.trim_end(), "look at its log, and try again")
        }
        Err(error) => return vec![failed(NAME, &error)],
    };
    let token = match Client::Http(server).get(&["session"], &[]).await {
        Ok(answer) => describe(&answer.data),
        Err(error) => failed("token", &error),
    };
    vec![reached, token]
}

/// The principal and the permissions of the token.
fn describe(session: &Value) -> DoctorCheck {
    let word = |name: &str| session[name].as_str().unwrap_or_default();
    let may = session["permissions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let may = may.collect::<Vec<_>>().join(", ");
    let (who, of) = (word("principal"), word("organisation"));
    if may.is_empty() {
        let remedy = "ask for a token with a role: `sluice tokens create NAME --role ROLE`";
        return DoctorCheck::warn("token", format!("{who} of {of} may do nothing"), remedy);
    }
    DoctorCheck::ok("token", format!("{who} of {of} may: {may}"))
}

fn failed(name: &'static str, error: &anyhow::Error) -> DoctorCheck {
    if let Some(problem) = error.downcast_ref::<ApiProblem>() {
        return DoctorCheck::fail(name, problem.message.clone(), problem.remedy.clone());
    }
    match error.downcast_ref::<Refused>() {
        Some(refused) => DoctorCheck::refused(name, refused),
        None => DoctorCheck::fail(name, format!("{error:#}"), "look at the server"),
    }
}
