//! Child runs: from a lens node, and the nesting limit.

use crate::world::{World, config, ended, start_family};
use serde_json::json;
use sluice_core::status::RunStatus;
use sluice_engine::config::Config;
use sluice_engine::start::Start;

/// A workflow that starts itself.
const LOOP: &str = "name: again\nsteps: [{id: a, workflow_ref: again}]";

fn endless(depth: Option<u32>) -> Start {
    let mut start = start_family(LOOP, "again", "name: again\nsteps: [{id: a, command: go}]");
    // The child is the workflow itself.
    start.children.insert("again".to_owned(), start.stored.hash);
    start.bring.clear();
    start.recursion_depth_max = depth;
    start
}

#[tokio::test]
async fn a_caller_can_lower_the_recursion_cap_and_children_inherit_it() {
    let world = World::new("'*': {text: ok}");
    let life = world.boot_with(Config { recursion_depth_max: 3, ..config() }).await;
    for (asked, holds) in [(None, 3), (Some(1), 1), (Some(0), 0), (Some(9), 3)] {
        let started = life.start(endless(asked)).await.unwrap();
        let run = ended(&life, started.run).await;
        assert_eq!(run.status, RunStatus::Failed);
        let (code, message) = run.end.unwrap().error.unwrap();
        assert_eq!(code, "recursion_too_deep", "{asked:?}");
        assert!(message.contains(&format!("more than {holds} deep")), "{asked:?}: {message}");
        // One run for every level that was started or refused.
        assert_eq!(message.matches("run_").count(), holds + 1, "{asked:?}: {message}");
    }
}

#[tokio::test]
async fn a_lens_node_starts_a_run_and_takes_its_outputs() {
    let world =
        World::new("first: {text: t, outputs: {n: 4}}\nc: {outputs: {sum: 9}}\nlast: {text: done}");
    let life = world.boot().await;
    let parent = "
name: p
lenses: {l: {versions: {1: {template: go}}}, use: {versions: {1: {template: 'sum [[s]]'}}}}
nodes:
  - {id: first, lens_id: l}
  - {id: call, config: {workflow_ref: child, args: {n: '[[n]]'}}}
  - {id: last, lens_id: use}
edges:
  - {source_node_id: first, target_node_id: call, source_output_key: n, target_param_label: n}
  - {source_node_id: call, target_node_id: last, source_output_key: total, target_param_label: s}
";
    let child = "
name: child
args: {n: {type: integer, required: true}}
steps: [{id: c, command: 'add ${args.n}', outputs: {sum: integer}}]
outputs: {total: '${c.outputs.sum}'}
";
    let mut start = start_family(parent, "child", child);
    start.default_model = Some("chosen".to_owned());
    let run = ended(&life, life.start(start).await.unwrap().run).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
    let at = |id: &str| run.definition.plan.graph.position(id).unwrap();
    let inputs = |id: &str| run.steps[at(id)].prepared.as_ref().unwrap().inputs.clone();
    assert_eq!(json!(inputs("call")), json!({"n": 4}));
    assert_eq!(run.steps[at("last")].prepared.as_ref().unwrap().prompt, "sum 9");
    let child = run.taken.keys().copied().next().expect("the child's result was taken");
    let child = ended(&life, child).await;
    assert_eq!(child.started.default_model.as_deref(), Some("chosen"));
}
