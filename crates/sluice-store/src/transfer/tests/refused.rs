//! Sources and targets that a transfer refuses.

use super::*;

fn refused(dir: &Path, url: &str) -> TransferError {
    Transfer::begin(dir, url, None, LATE_MS).err().expect("it is refused")
}

/// Runs statements in the schema of a URL.
fn psql(url: &str, sql: &str) -> String {
    let (_, schema) = url.rsplit_once("%3D").expect("the URL names a schema");
    server().psql(&format!("SET search_path = {schema}; {sql}"))
}

#[test]
fn a_store_with_a_live_node_is_refused_until_it_leaves() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    let store = sqlite(dir.path());
    wait(store.renew(node(3), 1000)).unwrap();
    let begun = Transfer::begin(dir.path(), &url, None, 1500).err().expect("a node is alive");
    assert!(matches!(begun, TransferError::InUse { node: NodeId(3) }), "{begun}");
    wait(store.leave(node(3))).unwrap();
    drop(store);
    transfer(dir.path(), &url);
}

#[test]
fn no_process_writes_to_the_source_during_a_transfer() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    drop(sqlite(dir.path()));
    let held = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
    let other = rusqlite::Connection::open(dir.path().join("sluice.db")).unwrap();
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    let delete = "DELETE FROM run";
    let error = other.execute(delete, []).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
    let second = refused(dir.path(), &url);
    assert!(matches!(second, TransferError::Busy), "{second}");
    // Readers are not blocked.
    assert!(answers_of(dir.path()) > 0);
    drop(held);
    other.execute(delete, []).unwrap();
}

fn answers_of(dir: &Path) -> usize {
    let store = sqlite(dir);
    let line = format!("{:?}", wait(store.list(Filter::default())));
    line.len()
}

#[test]
fn a_directory_without_a_store_is_refused_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let error = refused(dir.path(), &server().schema());
    assert!(matches!(error, TransferError::NoSource { .. }), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_target_that_holds_anything_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    furnish(&sqlite(dir.path()));
    let url = server().schema();
    let store = postgres(&url).unwrap();
    wait(store.renew(node(1), 10)).unwrap();
    let error = refused(dir.path(), &url);
    assert_eq!(error.to_string(), "the target is not empty: it has rows in `node`");
    append(&store, first(run(1)));
    let error = refused(dir.path(), &url);
    assert_eq!(error.to_string(), "the target is not empty: it has rows in `run`");
    drop(store);
    // A refusal changes nothing: it is still a store.
    drop(postgres(&url).unwrap());
    let error = refused(dir.path(), "mysql://elsewhere");
    assert!(matches!(error, TransferError::Target(OpenError::Url(_))), "{error}");
}

#[test]
fn two_sources_are_never_mixed() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    furnish(&sqlite(one.path()));
    append(&sqlite(other.path()), first(run(1)));
    let url = server().schema();
    let mut half = Transfer::begin(one.path(), &url, None, LATE_MS).unwrap();
    assert!(half.carry(&mut |_| ControlFlow::Break(())).is_err());
    drop(half);
    assert!(matches!(refused(other.path(), &url), TransferError::Foreign));
    // Nor is the source merged with an earlier state of itself.
    wait(sqlite(one.path()).post(message(run(2), "since"))).unwrap();
    assert!(matches!(refused(one.path(), &url), TransferError::Foreign));
}

#[test]
fn a_difference_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    furnish(&sqlite(dir.path()));
    let changes = [
        ("UPDATE frame SET body = 'x' WHERE place = 3", "the row 3 of `frame`"),
        ("DELETE FROM seal", "the row 1 of `seal`"),
        ("INSERT INTO webhook VALUES ('zz', 1, 1)", "the row \"zz\" of `webhook`"),
        ("UPDATE counter SET slices = NULL WHERE span > 0", "60000 of `window`"),
        (
            "UPDATE run SET asks = true WHERE id = '00000000-0000-0000-0000-000000000004'",
            "the row 00000000000000000000000000000004 of `run`",
        ),
    ];
    for (change, named) in changes {
        let url = server().schema();
        let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
        transfer.carry(&mut on).unwrap();
        drop(transfer);
        psql(&url, change);
        let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
        let error = transfer.carry(&mut on).unwrap_err();
        assert!(matches!(error, TransferError::Differs { .. }), "{error}");
        assert!(error.to_string().contains(named), "{error}");
        assert!(matches!(postgres(&url), Err(OpenError::Unfinished)));
    }
}

#[test]
fn a_source_that_was_carried_is_put_away_whole() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    furnish(&sqlite(dir.path()));
    let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
    transfer.carry(&mut on).unwrap();
    transfer.end().unwrap();
    let retired = transfer.retire().unwrap();
    assert_eq!(retired, dir.path().join("sluice.db.moved"));
    let names = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["nodes", "sluice.db.moved"], "neither the store nor a log of it is left");
    // Renamed back by an operator, it is the same store again.
    std::fs::rename(retired, dir.path().join("sluice.db")).unwrap();
    assert_eq!(answers(&sqlite(dir.path())), answers(&postgres(&url).unwrap()));
}

#[test]
fn a_source_that_another_process_has_open_is_neither_copied_nor_retired() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    furnish(&sqlite(dir.path()));
    let file = dir.path().join("sluice.db");
    let look = || {
        let other = rusqlite::Connection::open(&file).unwrap();
        let runs: i64 = other.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap();
        assert_eq!(runs, 5);
        other
    };
    let other = look();
    assert!(matches!(refused(dir.path(), &url), TransferError::Busy));
    drop(other);
    let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
    transfer.carry(&mut on).unwrap();
    transfer.end().unwrap();
    let other = look();
    assert!(matches!(transfer.retire(), Err(TransferError::Busy)));
    drop(other);
    let transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
    assert!(transfer.has_ended() && file.exists());
    transfer.retire().unwrap();
}

#[test]
fn what_an_older_process_has_still_on_its_way_is_left_out() {
    let url = server().schema();
    let target = Target::open(&url, None).unwrap();
    let source = Hash::of(b"source");
    let older = target.begin(source).unwrap().turn;
    let newer = Target::open(&url, None).unwrap().begin(source).unwrap().turn;
    assert!(older < newer);
    let row = vec![Cell::Text("a".to_owned()), Cell::Int(1), Cell::Int(1)];
    assert!(!target.put(older, Table::Webhook, std::slice::from_ref(&row), 1).unwrap());
    assert!(!target.end(older).unwrap());
    assert_eq!(psql(&url, "SELECT count(*) FROM webhook"), "0");
    assert!(target.put(newer, Table::Webhook, &[row], 1).unwrap());
    assert_eq!(psql(&url, "SELECT at, copied FROM transfer"), "webhook|1");
}
