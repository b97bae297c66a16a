//! Who can read what Sluice writes, and how long workspaces stay.

use crate::server::Server;
use crate::world::World;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const FLOW: &str = "name: flow
steps:
  - {id: a, agent: shell, command: 'echo hello > kept.txt'}
";
const WAITS: &str = "name: waits
steps:
  - {id: a, agent: shell, command: 'echo hello > kept.txt'}
  - {id: ask, depends_on: [a], approval: {required: true}}
";

fn world() -> World {
    let world = World::new().file("flow.lobsterx.yaml", FLOW).file("waits.lobsterx.yaml", WAITS);
    world.file("mock.yaml", "'*': {text: Done.}\n")
}

/// Everything in a directory that others than its owner can read or write. What
/// commands make in their workspace is theirs to say.
fn open_to_others(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            found.push(format!("{} {mode:o}", entry.path().display()));
        }
        let workspace = dir.file_name().is_some_and(|name| name == "workspaces");
        if metadata.is_dir() && !workspace {
            open_to_others(&entry.path(), found);
        }
    }
}

#[test]
fn files_are_for_their_owner_alone_also_in_a_directory_that_others_can_read() {
    let world = world();
    let dir = world.path().join(".sluice");
    // As a package makes it.
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let args = ["--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--shell", "--data", ".sluice"];
    let server = Server::with(&world, &args);
    world.printed(&["organisations", "add", "acme", "--data", ".sluice"]);
    server.printed(&world, &["workflows", "put", "flow.lobsterx.yaml"]);
    server.printed(&world, &["workflows", "start", "flow"]);
    let mut found = Vec::new();
    open_to_others(&dir, &mut found);
    assert_eq!(found, Vec::<String>::new());
    server.kill();

    // A database that an earlier version made is narrowed when it is opened.
    let db = dir.join("sluice.db");
    std::fs::set_permissions(&db, std::fs::Permissions::from_mode(0o644)).unwrap();
    world.printed(&["runs", "list", "--data", ".sluice"]);
    assert_eq!(std::fs::metadata(&db).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_workspace_goes_some_time_after_its_run_has_ended_and_not_before() {
    let world = world().file("sluice.toml", "[workspaces]\nkeep = \"1s\"\n");
    let args = ["--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--shell", "--data", ".sluice"];
    let server = Server::with(&world, &args);
    for name in ["waits", "flow"] {
        server.printed(&world, &["workflows", "put", &format!("{name}.lobsterx.yaml")]);
    }
    let start = |name| {
        let start = ["workflows", "start", name, "--detach", "--json"];
        let run = server.json(&world, &start)["run_id"].as_str().unwrap().to_owned();
        world.path().join(".sluice/workspaces").join(run)
    };
    let waits = start("waits");
    world.until("the step is done", |_| waits.join("kept.txt").exists().then_some(()));
    let flow = start("flow");
    world.until("the step was done", |_| flow.exists().then_some(()));
    world.until("the workspace is gone", |_| (!flow.exists()).then_some(()));
    assert!(waits.join("kept.txt").exists(), "the run still needs its files");
    server.kill();
    // One that a crash left behind is removed by the next process.
    let run = "run_018bcfe568007fffbfffffffffffffff";
    let left = world.path().join(".sluice/workspaces").join(run);
    std::fs::create_dir(&left).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    std::fs::File::open(&left).unwrap().set_modified(old).unwrap();
    let _server = Server::with(&world, &args);
    world.until("it is gone", |_| (!left.exists()).then_some(()));
    assert!(waits.join("kept.txt").exists());
}
