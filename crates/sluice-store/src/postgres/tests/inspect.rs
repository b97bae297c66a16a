//! How an inspection reports changes by another process.

use super::authentic::exposed;
use super::*;
use sluice_core::port::inspect::Inspect as _;
use sluice_testing::conformance::inspect::Detection::{self, Changed, Damaged, Foreign};
use sluice_testing::conformance::inspect::{Attack, check_inspect};
use sluice_testing::conformance::{first, run};

/// Changes of tables that only this store has.
const ATTACKS: &[(&str, Detection)] = &[
    ("UPDATE chain SET seq = seq + 1", Changed("chain")),
    ("UPDATE chain SET hash = decode(repeat('00', 32), 'hex')", Changed("chain")),
    ("DELETE FROM chain", Changed("chain")),
    ("UPDATE position SET frames = frames - 1", Changed("position")),
    ("UPDATE position SET letters = letters + 1", Changed("position")),
    ("DELETE FROM position", Changed("position")),
    ("UPDATE frame SET place = 1 WHERE place = 2", Changed("frame")),
    ("UPDATE frame SET run = gen_random_uuid() WHERE first = 2 AND count = 1", Damaged("frame")),
    ("UPDATE letter SET run = gen_random_uuid()", Damaged("letter")),
    ("UPDATE memo SET run = gen_random_uuid()", Damaged("memo")),
    ("UPDATE snapshot SET run = gen_random_uuid()", Damaged("snapshot")),
    ("DELETE FROM frame WHERE count = 2", Foreign("snapshot")),
    ("UPDATE run SET version = version + 1", Changed("run")),
    ("DROP TABLE taking", Damaged("taking")),
    (
        "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER quiet BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION quiet()",
        Foreign("schema"),
    ),
    ("CREATE RULE quiet AS ON INSERT TO entry DO INSTEAD NOTHING", Foreign("schema")),
    ("ALTER TABLE entry ENABLE ROW LEVEL SECURITY", Foreign("schema")),
    ("CREATE POLICY quiet ON entry USING (false)", Foreign("schema")),
    ("CREATE TABLE other () INHERITS (entry)", Foreign("schema")),
    ("ALTER TABLE key ALTER COLUMN expires_at SET DEFAULT 0", Foreign("schema")),
    ("ALTER TABLE run ADD CONSTRAINT other CHECK (version >= 0)", Foreign("schema")),
    ("ALTER TABLE slot DROP COLUMN why", Damaged("slot")),
    ("ALTER TABLE memo ALTER COLUMN at TYPE text", Damaged("memo")),
];

#[test]
fn every_change_by_another_process_shows() {
    let own: Vec<Attack> =
        ATTACKS.iter().map(|(sql, detection)| Attack { sql, detection: *detection }).collect();
    check_inspect(exposed, &own, 3);
}

/// Number of open transactions that have read a table of this schema.
fn readers(store: &PostgresStore) -> usize {
    let count = async |session: &Session| {
        let sql = "SELECT 1 FROM pg_locks WHERE relation = 'seal'::regclass";
        Ok(session.query(sql, &[]).await?.len())
    };
    wait(store.read(count)).unwrap()
}

#[test]
fn a_connection_that_is_lost_is_an_error_and_leaves_no_transaction() {
    let url = server().schema();
    let (store, other) = (open(&url), open(&url));
    append(&store, first(run(1)));
    append(&store, first(run(2)));
    wait(store.inspect(Box::new(|_| {}))).unwrap();
    assert_eq!(readers(&store), 0);
    let lost = wait(store.inspect(Box::new(move |_| {
        let end = async |session: &Session| {
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_locks
                       WHERE relation = 'seal'::regclass";
            Ok(session.query(sql, &[]).await?.len())
        };
        wait(other.read(end)).unwrap();
    })));
    assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
    assert_eq!(readers(&store), 0);
    wait(store.inspect(Box::new(|_| {}))).unwrap();
}
