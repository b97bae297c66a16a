//! What is set up: policies that load, gateways that answer.

use super::Check;
use sluice_core::port::store::Store;
use sluice_core::visible;
use sluice_govern::registry::{Gateway, Kind, PolicySet, Row};
use sluice_server::service::policies;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a gateway may take to take a call.
const PATIENCE_MS: u64 = 2000;
/// Most gateways that are called.
const GATEWAYS_MAX: usize = 100;

pub(super) async fn checks(store: &dyn Store) -> Vec<Check> {
    let rows = match store.registry(None).await {
        Ok(found) => found.rows,
        Err(error) => {
            return vec![Check::fail("registry", error.to_string(), "put a backup in its place")];
        }
    };
    let mut checks = vec![rules(&rows)];
    let gateways = rows.iter().filter(|row| row.kind == Kind::Gateway);
    for row in gateways.take(GATEWAYS_MAX) {
        checks.push(gateway(row).await);
    }
    checks
}

fn rules(rows: &[Row]) -> Check {
    const NAME: &str = "policies";
    let loaded = policies::active(rows).and_then(|files| {
        policies::load(&files)?;
        let shadow = policies::stored(rows, PolicySet::Shadow)?;
        if !shadow.is_empty() {
            policies::load(&shadow)?;
        }
        Ok((files.len(), shadow.len()))
    });
    match loaded {
        Ok((active, 0)) => Check::ok(NAME, format!("{active} in force")),
        Ok((active, shadow)) => Check::ok(NAME, format!("{active} in force, {shadow} in shadow")),
        Err(refused) => Check::refused(NAME, &refused),
    }
}

async fn gateway(row: &Row) -> Check {
    const NAME: &str = "gateway";
    let name = visible::brief(&row.name);
    let Ok(gateway) = serde_json::from_value::<Gateway>(row.body.clone()) else {
        return Check::fail(NAME, format!("`{name}` cannot be read"), "apply its setup again");
    };
    if gateway.paused {
        let remedy = format!("`sluice gateways resume {name}`, when it may work again");
        return Check::warn(NAME, format!("`{name}` is paused"), remedy);
    }
    let Some(url) = &gateway.url else {
        return Check::ok(NAME, format!("`{name}` is in this process"));
    };
    let remedy = "start it, or put its address right with `sluice gateways set`";
    let Some(address) = address(url) else {
        return Check::fail(NAME, format!("`{name}` has no address that can be called"), remedy);
    };
    let call = TcpStream::connect(address.as_str());
    let why = match tokio::time::timeout(Duration::from_millis(PATIENCE_MS), call).await {
        Ok(Ok(_)) => return Check::ok(NAME, format!("`{name}` takes calls")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {PATIENCE_MS} ms"),
    };
    Check::warn(NAME, format!("`{name}` cannot be reached: {why}"), remedy)
}

/// Host and port of an address.
fn address(url: &str) -> Option<String> {
    let (rest, port) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, 443),
        (_, Some(rest)) => (rest, 80),
        _ => return None,
    };
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())?;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if has_port { host.to_owned() } else { format!("{host}:{port}") })
}
