//! Registry rows that another process deletes or puts back are detected when they are
//! read.

use super::authentic::Exposed;
use super::{Bench, node};
use serde_json::json;
use sluice_core::port::inspect::Stored;
use sluice_core::port::ledger::{Change, Changed, Rows};
use sluice_core::port::store::StoreError;
use sluice_govern::registry::{Kind, Row};
use std::sync::Arc;

/// Keeps the head of the first change in the only table whose rows may have any bytes.
const KEEP: &str = "INSERT INTO blob (hash, body) SELECT mark, mark FROM authentic WHERE one = 2";

const NEWER: &str = "UPDATE counter SET count = count + 1 WHERE name = 'registry'";
const OLD_HEAD: &str = "UPDATE authentic SET mark = (SELECT body FROM blob) WHERE one = 2";
const OLD_ROWS: &str = "DELETE FROM registry WHERE epoch > 1";

/// Each puts an older registry in force, or removes what shows that it is older.
const ATTACKS: &[&[&str]] = &[
    // The removed token is valid again.
    &["DELETE FROM registry WHERE kind = 'token' AND epoch = 2"],
    // The older budget is in force again.
    &["DELETE FROM registry WHERE kind = 'envelope' AND epoch = 2"],
    // A row is forgotten with its history.
    &["DELETE FROM registry WHERE kind = 'envelope'"],
    &["DELETE FROM registry"],
    &["DELETE FROM authentic WHERE one = 2"],
    &["UPDATE authentic SET mark = (SELECT mac FROM registry LIMIT 1) WHERE one = 2"],
    &[OLD_HEAD],
    // Everything is put back, as it was after the first change.
    &[OLD_ROWS, OLD_HEAD],
];

/// Runs every case, each on a fresh store.
pub fn check_rolled_back(mut fresh: impl FnMut() -> Exposed) {
    for attack in ATTACKS {
        let (bench, sql, adopt) = filled(fresh());
        assert!(damaged_tables(&bench).is_empty());
        attack.iter().for_each(|statement| sql(statement));
        sql(NEWER);
        let rows = bench.wait_ok(bench.store.registry(None));
        assert!(rows.is_rolled_back && rows.rows.is_empty(), "{attack:?}: {rows:?}");
        // Only this process knows that a head is an old one.
        if attack != &[OLD_ROWS, OLD_HEAD] {
            assert_eq!(damaged_tables(&bench), ["authentic"], "{attack:?}");
        }
        let again = bench.wait_ok(bench.store.registry(None));
        assert_eq!(rows, again, "{attack:?}");
        // The operator accepts what is there.
        adopt();
        assert!(damaged_tables(&bench).is_empty(), "{attack:?}");
    }
    counted(fresh());
    overwritten(fresh());
}

/// An epoch counter that another process sets changes neither rows nor epochs.
fn counted(exposed: Exposed) {
    let (bench, sql, _) = filled(exposed);
    let before = bench.wait_ok(bench.store.registry(None));
    sql("UPDATE counter SET count = 1 WHERE name = 'registry'");
    let set_back = bench.wait_ok(bench.store.registry(None));
    assert_eq!((set_back.rows, set_back.is_rolled_back), (before.rows, false));
    sql("UPDATE counter SET count = 9 WHERE name = 'registry'");
    let ahead = bench.wait_ok(bench.store.registry(None));
    assert!(!ahead.is_rolled_back && ahead.rows.len() == 2, "{ahead:?}");
    change(&bench, 3, &[]);
    let after = bench.wait_ok(bench.store.registry(None));
    assert_eq!((amount(&after), after.is_rolled_back), (Some(3), false));
}

/// A change of a row whose newest version was deleted does not hide that.
fn overwritten(exposed: Exposed) {
    let (bench, sql, _) = filled(exposed);
    sql("DELETE FROM registry WHERE kind = 'envelope' AND epoch = 2");
    change(&bench, 3, &[]);
    assert!(bench.wait_ok(bench.store.registry(None)).is_rolled_back);
    sql("DELETE FROM authentic WHERE one = 2");
    let refused = super::wait(bench.store.change(planned(4, &[])));
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
}

type Sql = Arc<dyn Fn(&str) + Send + Sync>;
type Adopt = Arc<dyn Fn() + Send + Sync>;

/// A store with a budget that was changed, an agent, and a token that was removed.
fn filled(exposed: Exposed) -> (Bench, Sql, Adopt) {
    let Exposed { store, clock, sql, adopt } = exposed;
    let bench = Bench { store, clock };
    let rows = vec![row(Kind::Token, "t", json!({})), row(Kind::Agent, "a", json!({}))];
    let put = [vec![budget(1)], rows].concat();
    bench.wait_ok(bench.store.change(Change { put, ..planned(1, &[]) }));
    sql(KEEP);
    change(&bench, 2, &[(Kind::Token, "t")]);
    let rows = bench.wait_ok(bench.store.registry(None));
    assert_eq!((amount(&rows), rows.rows.len(), rows.is_rolled_back), (Some(2), 2, false));
    (bench, sql, adopt)
}

fn row(kind: Kind, name: &str, body: serde_json::Value) -> Row {
    Row { kind, name: name.to_owned(), body }
}

fn budget(amount: u64) -> Row {
    row(Kind::Budget, "b", json!({"amount_cents": amount}))
}

fn planned(amount: u64, remove: &[(Kind, &str)]) -> Change {
    Change {
        expect: None,
        put: vec![budget(amount)],
        remove: remove.iter().map(|(kind, name)| (*kind, (*name).to_owned())).collect(),
        node: node(4),
        entries: Vec::new(),
    }
}

fn change(bench: &Bench, amount: u64, remove: &[(Kind, &str)]) {
    let changed = bench.wait_ok(bench.store.change(planned(amount, remove)));
    assert!(matches!(changed, Changed::Done { .. }), "{changed:?}");
}

fn amount(rows: &Rows) -> Option<u64> {
    let budget = rows.rows.iter().find(|row| row.kind == Kind::Budget)?;
    budget.body["amount_cents"].as_u64()
}

/// What an inspection reports about the head; the kept head is no blob, which it reports too.
fn damaged_tables(bench: &Bench) -> Vec<&'static str> {
    let found = super::inspect::everything(&*bench.store);
    let damaged = found.iter().filter_map(|row| match row {
        Stored::Damaged { table, .. } => Some(*table),
        _ => None,
    });
    damaged.filter(|table| *table == "authentic").collect()
}
