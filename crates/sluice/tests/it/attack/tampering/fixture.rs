//! A store with rows in every table, made by the real binary: as it was earlier, and as
//! it is after more has happened to the same runs and rows.

use super::act::{Attack, Form, Replaced, attacks};
use super::rows::{Cell, Table};
use crate::server::Server;
use crate::world::{World, shown};
use rustix::process::Signal;

const SETUP: &str = "
gateways:
  near: {provider: mock, capabilities: [text], default: true}
agents:
  worker: {trust_level: 5, max_concurrent_steps: 9, capabilities: [text], rate: {limit: 900, window_s: 3600}}
  spender: {trust_level: 5, max_concurrent_steps: 9, capabilities: [text]}
budgets:
  purse: {scope: agent, of: spender, period: total, amount_cents: 1000}
notes:
  style: {text: Short sentences.}
memories:
  voice: {notes: [style], last_outputs: {agent: worker, count: 3}, max_bytes: 4096}
policies:
  house: {text: 'permit (principal, action, resource);'}
webhooks:
  pager: {url: 'http://127.0.0.1:9/', events: [run.completed], secret: 'env:PAGER'}
workflows: [talk.lobsterx.yaml]
schedules:
  often: {workflow: talk, every: 1s}
";
const TALK: &str = "
name: talk
steps:
  - {id: say, command: Say it., agent: worker, memory: voice}
  - {id: buy, command: 'Buy ${say.stdout}', agent: spender}
";
const ASKS: &str = "
name: asks
steps:
  - {id: sure, approval: {required: true, summary: 'Pay?'}}
  - {id: pay, command: pay, agent: spender, depends_on: [sure]}
";
const PARENT: &str = "
name: parent
steps:
  - {id: fetch, command: get, outputs: {n: integer}}
  - {id: call, workflow_ref: child, args: {n: '${fetch.n}'}, outputs: {total: integer}}
  - {id: tell, command: 'it is ${call.outputs.total}'}
";
const CHILD: &str = "
name: child
args: {n: {type: integer}}
outputs: {total: '${count.sum}'}
steps: [{id: count, command: 'count ${args.n}', outputs: {sum: integer}}]
";
const FAILS: &str = "name: fails\nsteps: [{id: broken, command: go}]\n";
const STUCK: &str = "name: stuck\nsteps: [{id: hangs, command: go, agent: spender}]\n";
/// So many steps that a run which has done them has marks and a snapshot.
const LONG: usize = 90;
/// Bytes of an answer that is stored as a large value.
const LARGE: usize = 70_000;
/// Where seals are kept.
pub(super) const SEALS: &str = "seals";
/// Everything that a copy of the world needs beside its data directory, where it has it.
const FILES: [&str; 4] = [SEALS, "mock.yaml", "talk.lobsterx.yaml", "sluice.toml"];

/// A store with rows in every table.
pub(super) struct Fixture {
    pub(super) world: World,
    /// All rows as they were earlier.
    pub(super) before: Vec<Table>,
    pub(super) now: Vec<Table>,
}

impl Fixture {
    /// Fills the store of a world; `look` reads all its tables.
    pub(super) fn new(world: World, look: impl Fn(&World) -> Vec<Table>) -> Fixture {
        let world = documents(world);
        earlier(&world, &look);
        let before = look(&world);
        later(&world, &look);
        let now = look(&world);
        Fixture { world, before, now }
    }

    /// What an attack does to the store as it is; none where it would change nothing.
    pub(super) fn replaced(&self, attack: &Attack) -> Option<(&Table, Replaced)> {
        let find = |table: &&Table| table.name == attack.table;
        let now = self.now.iter().find(find)?;
        Some((now, attack.replaced(now, self.before.iter().find(find))?))
    }

    /// Every attack on every table. All have rows, but the one about a store that is
    /// being moved.
    pub(super) fn attacks(&self, form: Form) -> Vec<Attack> {
        for table in self.now.iter().filter(|table| table.name != "transfer") {
            assert!(!table.rows.is_empty(), "the fixture has no row in {}", table.name);
        }
        self.now.iter().flat_map(|table| attacks(table, form)).collect()
    }

    /// A copy of the world: its data directory, and what a server needs.
    pub(super) fn copy(&self) -> World {
        let (world, from) = (World::new(), self.world.path());
        for file in FILES.iter().filter(|file| from.join(file).exists()) {
            std::fs::copy(from.join(file), world.path().join(file)).unwrap();
        }
        let data = world.path().join(".sluice");
        std::fs::create_dir(&data).unwrap();
        for file in std::fs::read_dir(from.join(".sluice")).unwrap().map(Result::unwrap) {
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), data.join(file.file_name())).unwrap();
            }
        }
        world
    }
}

