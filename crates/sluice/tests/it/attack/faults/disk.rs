//! A disk that is full, and a database that is damaged.

use super::http::{ready, start};
use crate::server::Server;
use crate::stop::{Stuck, file, lives, step_process};
use crate::world::{World, shown};
use rustix::process::Signal;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const NAP: &str = "name: nap\nversion: 1\nsteps: [{id: nap, agent: shell, command: 'echo $$ > \
                   ${args.file}; sleep 60'}]\nargs: {file: string}\n";
const HELLO: &str = "name: hello\nsteps: [{id: a, command: Say hello.}]\n";
/// Sooner than this a command has to be gone, in seconds.
const SOON: f64 = 8.0;

fn world() -> World {
    let world = World::new().file("nap.lobsterx.yaml", NAP).file("hello.lobsterx.yaml", HELLO);
    let world = world.file("mock.yaml", "'*': {text: Done.}\n");
    world.file("sluice.toml", "lease_ms = 600000\n[limits]\ndrain_ms = 1000\n")
}

/// A server on which a run is in flight, and the process of its step.
fn busy_server(world: &World) -> (Stuck, rustix::process::Pid) {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--shell", "--data", ".sluice"];
    let server = Stuck::start(world, &serve);
    let api = server.api(world);
    let token = std::fs::read_to_string(world.path().join(".sluice/admin.token")).unwrap();
    let file = file(world);
    for args in [
        &["workflows", "put", "nap.lobsterx.yaml", "--url", &api][..],
        &["workflows", "start", "nap", "--detach", "--arg", &file, "--url", &api],
    ] {
        let done = world.command(args).env("SLUICE_TOKEN", token.trim()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let step = step_process(world);
    (server, step)
}

#[test]
fn the_first_signal_ends_a_run_on_a_full_disk() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let world = world();
        let args = ["run", "nap.lobsterx.yaml", "--arg", &file(&world)];
        let mut running = Stuck::start(&world, &args);
        let step = step_process(&world);
        running.fill_disk();
        running.signal(signal);
        let (ended, seconds) = running.end();
        assert_eq!(ended, Some(code), "{}", running.told());
        assert!(seconds < SOON, "it took {seconds} s: {}", running.told());
        assert!(running.told().contains("`sluice resume run_"), "{}", running.told());
        world.until("the step's process is gone", |_| (!lives(step)).then_some(()));
    }
}

#[test]
fn the_first_signal_ends_a_server_on_a_full_disk() {
    let world = world();
    let (mut server, step) = busy_server(&world);
    server.fill_disk();
    server.signal(Signal::TERM);
    let (ended, seconds) = server.end();
    assert_eq!(ended, Some(143), "{}", server.told());
    assert!(seconds < SOON, "it took {seconds} s: {}", server.told());
    assert!(server.told().contains("could not be released"), "{}", server.told());
    world.until("the step's process is gone", |_| (!lives(step)).then_some(()));
}

#[test]
fn a_server_with_a_run_in_flight_still_leaves_in_order() {
    let world = world();
    let (mut server, step) = busy_server(&world);
    server.signal(Signal::TERM);
    assert_eq!(server.end().0, Some(0), "{}", server.told());
    world.until("the step's process is gone", |_| (!lives(step)).then_some(()));
}

#[test]
fn a_server_on_a_full_disk_is_not_ready() {
    let world = world();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--data", ".sluice"];
    let server = Stuck::start(&world, &serve);
    let api = server.api(&world);
    let address = api.strip_prefix("http://").unwrap();
    let token = std::fs::read_to_string(world.path().join(".sluice/admin.token")).unwrap();
    let put = ["workflows", "put", "hello.lobsterx.yaml", "--url", &api];
    let put = world.command(&put).env("SLUICE_TOKEN", token.trim()).output().unwrap();
    assert!(put.status.success());
    assert_eq!(ready(address).status, 200);
    server.fill_disk();
    let refused = start(address, token.trim(), "hello");
    assert_eq!(refused.status, 503, "{}", refused.text);
    // What was found a moment ago may still be answered.
    let not = world.until("it is not ready", |_| Some(ready(address)).filter(|a| a.status == 503));
    assert!(not.text.contains("store_unavailable"), "{}", not.text);
    assert!(not.text.contains("detail"), "{}", not.text);
}

/// Writes over a page in the middle of an answer of many `x`: it begins with the number
/// of the next page.
fn damage(database: &Path) {
    let bytes = std::fs::read(database).unwrap();
    let is_answer = |page: &[u8]| page[4..].iter().all(|byte| *byte == b'x');
    let page = bytes.chunks_exact(4096).position(is_answer).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(database).unwrap();
    file.write_all_at(&[0xa5; 40], u64::try_from(page * 4096).unwrap()).unwrap();
}

#[test]
fn a_server_on_a_damaged_database_is_not_ready() {
    let world = world().file("long.yaml", &format!("'*': {{text: '{}'}}\n", "x".repeat(300_000)));
    world.printed(&["run", "hello.lobsterx.yaml", "--mock", "long.yaml"]);
    damage(&world.path().join(".sluice/sluice.db"));
    let serve = ["--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--data", ".sluice"];
    let server = Server::with(&world, &serve);
    let not = ready(server.address());
    assert_eq!(not.status, 503, "{}", not.text);
    assert!(not.text.contains("the database is damaged"), "{}", not.text);
}

#[test]
fn a_damaged_page_is_a_finding_and_the_rest_is_still_verified() {
    let world = world().file("long.yaml", &format!("'*': {{text: '{}'}}\n", "x".repeat(30_000)));
    for _ in 0..3 {
        world.printed(&["run", "hello.lobsterx.yaml", "--mock", "mock.yaml"]);
    }
    world.printed(&["run", "hello.lobsterx.yaml", "--mock", "long.yaml"]);
    let damaged = world.newest();
    for _ in 0..3 {
        world.printed(&["run", "hello.lobsterx.yaml", "--mock", "mock.yaml"]);
    }
    damage(&world.path().join(".sluice/sluice.db"));
    let verified = world.output(&["audit", "verify", "--json"]);
    assert_eq!(verified.status.code(), Some(1), "{}", shown(&verified));
    let report: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of_run = |one: &&serde_json::Value| one["place"]["run_id"] == damaged.as_str();
    assert!(findings.iter().any(|one| of_run(&one)), "{report}");
    let mut others = findings.iter().filter(|one| one["place"]["run_id"].is_string());
    assert!(others.all(|one| of_run(&one)), "{report}");
    assert_eq!((&report["runs"], &report["runs_whole"]), (&7.into(), &6.into()), "{report}");
}
