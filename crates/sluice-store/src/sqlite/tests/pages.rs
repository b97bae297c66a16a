//! How much of the file is read for a page of a journal.

use super::*;

/// Frames of 10 bytes whose bodies cannot be read from this event on.
fn damaged_from(first_event: u64) -> (TempDir, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(&dir);
    for after in 0..10 {
        let body = format!("{after:010}").into_bytes();
        let append_at = if after == 0 { first(run(1)) } else { plain(run(1), after) };
        append(&store, Append { body, ..append_at });
    }
    let sql = format!("UPDATE frame SET body = CAST(body AS TEXT) WHERE first >= {first_event}");
    rusqlite::Connection::open(dir.path().join(FILE)).unwrap().execute_batch(&sql).unwrap();
    (dir, store)
}

#[test]
fn a_page_reads_only_the_bodies_that_fit() {
    let (_dir, store) = damaged_from(4);
    let firsts = |after, bytes_max| {
        let frames = wait(store.frames(run(1), after, bytes_max)).map_err(|why| why.to_string())?;
        Ok::<_, String>(frames.iter().map(|frame| frame.first).collect::<Vec<_>>())
    };
    assert_eq!(firsts(0, 30), Ok(vec![1, 2, 3]));
    assert_eq!(firsts(0, 39), Ok(vec![1, 2, 3]));
    assert_eq!(firsts(1, 20), Ok(vec![2, 3]));
    assert_eq!(firsts(2, 0), Ok(vec![3]));
    // One byte more, or one event later, and the damaged body is part of the page.
    assert!(firsts(0, 40).is_err());
    assert!(firsts(3, 0).is_err());
}
