//! Checks that the policies load.

use super::{DoctorCheck, gateways, secrets};
use crate::cli::run::Data;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::port::store::Store;
use sluice_govern::catalog::Catalog;
use sluice_govern::registry::{PolicySet, Row};
use sluice_server::service::policies;

const POLICIES: &str = "policies";

pub(super) async fn checks(store: &dyn Store, keyring: &Keyring, data: &Data) -> Vec<DoctorCheck> {
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
    let mut checks = match crate::policies::catalog(data) {
        Ok(catalog) => rules(&rows, &catalog.unwrap_or_default()),
        Err(refused) => vec![DoctorCheck::refused(POLICIES, &refused)],
    };
    checks.extend(gateways::checks(&rows, keyring).await);
    checks.extend(secrets::named(&rows, keyring));
    checks
}

fn rules(rows: &[Row], catalog: &Catalog) -> Vec<DoctorCheck> {
    let mut missing = Vec::new();
    let loaded = policies::active(rows).and_then(|files| {
        missing.extend_from_slice(policies::load(&files, catalog)?.notes());
        let shadow = policies::stored(rows, PolicySet::Shadow)?;
        if !shadow.is_empty() {
            missing.extend_from_slice(policies::load(&shadow, catalog)?.notes());
        }
        Ok((files.len(), shadow.len()))
    });
    let counted = match loaded {
        Ok((active, 0)) => DoctorCheck::ok(POLICIES, format!("{active} in force")),
        Ok((active, shadow)) => {
            DoctorCheck::ok(POLICIES, format!("{active} in force, {shadow} in shadow"))
        }
        Err(refused) => DoctorCheck::refused(POLICIES, &refused),
    };
    let remedy = "correct the policy, or declare the name under `[tool_servers]` in sluice.toml";
    let missing = missing.iter().map(|one| DoctorCheck::warn(POLICIES, one.to_string(), remedy));
    std::iter::once(counted).chain(missing).collect()
}
