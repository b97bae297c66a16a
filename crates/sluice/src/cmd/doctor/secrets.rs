//! Checks the declared secrets, and those that webhooks name.

use super::DoctorCheck;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::visible;
use sluice_govern::registry::{Hook, Kind, Row, Webhook};

const NAME: &str = "secret";

/// Whether every declared secret can be read by this process.
pub(super) fn declared(secrets: &Keyring) -> Vec<DoctorCheck> {
    let checks = secrets.check().map(|(secret, why)| {
        let name = &secret.name;
        match why {
            None => DoctorCheck::ok(NAME, format!("`{name}` can be read from `{}`", secret.from)),
            Some(why) => {
                let remedy = "set it for the process that does the work, or put `from` right";
                DoctorCheck::warn(NAME, format!("`{name}`: {why}"), remedy)
            }
        }
    });
    checks.collect()
}

/// Reports webhooks without their secret.
pub(super) fn named(rows: &[Row], secrets: &Keyring) -> Vec<DoctorCheck> {
    let lacking = rows.iter().filter_map(|row| {
        let key = |secret, by_operator| secrets.of_row(secret, by_operator);
        let why = match row.kind {
            Kind::Webhook => {
                let Webhook { url, secret, operator_secret, .. } =
                    serde_json::from_value(row.body.clone()).ok()?;
                key(&secret, operator_secret).read_for(&url).err()?
            }
            Kind::Hook => {
                let Hook { secret, operator_secret, .. } =
                    serde_json::from_value(row.body.clone()).ok()?;
                key(&secret, operator_secret).read().err()?
            }
            _ => return None,
        };
        let (kind, name) = (row.kind.noun(), visible::brief(&row.name));
        let remedy = "declare it under `[secrets]` in sluice.toml: docs/guide/secrets.md";
        Some(DoctorCheck::warn(NAME, format!("of the {kind} `{name}`: {why}"), remedy))
    });
    lacking.collect()
}
