//! Checks gateways: whether they are reachable and allowed, and their keys exist.
//!
//! The checks use the allow-list and key references of a server. They only connect, each within
//! a time limit.

use super::DoctorCheck;
use crate::providers;
use crate::reach::{self, GATEWAYS_MAX, PATIENCE_MS};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::error::{OutboundError, OutboundRefusal, origin};
use sluice_bridge::secret::NoSecret;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::rows::{cautions, faults};
use sluice_core::visible;
use sluice_govern::registry::{Gateway, Kind, Row};
use std::time::Duration;

const NAME: &str = "gateway";

pub(super) async fn checks(rows: &[Row], secrets: &Keyring) -> Vec<DoctorCheck> {
    let (mut checks, outbound) = match allow_list() {
        Ok((check, outbound)) => (vec![check], outbound),
        Err(check) => return vec![check],
    };
    let gateways = rows.iter().filter(|row| row.kind == Kind::Gateway);
    for row in gateways.take(GATEWAYS_MAX) {
        checks.extend(gateway(row, rows, &outbound, secrets).await);
    }
    for caution in cautions(rows) {
        checks.push(DoctorCheck::warn("agent", caution.message, caution.hint.unwrap_or_default()));
    }
    checks
}

/// Checks the allow-list of private addresses.
fn allow_list() -> Result<(DoctorCheck, Outbound), DoctorCheck> {
    const NAME: &str = "outbound";
    let list = providers::allowed().map_err(|refused| DoctorCheck::refused(NAME, &refused))?;
    let message = match providers::allowed_words() {
        [] => "public addresses alone may be called".to_owned(),
        words => format!("public addresses may be called, and {}", words.join(", ")),
    };
    Ok((DoctorCheck::ok(NAME, message), Outbound::new(list)))
}

async fn gateway(
    row: &Row,
    rows: &[Row],
    outbound: &Outbound,
    secrets: &Keyring,
) -> Vec<DoctorCheck> {
    let name = visible::brief(&row.name);
    let Ok(gateway) = serde_json::from_value::<Gateway>(row.body.clone()) else {
        return vec![DoctorCheck::fail(
            NAME,
            format!("`{name}` cannot be read"),
            "apply its setup again",
        )];
    };
    if gateway.paused {
        let remedy = format!("`sluice gateways resume {name}`, when it may work again");
        return vec![DoctorCheck::warn(NAME, format!("`{name}` is paused"), remedy)];
    }
    let wrong = faults(rows).into_iter().find(|fault| {
        fault.kind == Kind::Gateway && fault.name == row.name && fault.path == ["provider"]
    });
    if let Some(wrong) = wrong {
        let message = format!("`{name}`: {}", wrong.message);
        return vec![DoctorCheck::fail(NAME, message, wrong.hint.unwrap_or_default())];
    }
    let mut checks = vec![reached(&name, &gateway, outbound).await];
    checks.extend(key(&name, &gateway, secrets));
    checks
}

/// Whether a gateway or its provider accepts connections.
async fn reached(name: &str, gateway: &Gateway, outbound: &Outbound) -> DoctorCheck {
    let provider = gateway.provider.as_str();
    let Some(url) = reach::address(gateway) else {
        let what = if provider.is_empty() { "speaks to nothing" } else { provider };
        return DoctorCheck::ok(NAME, format!("`{name}` is in this process ({what})"));
    };
    let shown = origin(url).unwrap_or_else(|| visible::brief(url).into_owned());
    let remedy = |error: &OutboundError| match error {
        OutboundError::Refused(OutboundRefusal::Closed { allow, .. }) => {
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
        Ok(()) => DoctorCheck::ok(NAME, format!("`{name}` takes calls at {shown}")),
        Err(error @ OutboundError::Refused(OutboundRefusal::Closed { why, .. })) => {
            let message = format!("`{name}` at {shown} may not be called: its address is {why}");
            DoctorCheck::warn(NAME, message, remedy(&error))
        }
        Err(error) => {
            DoctorCheck::warn(NAME, format!("`{name}` at {shown} {error}"), remedy(&error))
        }
    }
}

/// Whether the key of a gateway exists.
fn key(name: &str, gateway: &Gateway, secrets: &Keyring) -> Option<DoctorCheck> {
    const NAME: &str = "key";
    let reference = gateway.key.as_ref()?;
    let key = secrets.of_row(reference, gateway.operator_secret);
    let read = reach::address(gateway).map_or_else(|| key.read(), |url| key.read_for(url));
    Some(match read {
        Ok(_) => DoctorCheck::ok(NAME, format!("`{name}` has its key in `{reference}`")),
        Err(why @ NoSecret::NotOfOperator(_)) => {
            let remedy = "apply its setup again on this machine, or write `secret:NAME`: \
                          docs/guide/secrets.md";
            DoctorCheck::warn(NAME, format!("of `{name}`: {why}"), remedy)
        }
        Err(why) => {
            let remedy = "set it for the process that does the work, or name another with \
                          `sluice gateways set`";
            DoctorCheck::warn(NAME, format!("of `{name}`: {why}"), remedy)
        }
    })
}
