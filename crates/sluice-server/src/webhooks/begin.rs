//! Where a webhook begins: with what happens after it was set, or turned on again.

use sluice_core::port::deliveries::Ahead;
use sluice_core::port::store::{Store, StoreError};
use sluice_core::rows::find;
use sluice_govern::registry::{Kind, Row};

/// Makes places follow a change of rows: a new webhook begins at `end`, the end of
/// the feed before the change; so does one that was off, which is not told what
/// happened meanwhile; and one that is gone is forgotten.
pub async fn follow(
    store: &dyn Store,
    before: &[Row],
    after: &[Row],
    end: u64,
) -> Result<(), StoreError> {
    for row in before.iter().filter(|row| row.kind == Kind::Webhook) {
        if find(after, Kind::Webhook, &row.name).is_none() {
            store.forget_deliveries(row.name.clone()).await?;
        }
    }
    for row in after.iter().filter(|row| row.kind == Kind::Webhook) {
        let webhook = row.name.clone();
        let from = match find(before, Kind::Webhook, &row.name) {
            // One of the same name may have been there long ago.
            None => {
                store.forget_deliveries(webhook.clone()).await?;
                None
            }
            Some(old) if !is_on(old) && is_on(row) => {
                store.delivering(webhook.clone()).await?.place
            }
            Some(_) => continue,
        };
        if from.is_none_or(|from| from < end) {
            store.deliver(Ahead { webhook, from, to: end, put: Vec::new() }).await?;
        }
    }
    Ok(())
}

fn is_on(row: &Row) -> bool {
    row.body.get("enabled").and_then(serde_json::Value::as_bool) != Some(false)
}
