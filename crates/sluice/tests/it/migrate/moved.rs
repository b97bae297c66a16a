//! What was under way before a move ends after it.

use super::{database, migrate, world};
use crate::world::{PATIENCE, Running, World, shown};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A node on the database. Dropping it kills it.
struct Node(Child);

impl Node {
    fn start(mut command: Command) -> Node {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("sluice serves at "), "{line}");
        Node(child)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn json(world: &World, url: &str, args: &[&str]) -> Value {
    let all: Vec<&str> = args.iter().copied().chain(["--database-url", url, "--json"]).collect();
    let text = world.printed(&all);
    text.lines().next().map_or(Value::Null, |line| serde_json::from_str(line).unwrap())
}

/// A run that waits for an approval, one whose process was killed with its money
/// reserved, a schedule, and a second organisation.
fn under_way() -> World {
    let world = world();
    let asked =
        world.output(&["run", "asks", "--mock", "mock.yaml", "--agent", "worker", "--json"]);
    assert_eq!(asked.status.code(), Some(4), "{}", shown(&asked));
    let running = world.start(&["run", "spends", "--mock", "stuck.yaml", "--agent", "worker"]);
    world.until_step("spend", "running");
    running.signal(rustix::process::Signal::KILL);
    running.output();
    world.printed(&["organisations", "add", "acme"]);
    world
}

/// Everything is as it was, and ends.
fn goes_on(world: &World, url: &str) {
    let budget = &json(world, url, &["budgets", "list"])["data"][0];
    assert_eq!(budget["id"], "purse", "{budget}");
    assert_ne!(budget["reserved"], "0.00", "money is reserved for what was under way: {budget}");
    let organisations = json(world, url, &["organisations", "list"]);
    assert_eq!(organisations["data"][1]["name"], "acme", "{organisations}");
    let schedule = json(world, url, &["schedules", "show", "often"]);
    assert_eq!(schedule["id"], "often", "{schedule}");
    let args = ["serve", "--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--database-url", url];
    let node = Node::start(world.command(&args));
    let approvals = json(world, url, &["approvals", "list"]);
    let question = approvals["data"][0]["approval_id"].as_str().unwrap().to_owned();
    world.printed(&["approvals", "approve", &question, "--database-url", url]);
    let began = Instant::now();
    loop {
        let runs = json(world, url, &["runs", "list"]);
        let runs = runs["data"].as_array().unwrap().iter();
        let (scheduled, moved): (Vec<_>, Vec<_>) = runs.partition(|run| run["workflow"] == "quick");
        let has_ended = |run: &&Value| run["status"] == "completed";
        if moved.iter().all(has_ended) && scheduled.iter().any(has_ended) {
            assert_eq!(moved.len(), 3, "{moved:?}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{moved:?} {scheduled:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // One run before the move and one over it, at two cents each.
    let budget = &json(world, url, &["budgets", "list"])["data"][0];
    assert_eq!(
        (&budget["spent"], &budget["reserved"]),
        (&"0.04".into(), &"0.00".into()),
        "{budget}"
    );
    let audit = json(world, url, &["audit", "verify"]);
    assert_eq!(audit["ok"], true, "{audit}");
    drop(node);
}

#[test]
fn runs_that_were_under_way_end_on_the_database_and_the_money_is_exact() {
    let (world, url) = (under_way(), database());
    let told = migrate(&world, &url);
    assert!(told.ends_with("exit 0\n"), "{told}");
    assert!(told.contains("3 runs come to the same"), "{told}");
    assert!(told.contains("acme: "), "{told}");
    goes_on(&world, &url);
}

#[test]
fn a_move_that_is_killed_again_and_again_ends_when_it_is_let() {
    let (world, url) = (under_way(), database());
    let mut killed = 0;
    for wait_ms in [20, 60, 120, 200, 300] {
        let args = ["migrate", "--from", "sqlite:.sluice", "--to", &url];
        let running = Running::spawn(world.command(&args));
        std::thread::sleep(Duration::from_millis(wait_ms));
        running.signal(rustix::process::Signal::KILL);
        killed += usize::from(running.output().status.code().is_none());
        if !world.path().join(".sluice/sluice.db").exists() {
            break;
        }
    }
    assert!(killed > 0, "it was never killed");
    if world.path().join(".sluice/sluice.db").exists() {
        let told = migrate(&world, &url);
        assert!(told.ends_with("exit 0\n"), "{told}");
    }
    goes_on(&world, &url);
}
