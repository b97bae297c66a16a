//! Checks that the policies load.

use super::{DoctorCheck, gateways, secrets};
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::port::store::Store;
use sluice_govern::registry::{PolicySet, Row};
use sluice_server::service::policies;

pub(super) async fn checks(store: &dyn Store, keyring: &Keyring) -> Vec<DoctorCheck> {
    let rows = match store.registry(None).await {
        Ok(found) => found.rows,
        Err(error) => {
            return vec![DoctorCheck::fail(
                "registry",
                error.to_string(),
                "put a backup in its place",
            )];
        }
    };
    let mut checks = vec![rules(&rows)];
    checks.extend(gateways::checks(&rows, keyring).await);
    checks.extend(secrets::named(&rows, keyring));
    checks
}

fn rules(rows: &[Row]) -> DoctorCheck {
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
        Ok((active, 0)) => DoctorCheck::ok(NAME, format!("{active} in force")),
        Ok((active, shadow)) => {
            DoctorCheck::ok(NAME, format!("{active} in force, {shadow} in shadow"))
        }
        Err(refused) => DoctorCheck::refused(NAME, &refused),
    }
}
