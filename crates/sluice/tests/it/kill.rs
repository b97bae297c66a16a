//! `kill -9` at any moment: every run ends, nothing is lost, nothing runs after
//! its end is on record.
//!
//! `KILLS=200 cargo test -p sluice --test it kill -- --nocapture` kills longer.

use crate::session::{Session, binary, output};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Each step adds one line to a file: the run, the step, the dispatch, the time.
const MIX: &str = r#"
name: mix
args: {file: string}
max_parallel: 4
defaults: {agent: shell, timeout: 20s}
steps:
  - {id: first, command: 'echo $SLUICE_RUN_ID $SLUICE_STEP_ID $SLUICE_DISPATCH_NO $(date +%s%3N) >> ${args.file}'}
  - id: flaky
    depends_on: [first]
    command: |
      echo $SLUICE_RUN_ID $SLUICE_STEP_ID $SLUICE_DISPATCH_NO $(date +%s%3N) >> ${args.file}
      [ "$SLUICE_ATTEMPT" -ge 2 ]
    retry: {attempts: 3, backoff_ms: 20, max_backoff_ms: 40}
  - id: slow
    depends_on: [first]
    command: |
      sleep 0.03
      echo $SLUICE_RUN_ID $SLUICE_STEP_ID $SLUICE_DISPATCH_NO $(date +%s%3N) >> ${args.file}
      sleep 0.02
  - id: each
    depends_on: [first]
    for_each: [1, 2, 3]
    command: 'echo $SLUICE_RUN_ID $SLUICE_STEP_ID $SLUICE_DISPATCH_NO $(date +%s%3N) >> ${args.file}'
  - id: background
    depends_on: [slow]
    command: |
      (sleep 0.05; echo $SLUICE_RUN_ID $SLUICE_STEP_ID $SLUICE_DISPATCH_NO $(date +%s%3N) >> ${args.file}) &
      wait
  - {id: last, depends_on: [flaky, background, each], command: 'echo $SLUICE_RUN_ID $SLUICE_STEP_ID $SLUICE_DISPATCH_NO $(date +%s%3N) >> ${args.file}'}
"#;

/// Chance enough to pick a moment.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Starts the binary and kills it after a while; whether it had ended before.
fn killed(dir: &Path, args: &[&str], after: Duration) -> bool {
    let mut child = binary(dir)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < after {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

fn runs(dir: &Path) -> BTreeMap<String, String> {
    if !dir.join(".sluice").exists() {
        return BTreeMap::new();
    }
    let listed = output(dir, &["runs", "list", "--limit", "1000", "--json"], b"");
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", shown(&listed.stderr) + &shown(&listed.stdout))
    });
    let rows = listed["data"].as_array().unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "run_id"), text(row, "status"))).collect()
}

fn unfinished(dir: &Path) -> Vec<String> {
    let ended = ["completed", "failed", "cancelled", "timed_out"];
    let open = runs(dir).into_iter().filter(|(_, status)| !ended.contains(&status.as_str()));
    open.map(|(run, _)| run).collect()
}

/// What the journal says of one run's steps.
struct Journal {
    /// Dispatches of each step.
    started: BTreeSet<(String, u64)>,
    /// When each step was completed.
    completed: BTreeMap<String, u64>,
}

fn journal(dir: &Path, run: &str) -> Journal {
    let exported = output(dir, &["runs", "export", run, "--json"], b"");
    let exported: Value = serde_json::from_slice(&exported.stdout).unwrap();
    let mut journal = Journal { started: BTreeSet::new(), completed: BTreeMap::new() };
    for (at, event) in exported["events"].as_array().unwrap().iter().enumerate() {
        assert_eq!(event["eventId"], at + 1, "ids of {run} are dense");
        let payload = &event["payload"];
        let Some(node) = payload["nodeId"].as_str().map(str::to_owned) else { continue };
        match event["type"].as_str().unwrap() {
            "node.started" => {
                let dispatch = payload["dispatchNo"].as_u64().unwrap();
                assert!(!journal.completed.contains_key(&node), "{node} of {run} was done");
                assert!(journal.started.insert((node, dispatch)), "a number is used once");
            }
            "node.completed" => {
                let at = millis(event["timestamp"].as_str().unwrap());
                assert!(journal.completed.insert(node, at).is_none(), "a step is done once");
            }
            _ => {}
        }
    }
    assert_eq!(exported["projection"]["status"], "completed", "{}", exported["projection"]);
    journal
}

/// The time of day of a timestamp, in milliseconds: enough to compare within a minute.
fn millis(timestamp: &str) -> u64 {
    let time = timestamp.split('T').nth(1).unwrap().trim_end_matches('Z');
    let mut parts = time.split([':', '.']).map(|part| part.parse::<u64>().unwrap());
    let mut next = || parts.next().unwrap();
    ((next() * 60 + next()) * 60 + next()) * 1000 + next()
}

fn check_lines(dir: &Path, lines: &str) {
    const DAY_MS: u64 = 86_400_000;
    let mut seen = BTreeSet::new();
    let mut journals = BTreeMap::new();
    for line in lines.lines() {
        let [run, step, dispatch, at]: [&str; 4] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("a line is whole");
        let journal = journals.entry(run.to_owned()).or_insert_with(|| journal(dir, run));
        let dispatch: u64 = dispatch.parse().unwrap();
        assert!(seen.insert((run, step, dispatch)), "`{line}` is there twice");
        assert!(journal.started.contains(&(step.to_owned(), dispatch)), "`{line}` was not sent");
        let at = at.parse::<u64>().unwrap() % DAY_MS;
        let done = journal.completed[step];
        assert!(at <= done || at > done + DAY_MS / 2, "`{line}` came after the end at {done}");
    }
    // Every step of every run left at least one line.
    for (run, journal) in &journals {
        for step in journal.completed.keys().filter(|step| *step != "each") {
            let left = |(one, node, _): &(&str, &str, u64)| *one == run && *node == step;
            assert!(seen.iter().any(left), "{step} of {run} left nothing");
        }
    }
}

#[test]
fn killed_at_any_moment_every_run_ends_and_nothing_runs_after_its_end() {
    let kills: u64 = std::env::var("KILLS").map_or(25, |text| text.parse().unwrap());
    let session = Session::new().file("mix.lobsterx.yaml", MIX).file("lines", "");
    let dir = session.path();
    let file = format!("file={}", dir.join("lines").display());
    let mut dice = Dice(kills);
    let mut left = kills;
    while left > 0 {
        let after = Duration::from_millis(5 + dice.below(250));
        let open = unfinished(dir);
        let ended = match open.first() {
            Some(run) if dice.below(4) > 0 => killed(dir, &["resume", run], after),
            _ => killed(dir, &["run", "mix.lobsterx.yaml", "--arg", &file], after),
        };
        left -= u64::from(!ended);
    }
    for run in unfinished(dir) {
        let resumed = output(dir, &["resume", &run, "--json"], b"");
        assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    }
    assert_eq!(unfinished(dir), Vec::<String>::new());
    check_lines(dir, &std::fs::read_to_string(dir.join("lines")).unwrap());
}
