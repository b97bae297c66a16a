//! A data directory on a read-only file system: evidence that was put away can be
//! looked at and verified.

use crate::server::Server;
use crate::world::{Running, World, shown};
use std::path::PathBuf;
use std::process::{Command, Output};

const FLOW: &str = "name: flow\nsteps: [{id: one, command: one}]\n";
const RUN: [&str; 4] = ["run", "flow.lobsterx.yaml", "--mock", "mock.yaml"];
/// Binds the data directory onto itself, for this process and read-only, and goes on as
/// the command.
const MOUNTED: &str = "mount --bind .sluice .sluice && mount -o remount,bind,ro .sluice && \
                       ! touch .sluice/probe 2>/dev/null && exec \"$@\"";

fn world() -> World {
    let world = World::new().file("flow.lobsterx.yaml", FLOW).file("mock.yaml", "'*': {text: x}\n");
    world.printed(&RUN);
    world
}

/// Runs a command that sees the data directory on a read-only mount.
fn mounted(world: &World, args: &[&str]) -> Output {
    let command = world.command(args);
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.args(["sh", "-c", MOUNTED, "sh"]);
    unshare.arg(command.get_program()).args(command.get_args());
    unshare.current_dir(world.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    let output = Running::spawn(unshare).output();
    let told = shown(&output);
    assert!(!told.contains("unshare:") && !told.contains("mount:"), "no read-only mount: {told}");
    output
}

/// What a command prints, which must succeed.
fn printed(world: &World, args: &[&str]) -> String {
    let output = mounted(world, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Every file of the data directory with its bytes.
fn files(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![world.path().join(".sluice")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                found.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn side_file(world: &World, name: &str) -> PathBuf {
    world.path().join(".sluice").join(name)
}

#[test]
fn everything_that_only_looks_works_on_a_read_only_mount() {
    let world = world();
    world.printed(&["tokens", "create", "vera", "--role", "viewer"]);
    let run = world.newest();
    assert!(!side_file(&world, "sluice.db-wal").exists(), "the last process folds its log in");
    let before = files(&world);
    for look in [
        &["audit", "verify"][..],
        &["audit", "verify", "--run", &run],
        &["audit", "tail", "--json"],
        &["runs", "list", "--json"],
        &["runs", "show", &run, "--json"],
        &["runs", "logs", &run],
        &["runs", "export", &run],
        &["tokens", "list", "--json"],
        &["agents", "list", "--json"],
        &["approvals", "list", "--json"],
        &["cost", "--json"],
        &["schedules", "list", "--json"],
    ] {
        let told = printed(&world, look);
        assert_eq!(files(&world), before, "{look:?} wrote something");
        let own = world.printed(look);
        assert_eq!(told, own, "{look:?}");
        assert!(!side_file(&world, "sluice.db-wal").exists());
        // A command on a directory that can be written takes part in its work.
        let (mine, theirs) = (files(&world).len(), before.len());
        assert_eq!(mine, theirs, "{look:?}");
        restore(&before);
    }
    printed(&world, &["audit", "export", "--run", &run, "--out", "run.packet"]);
    world.printed(&["audit", "verify", "--packet", "run.packet"]);
    let doctor = printed(&world, &["doctor"]);
    assert!(doctor.contains("is on a read-only file system"), "{doctor}");
    assert!(doctor.contains("whole, with schema"), "{doctor}");
    printed(&world, &["backup", "copy.db"]);
    assert_eq!(files(&world), before);
}

/// Puts files back as they were.
fn restore(files: &[(PathBuf, Vec<u8>)]) {
    for (path, bytes) in files {
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn what_is_only_in_the_log_is_seen_on_a_read_only_mount() {
    let world = world();
    let server = Server::start(&world, "127.0.0.1:0");
    let put = ["workflows", "put", "flow.lobsterx.yaml"];
    server.printed(&world, &put);
    server.printed(&world, &["workflows", "start", "flow"]);
    let run = server.json(&world, &["runs", "list", "--json"])["data"][0]["run_id"].clone();
    let run = run.as_str().unwrap();
    // While the server works, its log is shared.
    assert!(printed(&world, &["runs", "list", "--json"]).contains(run));
    // A log that was not folded in when its process died.
    let live = side_file(&world, "sluice.db-wal");
    server.kill();
    let left = std::fs::metadata(&live).unwrap().len();
    assert!(left > 0, "the server folded its log in");
    assert!(printed(&world, &["runs", "list", "--json"]).contains(run));
    printed(&world, &["audit", "verify"]);
    // The same on a medium to which only the database and its log were copied.
    std::fs::remove_file(side_file(&world, "sluice.db-shm")).unwrap();
    let before = files(&world);
    assert!(printed(&world, &["runs", "list", "--json"]).contains(run));
    assert!(printed(&world, &["audit", "tail", "--json"]).contains(run));
    printed(&world, &["audit", "verify"]);
    assert!(printed(&world, &["doctor"]).contains("whole, with schema"));
    assert_eq!(files(&world), before, "something was written");
}

#[test]
fn nothing_is_run_or_changed_on_a_read_only_mount() {
    let world = world();
    let before = files(&world);
    for change in [
        &RUN[..],
        &["agents", "set", "scribe", "trust_level=3"],
        &["tokens", "create", "eve", "--role", "admin"],
        &["audit", "seal"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let told = shown(&mounted(&world, change));
        assert!(told.contains("error[data_unusable]"), "{change:?}: {told}");
        assert!(told.contains("is read-only") && told.ends_with("exit 2\n"), "{change:?}: {told}");
    }
    assert_eq!(files(&world), before);
}
