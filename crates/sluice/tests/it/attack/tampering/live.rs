//! The same attacks while a server works on the store.

use super::act::{Act, Attack, Form};
use super::fixture::{Fixture, SEALS};
use super::outcome::{Outcome, ids, judge, verify};
use super::rows::{Row, Table};
use super::tally::Tally;
use super::{full, left_out, of_database, of_directory, postgres, sqlite};
use crate::server::Server;
use crate::world::{World, shown};
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many verifications of a store on which a server works.
const LOOKS: usize = 5;

/// The tables that the short form attacks under a node of a database.
const DECISIVE: [&str; 6] = ["authentic", "counter", "entry", "frame", "registry", "run"];

/// Everything in the full form; else one attack on each table that is not left out.
fn chosen(fixture: &Fixture) -> (Form, Vec<Attack>) {
    if full() {
        return (Form::Full, fixture.attacks(Form::Full));
    }
    let mut chosen: Vec<Attack> = Vec::new();
    let mut all = fixture.attacks(Form::Short);
    all.retain(|attack| left_out::of(attack).is_none());
    // Deleted where that is found, else changed.
    all.sort_by_key(|attack| !matches!(attack.act, Act::Delete { .. }));
    for attack in all {
        if chosen.iter().all(|other| other.table != attack.table) {
            chosen.push(attack);
        }
    }
    (Form::Short, chosen)
}

/// What a verification says through the directory or the database, and for some attacks
/// also what one through the server says.
fn found(
    server: &Server,
    world: &World,
    attack: &Attack,
    ids: &[String],
    is_asked: bool,
) -> Outcome {
    let outcome = judge(attack, ids, &verify(world));
    if !is_asked || outcome != Outcome::Found {
        return outcome;
    }
    let args = ["audit", "verify", "--seal", SEALS, "--json"];
    match judge(attack, ids, &server.output(world, &args)) {
        Outcome::Missed(why) => Outcome::Missed(format!("through the server: {why}")),
        outcome => outcome,
    }
}

/// A server claims a run whose row is an earlier one, finds in the journal what it has
/// come to, and writes the row again. It adds a seal, and where the one before ended does
/// not matter any more. Then there is nothing left to find.
fn unless_mended(outcome: Outcome, world: &World, table: &Table, new: &[Row]) -> Outcome {
    let is_gone = match table.name.as_str() {
        "run" => new.iter().any(|row| table.same(row) != Some(row)),
        "seal" => !new.is_empty() && table.rows.last() != new.last(),
        _ => false,
    };
    let is_missed = matches!(outcome, Outcome::Missed(_));
    if is_missed && is_gone && verify(world).status.success() {
        return Outcome::Mended;
    }
    outcome
}

#[test]
fn every_change_under_a_server_is_found_or_refused() {
    let fixture = of_directory();
    let (form, attacks) = chosen(&fixture);
    let made = AtomicUsize::new(0);
    let tally = Tally::of(&attacks, || {
        |attack: &Attack| {
            let world = fixture.copy();
            let server = Server::start(&world, "127.0.0.1:0");
            server.printed(&world, &["workflows", "start", "talk"]);
            let before = fixture.before.iter().find(|table| table.name == attack.table);
            let mut database = sqlite::open(&world);
            let replaced = sqlite::tamper(&mut database, &attack.table, |table| {
                let replaced = attack.replaced(table, before)?;
                Some(((ids(table, &replaced), replaced.1.clone()), replaced))
            });
            let Some((ids, new)) = replaced else { return Outcome::Impossible };
            let is_asked = made.fetch_add(1, Ordering::Relaxed).is_multiple_of(4);
            let outcome = found(&server, &world, attack, &ids, is_asked);
            unless_mended(outcome, &world, &sqlite::table(&database, &attack.table), &new)
        }
    });
    tally.check("SQLite, served", form);
}

#[test]
fn every_change_of_a_database_under_a_node_is_found_or_refused() {
    let fixture = of_database();
    let url = std::fs::read_to_string(fixture.world.path().join("url")).unwrap();
    let (name, copies) = (postgres::name(&url), AtomicUsize::new(1000));
    let (form, mut attacks) = chosen(&fixture);
    if form == Form::Short {
        // Each needs a database and a node of its own.
        attacks.retain(|attack| DECISIVE.contains(&attack.table.as_str()));
    }
    let tally = Tally::of(&attacks, || {
        |attack: &Attack| {
            let number = copies.fetch_add(1, Ordering::Relaxed);
            let database = postgres::Database::copy(&name, number);
            let world = fixture.copy().file("url", &url.replace(&name, &database.0));
            let server = Server::start(&world, "127.0.0.1:0");
            server.printed(&world, &["workflows", "start", "talk"]);
            let before = fixture.before.iter().find(|table| table.name == attack.table);
            let tables = postgres::tables(&database.0);
            let table = tables.iter().find(|table| table.name == attack.table).unwrap();
            let Some(replaced) = attack.replaced(table, before) else {
                return Outcome::Impossible;
            };
            if database.replace(table, &replaced).is_err() {
                return Outcome::Impossible;
            }
            let ids = ids(table, &replaced);
            let outcome = found(&server, &world, attack, &ids, number.is_multiple_of(4));
            let tables = postgres::tables(&database.0);
            let table = tables.iter().find(|table| table.name == attack.table).unwrap();
            unless_mended(outcome, &world, table, &replaced.1)
        }
    });
    tally.check("PostgreSQL, served", form);
}

/// A server that works is not accused of anything.
fn stays_clean(world: &World) {
    let server = Server::start(world, "127.0.0.1:0");
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            for _ in 0..2 * LOOKS {
                server.printed(world, &["workflows", "start", "talk"]);
                server.printed(world, &["agents", "set", "worker", "trust_level=5"]);
                server.printed(world, &["agents", "set", "worker", "trust_level=6"]);
            }
        });
        for _ in 0..LOOKS {
            let output = verify(world);
            assert_eq!(output.status.code(), Some(0), "while it works: {}", shown(&output));
            let args = ["audit", "verify", "--seal", SEALS, "--json"];
            let output = server.output(world, &args);
            assert_eq!(output.status.code(), Some(0), "through the server: {}", shown(&output));
        }
        working.join().unwrap();
    });
}

#[test]
fn a_server_at_work_is_not_accused_of_anything() {
    stays_clean(&of_directory().world);
}

#[test]
fn a_node_at_work_on_a_database_is_not_accused_of_anything() {
    stays_clean(&of_database().world);
}