fn documents(world: World) -> World {
    let mut long = "name: long\nsteps:\n  - {id: large, command: work}\n".to_owned();
    let mut after = "large".to_owned();
    for step in 0..LONG {
        long += &format!("  - {{id: s{step}, command: work, depends_on: [{after}]}}\n");
        after = format!("s{step}");
    }
    long += &format!("  - {{id: sure, depends_on: [{after}], approval: required}}\n");
    long += "  - {id: pay, command: pay, depends_on: [sure]}\n";
    let mock = format!(
        "fetch: {{outputs: {{n: 3}}}}\ncount: {{outputs: {{sum: 6}}}}\n\
         broken: {{error: no, error_code: invalid_request}}\nhangs: {{hang: true}}\n\
         buy: {{text: bought, cost: 0.02, input_tokens: 3, output_tokens: 4}}\n\
         say: {{chunks: ['One ', 'two ', 'three.']}}\nlarge: {{text: {}}}\n'*': {{text: done}}\n",
        "x".repeat(LARGE)
    );
    let documents = [
        ("setup.yaml", SETUP),
        ("talk.lobsterx.yaml", TALK),
        ("asks.lobsterx.yaml", ASKS),
        ("parent.lobsterx.yaml", PARENT),
        ("child.lobsterx.yaml", CHILD),
        ("fails.lobsterx.yaml", FAILS),
        ("stuck.lobsterx.yaml", STUCK),
        ("long.lobsterx.yaml", &long),
        ("mock.yaml", &mock),
    ];
    documents.into_iter().fold(world, |world, (name, text)| world.file(name, text))
}

/// Runs a command that ends with this exit code.
fn ends(world: &World, code: i32, args: &[&str]) {
    let output = world.output(&[args, &["--mock", "mock.yaml"]].concat());
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", shown(&output));
}

fn run_of(world: &World, workflow: &str) -> String {
    let listed = world.json(&["runs", "list", "--workflow", workflow, "--json"]);
    listed["data"][0]["run_id"].as_str().unwrap().to_owned()
}

fn earlier(world: &World, look: &impl Fn(&World) -> Vec<Table>) {
    world.printed(&["apply", "-f", "setup.yaml"]);
    ends(world, 0, &["run", "talk", "--idempotency-key", "one"]);
    ends(world, 4, &["run", "long.lobsterx.yaml"]);
    ends(world, 0, &["run", "parent.lobsterx.yaml"]);
    ends(world, 4, &["run", "asks.lobsterx.yaml"]);
    ends(world, 1, &["run", "fails.lobsterx.yaml"]);
    ends(world, 0, &["schedules", "tick", "--for", "1200ms"]);
    world.printed(&["schedules", "remove", "often"]);
    let server = Server::start(world, "127.0.0.1:0");
    server.printed(world, &["workflows", "start", "talk"]);
    world.until("a delivery is noted", |world| {
        (!rows(&look(world), "delivery").is_empty()).then_some(())
    });
    server.kill();
    told_to_stop(world, look);
    world.printed(&["audit", "seal", "--out", SEALS]);
}

fn later(world: &World, look: &impl Fn(&World) -> Vec<Table>) {
    world.printed(&["agents", "set", "worker", "trust_level=6"]);
    world.printed(&["budgets", "set", "purse", "amount_cents=2000"]);
    ends(world, 0, &["run", "talk", "--idempotency-key", "two"]);
    world.printed(&["approvals", "approve", &world.question()]);
    ends(world, 0, &["resume", &run_of(world, "long")]);
    ends(world, 0, &["runs", "branch", &run_of(world, "parent"), "--at", "1"]);
    ends(world, 1, &["runs", "restart", &run_of(world, "fails"), "--yes"]);
    ends(world, 4, &["run", "asks.lobsterx.yaml"]);
    let stuck = run_of(world, "stuck");
    // In a database the run is its killed process's until the lease ends.
    world.until("the run reads its message", |world| {
        let resumed = world.output(&["resume", &stuck, "--mock", "mock.yaml"]);
        shown(&resumed).contains("cancelled").then_some(())
    });
    told_to_stop(world, look);
    world.printed(&["audit", "seal", "--out", SEALS]);
}

/// A run whose process was killed before it read that the run is cancelled: its money is
/// reserved, and a message waits.
fn told_to_stop(world: &World, look: &impl Fn(&World) -> Vec<Table>) {
    let running = world.start(&["run", "stuck.lobsterx.yaml", "--mock", "mock.yaml"]);
    let run = world.until_step("hangs", "running");
    running.signal(Signal::STOP);
    let cancel = world.start(&["runs", "cancel", &run]);
    world.until("a message waits", |world| {
        let tables = look(world);
        let letters = tables.iter().find(|table| table.name == "letter")?;
        let body = letters.column("body")?;
        letters.rows.iter().any(|row| row[body] != Cell::Null).then_some(())
    });
    drop((running, cancel));
}

fn rows<'a>(tables: &'a [Table], name: &str) -> &'a [Vec<Cell>] {
    let table = tables.iter().find(|table| table.name == name);
    table.map(|table| &table.rows[..]).unwrap_or_default()
}
