//! Forgery: rows that a process without the key writes into the store, with every
//! hash as it should be. None of them is acted on.

use crate::server::Server;
use crate::world::{World, shown};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::journal::chain::{Chain, HASH_BYTES, Link};
use sluice_core::journal::wire;
use sluice_server::auth::identities::hash;
use std::io::{Read as _, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PAYMENT: &str = "
name: payment
args: {amount: {type: integer, default: 5}}
steps:
  - {id: sure, approval: {required: true, summary: 'Pay ${args.amount}?'}}
  - {id: pay, command: 'pay ${args.amount}', depends_on: [sure]}
";
const PLAIN: &str = "
name: plain
steps:
  - {id: pay, command: pay}
";
const MOCK: &str = "'*': {text: PAID}\n";
/// Long enough for a server to act on what it was given.
const WHILE: Duration = Duration::from_millis(2500);

fn world() -> World {
    let world = World::new().file("payment.lobsterx.yaml", PAYMENT);
    world.file("plain.lobsterx.yaml", PLAIN).file("mock.yaml", MOCK)
}

fn database(world: &World) -> Connection {
    let database = Connection::open(world.path().join(".sluice/sluice.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database
}

fn sql(world: &World, sql: &str) {
    database(world).execute_batch(sql).unwrap();
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A run of the payment that waits to be approved, and its approval.
fn waiting(world: &World) -> (String, String) {
    let run = world.output(&["run", "payment.lobsterx.yaml", "--mock", "mock.yaml"]);
    assert_eq!(run.status.code(), Some(4), "{}", shown(&run));
    let run = world.newest();
    let asked = world.json(&["approvals", "list", "--json"]);
    let asked = asked["data"].as_array().unwrap();
    let own = asked.iter().find(|one| one["run_id"] == run.as_str()).unwrap();
    (run, own["approval_id"].as_str().unwrap().to_owned())
}

/// Bytes with one id in the place of another.
fn renamed(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    String::from_utf8(bytes.to_vec()).unwrap().replace(from, to).into_bytes()
}

fn run_id(run: &str) -> RunId {
    RunId(u128::from_str_radix(run.strip_prefix("run_").unwrap(), 16).unwrap())
}

/// Where the journal of a run ends: its number, the last frame, the last event and
/// its hash.
fn end(database: &Connection, run: RunId) -> (i64, i64, i64, Hash) {
    let sql = "SELECT run.num, tip.seq, tip.version, frame.chain FROM run
               JOIN tip ON tip.run = run.num JOIN frame ON frame.seq = tip.seq WHERE run.id = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let chain: Vec<u8> = row.get(3)?;
        let hash = Hash(*chain.last_chunk().unwrap());
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, hash))
    };
    database.query_row(sql, [run.0.to_be_bytes()], read).unwrap()
}

/// The frames of a run after an event: how many events each holds, and its body.
fn frames(database: &Connection, run: RunId, after: i64) -> Vec<(i64, Vec<u8>)> {
    let sql = "SELECT count, body FROM frame JOIN run ON run.num = frame.run
               WHERE run.id = ?1 AND first > ?2 ORDER BY first";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement
        .query_map(params![run.0.to_be_bytes(), after], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Adds a frame to the journal of a run, with the hashes that belong to it.
fn forge(database: &Connection, run: RunId, body: &[u8], mac: &[u8]) {
    let (num, seq, version, tip) = end(database, run);
    let next = u64::try_from(version).unwrap() + 1;
    let mut link = Link { run, next, tip };
    let raw = wire::raw(body).unwrap();
    let mut chain = Vec::new();
    for event in &raw.events {
        let committed = event.commitment().unwrap();
        chain.extend(Chain::new(&mut link).add(event.kind, raw.at_ms, committed).0);
    }
    let count = i64::try_from(raw.events.len()).unwrap();
    assert_eq!(chain.len(), raw.events.len() * HASH_BYTES);
    let sql = "INSERT INTO frame (run, prev, first, count, chain, mac, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    database.execute(sql, params![num, seq, version + 1, count, chain, mac, body]).unwrap();
    let placed = database.last_insert_rowid();
    let sql = "UPDATE tip SET version = ?1, seq = ?2, frames = frames + 1 WHERE run = ?3";
    database.execute(sql, params![version + count, placed, num]).unwrap();
    let sql = "UPDATE run SET due_at = ?1 WHERE num = ?2";
    database.execute(sql, params![now_ms(), num]).unwrap();
}

/// `audit verify` finds something, and names all of these.
fn is_named(world: &World, words: &[&str]) {
    let output = world.output(&["audit", "verify", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].to_string();
    for word in words {
        assert!(findings.contains(word), "{word}: {findings}");
    }
}

/// No packet is made of a run that is not authentic.
fn is_not_exported(world: &World, run: &str) {
    let output = world.output(&["audit", "export", "--run", run, "--out", "forged.packet"]);
    assert_ne!(output.status.code(), Some(0), "{}", shown(&output));
    assert!(!world.path().join("forged.packet").exists());
}

/// What a run has come to, however it can be told.
fn told(world: &World, run: &str) -> String {
    world.told(&["runs", "show", run, "--json"])
}

#[test]
fn a_forged_approval_with_right_hashes_is_not_acted_on_and_never_sealed() {
    let world = world();
    let (honest, first) = waiting(&world);
    let (run, second) = waiting(&world);
    let server = Server::start(&world, "127.0.0.1:0");
    let database = database(&world);
    let (_, _, asked, _) = end(&database, run_id(&honest));
    server.printed(&world, &["approvals", "approve", &first]);
    world.until("the honest run is done", |world| {
        told(world, &honest).contains(r#""status":"completed""#).then_some(())
    });
    // What the server wrote when the first was approved, in the name of the second.
    let approved = frames(&database, run_id(&honest), asked).remove(0).1;
    assert!(String::from_utf8_lossy(&approved).contains("approval.resolved"));
    let body = renamed(&renamed(&approved, &first, &second), &honest, &run);
    forge(&database, run_id(&run), &body, &[0; 32]);
    let (_, _, _, forged) = end(&database, run_id(&run));
    std::thread::sleep(WHILE);
    let shown = told(&world, &run);
    assert!(shown.contains("run_unreadable"), "{shown}");
    let text: String = database
        .query_row("SELECT group_concat(CAST(body AS TEXT)) FROM frame", [], |row| row.get(0))
        .unwrap();
    assert_eq!(text.matches("PAID").count(), 1, "the forged approval was acted on");
    let mut leaves = database.prepare("SELECT leaves FROM seal").unwrap();
    let leaves = leaves.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let sealed = leaves
        .map(Result::unwrap)
        .any(|leaves| leaves.windows(HASH_BYTES).any(|window| window == forged.0));
    assert!(!sealed, "the forged event is under a seal");
    is_named(&world, &[&run]);
    is_not_exported(&world, &run);
}

#[test]
fn a_forged_letter_approves_nothing() {
    let world = world();
    let (run, approval) = waiting(&world);
    let database = database(&world);
    let body = json!({
        "v": 1, "do": "resolve", "approval": approval, "decision": "approve", "by": "ada",
        "comment": null, "values": {}, "roles": ["approver", "admin"], "constraints": null,
    });
    let sql =
        "INSERT INTO letter (run, key, body, mac) SELECT num, 'a', ?2, ?3 FROM run WHERE id = ?1";
    let values = params![run_id(&run).0.to_be_bytes(), body.to_string().into_bytes(), [0u8; 16]];
    assert_eq!(database.execute(sql, values).unwrap(), 1);
    let sql = "UPDATE run SET due_at = ?1 WHERE id = ?2";
    database.execute(sql, params![now_ms(), run_id(&run).0.to_be_bytes()]).unwrap();
    is_named(&world, &["letter", &run]);
    let _server = Server::start(&world, "127.0.0.1:0");
    // It is put away, not looked at again and again.
    world.until("the letter is put away", |_| {
        let sql = "SELECT count(*) FROM letter WHERE body IS NOT NULL";
        let left: i64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
        (left == 0).then_some(())
    });
    std::thread::sleep(WHILE);
    let shown = told(&world, &run);
    assert!(shown.contains("awaiting_approval") && !shown.contains("PAID"), "{shown}");
}

/// So many steps that a run which has done them has a snapshot.
const LONG: usize = 90;

#[test]
fn a_changed_snapshot_is_left_out_and_the_step_does_what_the_journal_says() {
    let mut document =
        "name: long\nargs: {amount: {type: integer, default: 5}}\nsteps:\n".to_owned();
    for step in 0..LONG {
        let after =
            if step == 0 { String::new() } else { format!(", depends_on: [s{}]", step - 1) };
        document += &format!("  - {{id: s{step}, command: work{after}}}\n");
    }
    document += &format!("  - {{id: sure, depends_on: [s{}], approval: required}}\n", LONG - 1);
    document +=
        "  - {id: pay, agent: shell, command: 'echo paid ${args.amount}', depends_on: [sure]}\n";
    let world = world().file("long.lobsterx.yaml", &document);
    let waits = world.output(&["run", "long.lobsterx.yaml", "--mock", "mock.yaml"]);
    assert_eq!(waits.status.code(), Some(4), "{}", shown(&waits));
    let run = world.newest();
    let database = database(&world);
    let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
    let body = database.query_row("SELECT body FROM snapshot", [], read).unwrap();
    // MessagePack: a text of six bytes, then the number 5.
    let five = b"\xa6amount\x05";
    let at: Vec<usize> =
        (0..body.len() - five.len()).filter(|at| body[*at..].starts_with(five)).collect();
    assert!(!at.is_empty(), "{}", String::from_utf8_lossy(&body));
    let mut forged = body;
    for at in at {
        forged[at + five.len() - 1] = 9;
    }
    assert_eq!(database.execute("UPDATE snapshot SET body = ?1", [forged]).unwrap(), 1);
    is_named(&world, &["snapshot", &run]);
    let server = Server::start(&world, "127.0.0.1:0");
    server.printed(&world, &["approvals", "approve", &world.question()]);
    let done = world.until("the run is done", |world| {
        Some(world.state(&run)).filter(|state| state["status"] == "completed")
    });
    let done = done.to_string();
    assert!(done.contains("paid 5") && !done.contains("paid 9"), "{done}");
}

#[test]
fn a_token_row_that_was_inserted_lets_nobody_in() {
    let world = world();
    let server = Server::start(&world, "127.0.0.1:0");
    let secret = format!("{}A", &server.token[..server.token.len() - 1]);
    let secret = if secret == server.token { secret.replace('A', "B") } else { secret };
    let database = database(&world);
    let sql = "SELECT body, mac FROM registry WHERE kind = 'token' AND body IS NOT NULL";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (body, mac): (String, Vec<u8>) = database.query_row(sql, [], read).unwrap();
    let mut token: Value = serde_json::from_str(&body).unwrap();
    token["sha256"] = hash(&secret).into();
    let sql = "INSERT INTO registry (kind, name, epoch, body, mac)
               SELECT 'token', 'tok_eve', count + 1, ?1, ?2 FROM counter WHERE name = 'registry'";
    database.execute(sql, params![token.to_string(), mac]).unwrap();
    sql_newer(&database);
    let list = |server: &Server, token: &str| {
        server.output_with(&world, token, &["runs", "list", "--json"]).status.code()
    };
    std::thread::sleep(WHILE);
    assert_ne!(list(&server, &secret), Some(0), "a running server believed it");
    assert_eq!(list(&server, &server.token), Some(0));
    server.kill();
    let server = Server::start(&world, "127.0.0.1:0");
    assert_ne!(list(&server, &secret), Some(0), "a new server believed it");
    assert_eq!(list(&server, &server.token), Some(0));
    is_named(&world, &["token/tok_eve"]);
}

fn sql_newer(database: &Connection) {
    let sql = "UPDATE counter SET count = count + 1 WHERE name = 'registry'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
}

/// Starts a run and shows that its step is not dispatched.
fn nothing_is_dispatched(world: &World) {
    let running = world.start(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    std::thread::sleep(WHILE);
    let shown = told(world, &world.newest());
    assert!(!shown.contains("PAID") && !shown.contains(r#""status":"completed""#), "{shown}");
    drop(running);
}

#[test]
fn a_policy_changed_in_place_stops_everything_until_it_is_written_again() {
    let policy = "permit (principal, action, resource);\n\
                  forbid (principal, action == Action::\"change_config\", resource)\n\
                  when { resource == Row::\"agent/eve\" };\n";
    let world = world();
    std::fs::create_dir(world.path().join("rules")).unwrap();
    let world = world.file("rules/own.cedar", policy).file("config.yaml", "policy_dir: rules\n");
    world.printed(&["apply", "-f", "config.yaml"]);
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    sql(
        &world,
        "UPDATE registry SET body = replace(body, 'agent/eve', 'agent/bob')
                 WHERE kind = 'policy'",
    );
    is_named(&world, &["registry", "policy/"]);
    nothing_is_dispatched(&world);
    let refused = world.told(&["agents", "set", "eve", "trust_level=3"]);
    assert!(refused.contains("error[store_not_authentic]"), "{refused}");
    world.printed(&["apply", "-f", "config.yaml"]);
    world.printed(&["agents", "set", "bob", "trust_level=3"]);
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
}

#[test]
fn a_budget_changed_in_place_stops_everything() {
    let world = world();
    let all = ["scope=global", "period=monthly", "amount_cents=1000"];
    world.printed(&["budgets", "set", "all", all[0], all[1], all[2]]);
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    sql(
        &world,
        "UPDATE registry SET body = replace(body, '1000', '99999999')
                 WHERE kind = 'envelope'",
    );
    is_named(&world, &["envelope/all"]);
    nothing_is_dispatched(&world);
}

#[test]
fn a_store_without_its_macs_is_refused() {
    let world = world();
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    sql(&world, "DELETE FROM authentic; UPDATE frame SET mac = x''; UPDATE entry SET mac = x'';
                 UPDATE registry SET mac = x''; UPDATE letter SET mac = x''; UPDATE key SET mac = x''");
    for command in [&["runs", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let told = world.told(command);
        assert!(told.contains("error[store_not_authentic]"), "{command:?}: {told}");
    }
}

#[test]
fn a_schema_that_was_turned_back_is_refused() {
    let world = world();
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    sql(
        &world,
        "DROP TABLE authentic; ALTER TABLE frame DROP COLUMN mac;
                 ALTER TABLE snapshot DROP COLUMN mac; ALTER TABLE entry DROP COLUMN mac;
                 ALTER TABLE registry DROP COLUMN mac; ALTER TABLE letter DROP COLUMN mac;
                 ALTER TABLE key DROP COLUMN mac; ALTER TABLE slot DROP COLUMN mac;
                 ALTER TABLE memo DROP COLUMN mac; DELETE FROM migration WHERE number = 9;
                 PRAGMA user_version = 8",
    );
    let told = world.told(&["runs", "list"]);
    assert!(told.contains("error[store_not_authentic]"), "{told}");
}

#[test]
fn a_frame_of_another_run_is_not_one_of_this_run() {
    let world = world();
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    let run = world.newest();
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    let set = |column: &str| {
        format!(
            "UPDATE frame SET {column} = (SELECT other.{column} FROM frame AS other
             WHERE other.run <> frame.run AND other.first = frame.first) WHERE first = 1;"
        )
    };
    sql(&world, &["body", "chain", "mac"].map(set).concat());
    let shown = told(&world, &run);
    assert!(shown.contains("run_unreadable"), "{shown}");
    is_named(&world, &[&run]);
    is_not_exported(&world, &run);
}

/// Adds an entry of `mallory` to the audit, with the hashes that belong to it. Returns its own.
fn forge_entry(world: &World) -> [u8; 32] {
    let database = database(world);
    let sql = "SELECT writer, seq, hash, mac, text FROM entry ORDER BY place DESC LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    };
    let (writer, seq, prev, mac, text): (Vec<u8>, i64, [u8; 32], Vec<u8>, String) =
        database.query_row(sql, [], read).unwrap();
    let mut entry: Value = serde_json::from_str(&text).unwrap();
    entry["actor"] = "mallory".into();
    entry["seq"] = (seq + 1).into();
    entry["prev"] = Hash(prev).to_string().into();
    let text = sluice_core::canonical::to_string(&entry);
    let hash = sluice_core::evidence::entry::hash(&text).0;
    let sql = "INSERT INTO entry (writer, seq, hash, mac, text) VALUES (?1, ?2, ?3, ?4, ?5)";
    database.execute(sql, params![writer, seq + 1, hash, mac, text]).unwrap();
    hash
}

#[test]
fn a_forged_audit_entry_is_not_shown() {
    let world = world();
    world.printed(&["agents", "set", "scribe", "trust_level=3"]);
    forge_entry(&world);
    let told = world.told(&["audit", "tail", "--json"]);
    assert!(told.contains("scribe") && !told.contains("mallory"), "{told}");
    is_named(&world, &["seq"]);
}

/// What the API answers about the entries of `mallory`.
fn served_audit(server: &Server) -> String {
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let request = format!(
        "GET /api/v1/audit?actor=mallory HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Bearer {}\r\n\r\n",
        server.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_forged_audit_entry_is_not_served_or_sealed() {
    let world = world();
    let server = Server::start(&world, "127.0.0.1:0");
    server.printed(&world, &["agents", "set", "scribe", "trust_level=3"]);
    let forged = forge_entry(&world);
    // The end of a run is sealed, with every entry that is not sealed yet.
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    std::thread::sleep(WHILE);
    let told = served_audit(&server);
    assert!(told.starts_with("HTTP/1.1 200") && !told.contains("mallory"), "{told}");
    let database = database(&world);
    let mut leaves = database.prepare("SELECT leaves FROM seal").unwrap();
    let leaves = leaves.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let leaves: Vec<Vec<u8>> = leaves.map(Result::unwrap).collect();
    assert!(!leaves.is_empty(), "nothing was sealed");
    let is_sealed = |leaves: &Vec<u8>| leaves.windows(HASH_BYTES).any(|one| one == forged);
    assert!(!leaves.iter().any(is_sealed), "the forged entry is under a seal");
    is_named(&world, &["seq"]);
}

#[test]
fn a_store_whose_key_is_lost_is_refused_until_it_is_adopted() {
    let world = world();
    world.printed(&["run", "plain.lobsterx.yaml", "--mock", "mock.yaml"]);
    let run = world.newest();
    std::fs::remove_file(world.path().join(".sluice/seal.key")).unwrap();
    let refused = world.told(&["agents", "set", "scribe", "trust_level=3"]);
    assert!(refused.contains("error[seal_unusable]"), "{refused}");
    assert!(!world.path().join(".sluice/seal.key").exists(), "a new key hides what is missing");
    world.printed(&["audit", "adopt"]);
    world.printed(&["agents", "set", "scribe", "trust_level=3"]);
    assert!(told(&world, &run).contains(r#""status":"completed""#));
    assert!(world.printed(&["audit", "tail", "--json"]).contains("store_adopted"));
}
