//! The health of gateways: as a server reports it, or by a connection attempt from this
//! process.

use crate::backend;
use crate::client::Client;
use crate::providers;
use futures_util::future::join_all;
use serde_json::Value;
use sluice_bridge::model::ModelAdapter;
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::error::OutboundError;
use sluice_govern::registry::{Gateway, Health, Row};
use std::time::Duration;

/// How long a connection attempt may take.
pub(crate) const PATIENCE_MS: u64 = 2000;
/// Most gateways that are checked.
pub(crate) const GATEWAYS_MAX: usize = 100;

/// The URL of a gateway or its provider; none if it calls no server.
pub(crate) fn address(gateway: &Gateway) -> Option<&str> {
    let home = || ModelAdapter::home(&gateway.provider);
    gateway.url.as_deref().or(gateway.base_url.as_deref()).or_else(home)
}

/// Adds the health to rows of gateways, and since when, if that is known.
pub(crate) async fn add_health(rows: &mut [Row]) -> anyhow::Result<()> {
    let client = backend::server()?;
    let outbound = Outbound::new(providers::allowed()?);
    let known = rows.len().min(GATEWAYS_MAX);
    let looks = rows[..known].iter().map(|row| health(client.as_ref(), &outbound, row));
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

async fn health(client: Option<&Client>, outbound: &Outbound, row: &Row) -> (Value, Value) {
    let Some(client) = client else { return (probe(outbound, row).await, Value::Null) };
    // A token that may list gateways may lack the permission to see their health.
    let Ok(answer) = client.get(&["gateways", &row.name, "health"], &[]).await else {
        return (Value::Null, Value::Null);
    };
    let last = answer.data["history"].as_array().and_then(|all| all.last());
    let since = last.map_or(Value::Null, |one| one["at"].clone());
    (answer.data["health"].clone(), since)
}

async fn probe(outbound: &Outbound, row: &Row) -> Value {
    let Ok(gateway) = serde_json::from_value::<Gateway>(row.body.clone()) else {
        return Value::Null;
    };
    let health = match address(&gateway) {
        None => Health::Healthy,
        Some(url) => match outbound.reach(url, Duration::from_millis(PATIENCE_MS)).await {
            Ok(()) => Health::Healthy,
            // Blocked by the allow-list, which a server reports as degraded too.
            Err(OutboundError::Refused(_)) => Health::Degraded,
            Err(_) => Health::Offline,
        },
    };
    health.as_str().into()
}
