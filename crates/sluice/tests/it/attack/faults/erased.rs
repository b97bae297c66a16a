//! What was erased, looked for in every file of the data directory.

use crate::attack::full;
use crate::server::Server;
use crate::world::World;
use std::path::{Path, PathBuf};

const MARK: &str = "PAYLOAD-7f3a9c";
const FLOW: &str = "name: flow
args: {secret: string}
steps:
  - {id: a, command: 'Think of ${args.secret}.'}
  - {id: b, agent: shell, command: 'tee kept.txt', stdin: $a.stdout, depends_on: [a]}
  - {id: c, command: 'Say ${b.stdout}.', depends_on: [b]}
  - {id: d, agent: shell, command: 'echo \"$SEEN\"', env: {SEEN: '${args.secret}'}}
  - {id: e, workflow_ref: inner, args: {secret: '${args.secret}'}}
";
/// A run of its own, which is erased apart.
const INNER: &str = "name: inner
args: {secret: string}
steps:
  - {id: a, command: 'Think of ${args.secret}.'}
";

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Files that hold a text, and how often.
fn holding(dir: &Path, text: &str) -> Vec<(PathBuf, usize)> {
    let mut all = Vec::new();
    files(dir, &mut all);
    let count = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    };
    all.into_iter().map(|path| (path.clone(), count(&path))).filter(|(_, n)| *n > 0).collect()
}

#[test]
fn an_erased_payload_is_in_no_file_of_the_directory() {
    let world = World::new().file("flow.lobsterx.yaml", FLOW).file("inner.lobsterx.yaml", INNER);
    // Large answers fill pages of their own, small ones share them with other runs.
    let long = format!("{MARK} ").repeat(400);
    let script = format!("a: {{text: '{long}'}}\n'*': {{text: 'said {MARK}'}}\n");
    let world = world.file("mock.yaml", &script);
    let args = ["--listen", "127.0.0.1:0", "--mock", "mock.yaml", "--shell", "--data", ".sluice"];
    let server = Server::with(&world, &args);
    for document in ["inner.lobsterx.yaml", "flow.lobsterx.yaml"] {
        server.printed(&world, &["workflows", "put", document]);
    }
    let mut runs = Vec::new();
    for number in 0..if full() { 60 } else { 8 } {
        let secret = format!("secret={MARK}-{number}");
        let start = ["workflows", "start", "flow", "--json", "--arg", &secret];
        let run = server.json(&world, &start);
        runs.push(run["run_id"].as_str().unwrap().to_owned());
    }
    let dir = world.path().join(".sluice");
    assert!(!holding(&dir, MARK).is_empty(), "nothing was there to be erased");
    let inner =
        server.json(&world, &["runs", "list", "--workflow", "inner", "--limit", "100", "--json"]);
    let inner = inner["data"].as_array().unwrap().iter();
    let inner: Vec<String> = inner.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(inner.len(), runs.len(), "each run has started another");
    for run in runs.iter().chain(&inner) {
        server.printed(&world, &["runs", "erase", run, "--reason", "asked to"]);
    }
    world.until("nothing is left of it", |_| holding(&dir, MARK).is_empty().then_some(()));
    let verified = server.told(&world, &["audit", "verify"]);
    assert!(verified.contains("nothing is wrong"), "{verified}");
}
