//! How gateways are: as a server knows it, or, where none is asked, whether
//! something takes calls where they are.

use crate::client::Client;
use crate::desk;
use crate::kit;
use futures_util::future::join_all;
use serde_json::Value;
use sluice_bridge::model::ModelAdapter;
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::error::OutboundError;
use sluice_govern::registry::{Gateway, Health, Row};
use std::time::Duration;

/// How long a gateway may take to take a call.
pub(crate) const PATIENCE_MS: u64 = 2000;
/// Most gateways whose health is looked for.
pub(crate) const GATEWAYS_MAX: usize = 100;

/// Where a gateway is called, or its provider; `None` if it calls no server.
pub(crate) fn address(gateway: &Gateway) -> Option<&str> {
    let home = || ModelAdapter::home(&gateway.provider);
    gateway.url.as_deref().or(gateway.base_url.as_deref()).or_else(home)
}

/// Adds to rows of gateways how they are, and since when if that is known.
pub(crate) async fn note(rows: &mut [Row]) -> anyhow::Result<()> {
    let client = desk::server()?;
    let outbound = Outbound::new(kit::allowed()?);
    let known = rows.len().min(GATEWAYS_MAX);
    let looks = rows[..known].iter().map(|row| look(client.as_ref(), &outbound, row));
    let found = join_all(looks).await;
    for (row, (health, since)) in rows.iter_mut().zip(found) {
        let Value::Object(body) = &mut row.body else { continue };
        body.insert("health".to_owned(), health);
        if !since.is_null() {
            body.insert("health_since".to_owned(), since);
        }
    }
    Ok(())
}

async fn look(client: Option<&Client>, outbound: &Outbound, row: &Row) -> (Value, Value) {
    let Some(client) = client else { return (reached(outbound, row).await, Value::Null) };
    // Who may list gateways may not always see how they are.
    let Ok(answer) = client.get(&["gateways", &row.name, "health"], &[]).await else {
        return (Value::Null, Value::Null);
    };
    let last = answer.data["history"].as_array().and_then(|all| all.last());
    let since = last.map_or(Value::Null, |one| one["at"].clone());
    (answer.data["health"].clone(), since)
}

async fn reached(outbound: &Outbound, row: &Row) -> Value {
    let Ok(gateway) = serde_json::from_value::<Gateway>(row.body.clone()) else {
        return Value::Null;
    };
    let health = match address(&gateway) {
        None => Health::Healthy,
        Some(url) => match outbound.reach(url, Duration::from_millis(PATIENCE_MS)).await {
            Ok(()) => Health::Healthy,
            // As a server finds it: work that is sent there says how to open it.
            Err(OutboundError::Refused(_)) => Health::Degraded,
            Err(_) => Health::Offline,
        },
    };
    health.as_str().into()
}
