//! Warnings about rows that are valid but probably a mistake.

use super::fault::{ALWAYS_THERE, read};
use crate::code::Code;
use crate::doc::setup::RowFault;
use sluice_govern::registry::{
    ANYTHING, Agent, AgentStatus, Gateway, Kind, PROVIDERS, Row, SessionMode,
};
use sluice_govern::route::is_out_of_reach;
use std::collections::BTreeMap;

/// The maximum number of gateways in one message.
const NAMED_MAX: usize = 3;

/// Warns about agents for which no gateway fits, and about sessions that cannot be continued.
/// The first gate would stop every step of an agent without a gateway, so the operator should
/// know before a run starts.
pub fn cautions(rows: &[Row]) -> Vec<RowFault> {
    let gateways: BTreeMap<&str, Gateway> = rows
        .iter()
        .filter(|row| row.kind == Kind::Gateway)
        .filter_map(|row| Some((row.name.as_str(), read(row)?)))
        .collect();
    let agents = rows.iter().filter(|row| row.kind == Kind::Agent);
    let faults =
        agents.flat_map(|row| [without_gateway(row, &gateways), without_session(row, &gateways)]);
    faults.flatten().collect()
}

/// A warning if an agent continues sessions and a gateway that may do its work keeps none.
fn without_session(row: &Row, gateways: &BTreeMap<&str, Gateway>) -> Option<RowFault> {
    let agent: Agent = read(row)?;
    if agent.session != SessionMode::Continue || is_gone(&agent) {
        return None;
    }
    let pinned = agent.gateway.as_deref();
    let forgetful: Vec<String> = gateways
        .iter()
        .filter(|(name, _)| pinned.is_none_or(|pin| pin == **name))
        .filter(|(_, gateway)| why_not(&row.name, &agent, gateway).is_none())
        .filter(|(_, gateway)| !keeps_sessions(gateway))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if forgetful.is_empty() {
        return None;
    }
    let more = forgetful.len().saturating_sub(NAMED_MAX);
    let mut named = forgetful[..forgetful.len().min(NAMED_MAX)].join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    Some(RowFault {
        kind: Kind::Agent,
        name: row.name.clone(),
        path: vec!["session".to_owned()],
        code: Code::SessionNotKept,
        message: format!(
            "agent `{}` continues sessions, but its work may go to a gateway that keeps none: \
             {named}",
            row.name
        ),
        hint: Some(
            "remove `session: continue`, or set `gateway` of the agent to a bridge or to a \
             gateway with the provider `http`"
                .to_owned(),
        ),
    })
}

/// Whether a gateway may return a `session_id` and continue it. A bridge decides for itself;
/// of the adapters in the process, those for models, tools and commands do not.
fn keeps_sessions(gateway: &Gateway) -> bool {
    gateway.url.is_some() || matches!(gateway.provider.as_str(), "http" | "mock")
}

fn is_gone(agent: &Agent) -> bool {
    matches!(agent.status, AgentStatus::Terminated | AgentStatus::Deprecated)
}

/// A warning if no gateway fits an agent.
fn without_gateway(row: &Row, gateways: &BTreeMap<&str, Gateway>) -> Option<RowFault> {
    let agent: Agent = read(row)?;
    if is_gone(&agent) || ALWAYS_THERE.contains(&row.name.as_str()) {
        return None;
    }
    let pinned = agent.gateway.as_deref();
    let looked_at = gateways.iter().filter(|(name, _)| pinned.is_none_or(|pin| pin == **name));
    let mut reasons = Vec::new();
    for (name, gateway) in looked_at {
        reasons.push(format!("`{name}` {}", why_not(&row.name, &agent, gateway)?));
    }
    let more = reasons.len().saturating_sub(NAMED_MAX);
    let mut reason =
        reasons.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    if reasons.is_empty() {
        reason = match pinned {
            Some(pin) => {
                format!("`{pin}` has no row, and only `http`, `mock` and `shell` work without one")
            }
            None => "no gateway is registered".to_owned(),
        };
    } else if more > 0 {
        reason.push_str(&format!("; and {more} more"));
    }
    Some(RowFault {
        kind: Kind::Agent,
        name: row.name.clone(),
        path: pinned.map(|_| "gateway".to_owned()).into_iter().collect(),
        code: Code::AgentWithoutGateway,
        message: format!("no gateway fits agent `{}`: {reason}", row.name),
        hint: Some(
            "register a gateway with a `provider`, such as `anthropic`, or with the `url` of a \
             bridge; `provider: mock` answers from the script of `--mock`"
                .to_owned(),
        ),
    })
}

/// Why a gateway never fits an agent; `None` if it can.
fn why_not(name: &str, agent: &Agent, gateway: &Gateway) -> Option<String> {
    let offered =
        |one: &&String| gateway.capabilities.iter().any(|has| has == *one || has == ANYTHING);
    if let Some(missing) = agent.capabilities.iter().find(|one| !offered(one)) {
        return Some(format!("does not offer `{missing}`"));
    }
    if is_out_of_reach(agent, gateway) {
        return Some("has a URL, and the agent is native".to_owned());
    }
    if !gateway.agents.is_empty() && !gateway.agents.iter().any(|one| one == name) {
        return Some("does not name it in `agents`".to_owned());
    }
    match (gateway.provider.as_str(), &gateway.url, &gateway.base_url) {
        (_, Some(_), _) => None,
        ("", None, _) => Some("has neither `provider` nor `url`".to_owned()),
        ("http", None, None) => Some("has the provider `http` and no `base_url`".to_owned()),
        (known, None, _) if PROVIDERS.contains(&known) => None,
        (unknown, None, _) => Some(format!("has the unknown provider `{unknown}`")),
    }
}
