//! Long runs and large values, reloaded.

use crate::world::{World, ended, happens, start, step, until};
use serde_json::{Value, json};
use sluice_core::port::store::Store as _;
use sluice_core::run::projection::project;
use sluice_core::run::state::Run;
use sluice_core::status::{RunStatus, StepStatus};

const ITEMS: usize = 2000;

fn shown(run: &Run) -> Value {
    serde_json::to_value(project(run)).expect("a projection is JSON")
}

#[tokio::test]
async fn a_long_run_is_the_same_from_its_snapshot_and_from_its_journal() {
    let world = World::new("each: {delay_ms: 1, outputs: {n: 1}}");
    let items: Vec<usize> = (0..ITEMS).collect();
    let flow = format!(
        "name: long\nmax_parallel: 50\nsteps: [{{id: each, command: 'do ${{item}}', \
         for_each: {{items: {items:?}, max_items: {ITEMS}}}}}]\n"
    );
    let life = world.boot().await;
    let id = life.start(start(&flow)).await.unwrap().run;
    let done =
        |run: &Run| run.all().filter(|(_, one)| one.status() == StepStatus::Completed).count();
    until(&life, id, |run| done(run) > ITEMS / 2).await;
    life.crash().await;

    let life = world.boot().await;
    let loaded = life.store().load(id).await.unwrap().unwrap();
    assert!(loaded.snapshot.is_some_and(|(version, _)| version > 256));
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    let whole = life.load_at(id, u64::MAX).await.unwrap();
    assert_eq!(shown(&run), shown(&whole));
    assert_eq!(run.version, whole.version);
    let again = (0..ITEMS).filter(|item| world.calls(&format!("each[{item}]")).len() > 1).count();
    assert!(again <= 50, "{again} instances were done twice");
}

#[tokio::test]
async fn large_values_survive_a_restart() {
    let large = "x".repeat(100_000);
    let world = World::new(&format!(
        "a: {{outputs: {{text: {large}}}}}\nc: [{{hang: true}}, {{echo: true}}]"
    ));
    let flow = "
name: large
args: {given: {type: string}}
steps:
  - {id: a, command: 'read ${args.given}'}
  - {id: b, agent: shell, command: 'head -c 100000 /dev/zero | tr \"\\0\" y', depends_on: [a]}
  - {id: c, command: '${a.outputs.text} ${$b.stdout}', depends_on: [b]}
outputs: {text: '${a.outputs.text}', said: '${$c.stdout}'}
";
    let mut request = start(flow);
    request.args.insert("given".to_owned(), json!("z".repeat(100_000)));
    let life = world.boot().await;
    let id = life.start(request).await.unwrap().run;
    happens("the last step", || world.calls("c").len() == 1).await;
    let before = life.load(id).await.unwrap();
    life.crash().await;
    let file = rusqlite::Connection::open(world.file()).unwrap();
    let count = "SELECT count(*) FROM blob WHERE length(body) >= 100000";
    let blobs: i64 = file.query_row(count, [], |row| row.get(0)).unwrap();
    assert!(blobs >= 3, "{blobs}");
    file.close().unwrap();

    let life = world.boot().await;
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    assert_eq!(run.started.args["given"].as_str().map(str::len), Some(100_000));
    for name in ["a", "b"] {
        assert_eq!(step(&run, name).outcome(), step(&before, name).outcome());
    }
    let outputs = crate::world::outputs(&run);
    assert_eq!(outputs["text"], json!(large));
    assert_eq!(outputs["said"], json!(format!("{large} {}", "y".repeat(100_000))));
}
