//! Long traces of another source, such as AgentDojo's: equality with the prototype.

use super::vectors::SeenStep;
use super::*;

/// What a set of traces showed.
#[derive(Default)]
struct Totals {
    traces: usize,
    calls: usize,
    arguments: usize,
    faults: Vec<String>,
}

impl Totals {
    fn play(&mut self, trace: &str) {
        let steps: Vec<SeenStep> = serde_json::from_str(trace).expect("a trace is a list of steps");
        let mut index = SeenIndex::default();
        self.traces += 1;
        for step in steps {
            let call = json!(step.call);
            let Some((facts, expected)) = step.play(&mut index) else { continue };
            self.calls += 1;
            self.arguments += facts["arguments"].as_object().map_or(0, Map::len);
            if facts != expected {
                self.faults.push(format!("{call}\n  {facts}\n  {expected}"));
            }
        }
    }
}

/// `SEEN_TRACES` names a folder of files with one trace in each line.
#[test]
#[ignore = "needs traces that tools/agentdojo/vectors.py writes"]
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "reads the traces and reports how many calls agree"
)]
fn agentdojo_has_the_facts_of_the_prototype() {
    let folder = std::env::var("SEEN_TRACES").expect("SEEN_TRACES names a folder");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let mut totals = Totals::default();
        std::fs::read_to_string(&path).unwrap().lines().for_each(|trace| totals.play(trace));
        let Totals { traces, calls, arguments, faults } = totals;
        let (name, count) = (path.display(), faults.len());
        println!("{name}: {traces} traces, {calls} calls, {arguments} arguments, {count} differ");
        assert!(faults.is_empty(), "{}", faults[..count.min(10)].join("\n"));
    }
}
