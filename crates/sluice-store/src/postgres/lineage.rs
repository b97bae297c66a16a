//! Provenance edges between runs.

use super::PostgresStore;
use super::column::{Id, get, number, sql_limit};
use sluice_core::id::RunId;
use sluice_core::port::lineage::{Consumer, Lineage};
use sluice_core::port::store::Answer;

impl Lineage for PostgresStore {
    fn consumers(
        &self,
        run: RunId,
        after: Option<RunId>,
        limit: usize,
    ) -> Answer<'_, Vec<Consumer>> {
        self.read(async move |session| {
            let sql = "SELECT taker, count FROM taking
                       WHERE source = $1 AND ($2::uuid IS NULL OR taker > $2)
                       ORDER BY taker LIMIT $3";
            let (source, after) = (Id::from(run), after.map(Id::from));
            let rows =
                session.query(sql, &[&source, &after, &sql_limit(crate::page(limit))]).await?;
            let consumer = |row: &tokio_postgres::Row| {
                Ok(Consumer { run: get::<Id>(row, 0)?.run(), values: number(row, 1)? })
            };
            rows.iter().map(consumer).collect()
        })
    }

    fn taken(&self, run: RunId) -> Answer<'_, u64> {
        self.read(async move |session| {
            let sql = "SELECT coalesce(sum(count), 0)::bigint FROM taking WHERE source = $1";
            number(&session.query(sql, &[&Id::from(run)]).await?[0], 0)
        })
    }
}
