//! The start position of a webhook: the end of the feed when it is created or enabled.

use sluice_core::port::deliveries::Ahead;
use sluice_core::port::store::{Store, StoreError};
use sluice_core::rows::find;
use sluice_govern::registry::{Kind, Row};

/// Updates positions after a change of rows: a new webhook starts at `end`, the end of the
/// feed before the change; so does one that was disabled, which skips the events in
/// between; and the deliveries of a removed webhook are deleted.
pub async fn update(
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
            // A removed webhook may have had the same name.
            None => {
                store.forget_deliveries(webhook.clone()).await?;
                None
            }
            Some(old) if !is_enabled(old) && is_enabled(row) => {
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

fn is_enabled(row: &Row) -> bool {
    row.body.get("enabled").and_then(serde_json::Value::as_bool) != Some(false)
}
