//! Gateways: can they be reached, are their keys there, and may they be called.
//!
//! What is looked at is what the server would do: the same allow-list, the same
//! references to keys. Nothing is sent, and each look has its time.

use super::Check;
use crate::kit;
use crate::reach::{self, GATEWAYS_MAX, PATIENCE_MS};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::error::{OutboundError, Refusal, origin};
use sluice_bridge::secret::NoSecret;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::rows::{cautions, faults};
use sluice_core::visible;
use sluice_govern::registry::{Gateway, Kind, Row};
use std::time::Duration;

const NAME: &str = "gateway";

pub(super) async fn checks(rows: &[Row], secrets: &Keyring) -> Vec<Check> {
    let (mut checks, outbound) = match allow_list() {
        Ok((check, outbound)) => (vec![check], outbound),
        Err(check) => return vec![check],
    };
    let gateways = rows.iter().filter(|row| row.kind == Kind::Gateway);
    for row in gateways.take(GATEWAYS_MAX) {
        checks.extend(gateway(row, rows, &outbound, secrets).await);
    }
    for caution in cautions(rows) {
        checks.push(Check::warn("agent", caution.message, caution.hint.unwrap_or_default()));
    }
    checks
}

/// What may be called beside the public network.
fn allow_list() -> Result<(Check, Outbound), Check> {
    const NAME: &str = "outbound";
    let list = kit::allowed().map_err(|refused| Check::refused(NAME, &refused))?;
    let message = match kit::allowed_words() {
        [] => "public addresses alone may be called".to_owned(),
        words => format!("public addresses may be called, and {}", words.join(", ")),
    };
    Ok((Check::ok(NAME, message), Outbound::new(list)))
}

async fn gateway(row: &Row, rows: &[Row], outbound: &Outbound, secrets: &Keyring) -> Vec<Check> {
    let name = visible::brief(&row.name);
    let Ok(gateway) = serde_json::from_value::<Gateway>(row.body.clone()) else {
        return vec![Check::fail(
            NAME,
            format!("`{name}` cannot be read"),
            "apply its setup again",
        )];
    };
    if gateway.paused {
        let remedy = format!("`sluice gateways resume {name}`, when it may work again");
        return vec![Check::warn(NAME, format!("`{name}` is paused"), remedy)];
    }
    let wrong = faults(rows).into_iter().find(|fault| {
        fault.kind == Kind::Gateway && fault.name == row.name && fault.path == ["provider"]
    });
    if let Some(wrong) = wrong {
        let message = format!("`{name}`: {}", wrong.message);
        return vec![Check::fail(NAME, message, wrong.hint.unwrap_or_default())];
    }
    let mut checks = vec![reached(&name, &gateway, outbound).await];
    checks.extend(key(&name, &gateway, secrets));
    checks
}

/// Whether something takes calls where a gateway is, or where its provider is.
async fn reached(name: &str, gateway: &Gateway, outbound: &Outbound) -> Check {
    let provider = gateway.provider.as_str();
    let Some(url) = reach::address(gateway) else {
        let what = if provider.is_empty() { "speaks to nothing" } else { provider };
        return Check::ok(NAME, format!("`{name}` is in this process ({what})"));
    };
    let shown = origin(url).unwrap_or_else(|| visible::brief(url).into_owned());
    let remedy = |error: &OutboundError| match error {
        OutboundError::Refused(Refusal::Closed { allow, .. }) => {
            format!(
                "add `{allow}` to `allow` of `[outbound]` in sluice.toml, or to SLUICE_OUTBOUND_ALLOW"
            )
        }
        OutboundError::Refused(_) => {
            format!(
                "put its address right: `sluice gateways set {name} url=URL` (or `base_url=URL`)"
            )
        }
        _ => "start it, or put its address right with `sluice gateways set`".to_owned(),
    };
    match outbound.reach(url, Duration::from_millis(PATIENCE_MS)).await {
        Ok(()) => Check::ok(NAME, format!("`{name}` takes calls at {shown}")),
        Err(error @ OutboundError::Refused(Refusal::Closed { why, .. })) => {
            let message = format!("`{name}` at {shown} may not be called: its address is {why}");
            Check::warn(NAME, message, remedy(&error))
        }
        Err(error) => Check::warn(NAME, format!("`{name}` at {shown} {error}"), remedy(&error)),
    }
}

/// Whether a gateway's key is where its row says.
fn key(name: &str, gateway: &Gateway, secrets: &Keyring) -> Option<Check> {
    const NAME: &str = "key";
    let reference = gateway.key.as_ref()?;
    let key = secrets.of_row(reference, gateway.operator_secret);
    let read = reach::address(gateway).map_or_else(|| key.read(), |url| key.read_for(url));
    Some(match read {
        Ok(_) => Check::ok(NAME, format!("`{name}` has its key in `{reference}`")),
        Err(why @ NoSecret::NotOfOperator(_)) => {
            let remedy = "apply its setup again on this machine, or write `secret:NAME`: \
                          docs/guide/secrets.md";
            Check::warn(NAME, format!("of `{name}`: {why}"), remedy)
        }
        Err(why) => {
            let remedy = "set it for the process that does the work, or name another with \
                          `sluice gateways set`";
            Check::warn(NAME, format!("of `{name}`: {why}"), remedy)
        }
    })
}
