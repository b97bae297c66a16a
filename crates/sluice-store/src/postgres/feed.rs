//! The feed over all journals, in order of position.
//!
//! A transaction that adds frames locks the position until it commits, so when a
//! position is visible, all smaller ones are visible too.

use super::PostgresStore;
use super::column::{Id, get, int, number, sql_limit};
use super::fault::Fault;
use super::read::frame_at;
use super::session::Session;
use crate::authentic::Keys;
use crate::limits::FEED_FRAMES_MAX;
use sluice_core::port::feed::{Feed, Placed};
use sluice_core::port::store::{Answer, Examined};
use std::sync::Arc;

/// Hardly any frame is smaller, in bytes.
const FRAME_BYTES_MIN: usize = 64;
const PAGE: &str = "
    SELECT place, run, first, count, chain, body, beside, mac FROM (
        SELECT place, run, first, count, chain, body, beside, mac,
            sum(octet_length(body) + coalesce(octet_length(beside), 0)) OVER (ORDER BY place) AS bytes,
            row_number() OVER (ORDER BY place) AS number
        FROM (SELECT place, run, first, count, chain, body, beside, mac FROM frame
              WHERE place > $1 ORDER BY place LIMIT $3) AS page
    ) AS counted
    WHERE bytes <= $2::bigint OR number <= 1 ORDER BY place";

impl Feed for PostgresStore {
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>> {
        let shared = Arc::clone(&self.shared);
        self.read(async move |session| feed(session, &shared.keys, after, bytes_max).await)
    }

    fn feed_end(&self) -> Answer<'_, u64> {
        self.read(async |session| {
            let rows = session.query("SELECT frames FROM position WHERE one = 1", &[]).await?;
            rows.first().map_or(Ok(0), |row| number(row, 0))
        })
    }
}

async fn feed(
    session: &Session,
    keys: &Keys,
    after: u64,
    bytes_max: usize,
) -> Result<Vec<Placed>, Fault> {
    // Reads no more rows than the smallest frames could fill.
    let frames = (bytes_max / FRAME_BYTES_MIN).saturating_add(1).min(FEED_FRAMES_MAX);
    let rows =
        session.query(PAGE, &[&int(after), &sql_limit(bytes_max), &sql_limit(frames)]).await?;
    let placed = |row: &tokio_postgres::Row| {
        let (place, run) = (number(row, 0)?, get::<Id>(row, 1)?.run());
        let Examined { frame, is_authentic } = frame_at(keys, run, row, 2)?;
        Ok(Placed { place, run, frame, is_authentic })
    };
    rows.iter().map(placed).collect()
}
