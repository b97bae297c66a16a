//! Tampering: the store changed by another hand, with the server stopped and with it
//! running. `audit verify` finds every change and names its place, or the store is refused.
//!
//! Attacks are made from the schema: a new table or column is attacked without a change
//! here. What need not be found is listed in `left_out`, with the reason.

mod act;
mod fixture;
mod left_out;
mod live;
mod outcome;
mod postgres;
mod rows;
mod sqlite;
mod tally;

use super::full;
use crate::world::World;
use act::{Attack, Form};
use fixture::Fixture;
use outcome::{Outcome, ids, is_clean, judge, verify};
use std::sync::atomic::{AtomicUsize, Ordering};
use tally::Tally;

fn of_directory() -> Fixture {
    Fixture::new(World::new(), |world| sqlite::tables(&sqlite::open(world)))
}

fn of_database() -> Fixture {
    let url = crate::migrate::database();
    let database = postgres::name(&url);
    let world = World::new().file("sluice.toml", "database_url = \"file:url\"\n").file("url", &url);
    Fixture::new(world, move |_| postgres::tables(&database))
}

#[test]
fn every_change_of_a_stopped_directory_is_found_or_refused() {
    let fixture = of_directory();
    is_clean(&fixture.world);
    let form = if full() { Form::Full } else { Form::Short };
    let tally = Tally::of(&fixture.attacks(form), || {
        let (fixture, world) = (&fixture, fixture.copy());
        move |attack: &Attack| {
            sqlite::restore(&fixture.world, &world);
            let before = fixture.before.iter().find(|table| table.name == attack.table);
            let replaced = sqlite::tamper(&mut sqlite::open(&world), &attack.table, |table| {
                let replaced = attack.replaced(table, before)?;
                Some((ids(table, &replaced), replaced))
            });
            match replaced {
                Some(ids) => judge(attack, &ids, &verify(&world)),
                None => Outcome::Impossible,
            }
        }
    });
    tally.check("SQLite, stopped", form);
}

#[test]
fn every_change_of_a_database_without_a_node_is_found_or_refused() {
    let fixture = of_database();
    is_clean(&fixture.world);
    let url = std::fs::read_to_string(fixture.world.path().join("url")).unwrap();
    let (name, copies) = (postgres::name(&url), AtomicUsize::new(0));
    let form = if full() { Form::Full } else { Form::Columns };
    let tally = Tally::of(&fixture.attacks(form), || {
        let copy = postgres::Database::copy(&name, copies.fetch_add(1, Ordering::Relaxed));
        let world = fixture.copy().file("url", &url.replace(&name, &copy.0));
        let mut copy = postgres::Restored::new(copy, &fixture.now);
        let fixture = &fixture;
        move |attack: &Attack| {
            let Some((table, replaced)) = fixture.replaced(attack) else {
                return Outcome::Impossible;
            };
            match copy.replace(table, &replaced) {
                Ok(()) => judge(attack, &ids(table, &replaced), &verify(&world)),
                Err(_) => Outcome::Impossible,
            }
        }
    });
    tally.check("PostgreSQL, stopped", form);
}
