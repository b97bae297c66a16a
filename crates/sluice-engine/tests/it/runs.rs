//! Complete runs.

use crate::world::{World, config, ended, ground, memory, outputs, resolve, sqlite, start, until};
use serde_json::json;
use sluice_core::run::command::Decision;
use sluice_core::status::RunStatus;
use sluice_engine::Engine;
use sluice_engine::agents::Agents;
use sluice_engine::engine::Ground;
use sluice_engine::error::StartError;

const CHAIN: &str = "
name: chain
steps:
  - {id: a, command: do a, outputs: {x: integer}}
  - {id: b, command: 'do b with ${a.outputs.x}', outputs: {y: string}}
  - {id: c, agent: shell, command: 'echo got ${y}', depends_on: [b]}
outputs: {said: '${$c.stdout}'}
";
const MOCK: &str = "
a: {outputs: {x: '7'}}
b: {echo: true, outputs: {y: yes}}
'*': {text: done}
";

#[tokio::test]
async fn a_chain_of_mock_and_shell_steps_completes_on_both_stores() {
    let world = World::new(MOCK);
    for store in [memory(), sqlite(world.path())] {
        let engine = Engine::open(ground(store, &world), config()).await.unwrap();
        let run = engine.start(start(CHAIN)).await.unwrap().run;
        let run = ended(&engine, run).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.end);
        assert_eq!(outputs(&run), json!({"said": "got yes\n"}));
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn an_approval_waits_parked_and_continues_when_granted() {
    const ASK: &str = "
name: ask
steps:
  - {id: sure, approval: required, outputs: {amount: integer}}
  - {id: pay, command: 'pay ${amount}', depends_on: [sure], outputs: {paid: string}}
";
    let world = World::new("pay: {echo: true, outputs: {paid: ok}}");
    let engine = world.boot().await;
    let id = engine.start(start(ASK)).await.unwrap().run;
    let run = until(&engine, id, |run| run.status == RunStatus::Paused).await;
    until(&engine, id, |_| engine.residents() == 0).await;
    resolve(&engine, &run, Decision::Approve, json!({"amount": "12"})).await.unwrap();
    let run = ended(&engine, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(outputs(&run), json!({"amount": 12, "paid": "ok"}));
}

#[tokio::test]
async fn a_refused_start_lists_the_configured_agents() {
    const FLOW: &str = "name: f\nsteps: [{id: a, agent: gpt, command: go}]";
    let world = World::new(MOCK);
    let all = "configured: away, deaf, mock, shell";
    for (agents, known) in [(Agents::new(), "no agent is configured"), (world.agents(), all)] {
        let ground = Ground { agents, ..ground(memory(), &world) };
        let engine = Engine::open(ground, config()).await.unwrap();
        let refused = engine.start(start(FLOW)).await;
        let Err(StartError::Agent(message)) = refused else { panic!("{refused:?}") };
        let expected = format!("step `a` names the agent `gpt`, which is not configured; {known}");
        assert_eq!(message, expected);
        engine.shutdown().await;
    }
}
