//! The feed over all journals: frames in table order.

use super::SqliteStore;
use super::column::{int, run_id, uint};
use super::fault::Fault;
use super::reader::ReadConnection;
use crate::limits::FEED_FRAMES_MAX;
use rusqlite::Connection;
use sluice_core::port::feed::{Feed, Placed};
use sluice_core::port::store::{Answer, Examined, Frame};

impl Feed for SqliteStore {
    fn feed(&self, after: u64, bytes_max: usize) -> Answer<'_, Vec<Placed>> {
        Box::pin(self.readers.read(move |reader| feed(reader, after, bytes_max)))
    }

    fn feed_end(&self) -> Answer<'_, u64> {
        Box::pin(self.readers.read(|reader| feed_end(&reader.connection)))
    }
}

/// One process writes at a time and numbers only grow, so a frame that becomes visible
/// later has a greater number.
fn feed(reader: &ReadConnection, after: u64, bytes_max: usize) -> Result<Vec<Placed>, Fault> {
    // The join order makes SQLite read frames in key order. A frame that no journal
    // refers to has no run.
    let sql = "SELECT frame.seq, run.id, first, count, chain, mac, frame.body, beside.body
               FROM frame CROSS JOIN run ON run.num = frame.run
               LEFT JOIN beside ON beside.seq = frame.seq
               WHERE frame.seq > ?1 ORDER BY frame.seq LIMIT ?2";
    let mut statement = reader.connection.prepare_cached(sql)?;
    let mut rows = statement.query([int(after), int(FEED_FRAMES_MAX as u64)])?;
    let (mut page, mut bytes) = (Vec::new(), 0usize);
    while let Some(row) = rows.next()? {
        let frame = Frame {
            first: uint(row.get(2)?),
            count: row.get(3)?,
            chain: row.get(4)?,
            body: row.get(6)?,
            beside: row.get::<_, Option<Vec<u8>>>(7)?.unwrap_or_default(),
        };
        bytes = bytes.saturating_add(frame.body.len() + frame.beside.len());
        if bytes > bytes_max && !page.is_empty() {
            break;
        }
        let (place, run) = (uint(row.get(0)?), run_id(row.get(1)?));
        let mac = row.get_ref(5)?.as_blob().map_err(rusqlite::Error::from)?;
        let Examined { frame, is_authentic } = reader.shared.keys.examined(run, frame, mac);
        page.push(Placed { place, run, frame, is_authentic });
    }
    Ok(page)
}

fn feed_end(connection: &Connection) -> Result<u64, Fault> {
    let sql = "SELECT coalesce(max(seq), 0) FROM frame";
    Ok(uint(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?))
}
