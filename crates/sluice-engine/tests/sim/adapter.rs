//! Adapters whose behaviour is derived from the seed.

use crate::fault::Fault;
use crate::random::{SeededRandom, halves};
use crate::registry::worst;
use crate::sabotage::Sabotage;
use crate::world::{Rule, World};
use serde_json::{Map, json};
use sluice_core::limits::COST_MICRO_CENTS_MAX;
use sluice_core::money::Money;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Emission, Execution, Health, Process,
    Quote, Request, Usage,
};
use sluice_core::run::command::Command;
use std::sync::Arc;
use std::time::Duration;

/// Message of panics that are part of the script.
pub(crate) const SCRIPTED: &str = "scripted panic";

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    Success,
    Unfit,
    Error(CallErrorCode),
    /// Never ends by itself, but stops when cancelled.
    Hang,
    /// Never ends, and ignores cancellation.
    Deaf,
    Panic,
}

/// Behaviour of one dispatch, derived from the seed and the dispatch alone.
struct Script {
    delay_ms: u64,
    chunks: u64,
    process: bool,
    end: CallEnd,
    chance: SeededRandom,
    cost: Option<Money>,
}

impl Script {
    fn of(seed: u64, request: &Request) -> Script {
        let [high, low] = halves(request.run.0);
        let step = sum(&request.step);
        let mut chance = SeededRandom::of(&[seed, 3, high, low, step, request.dispatch_no.into()]);
        let end = match chance.below(100) {
            0..72 => CallEnd::Success,
            72..77 => CallEnd::Unfit,
            77..83 => CallEnd::Error(CallErrorCode::ProviderError),
            83..86 => CallEnd::Error(CallErrorCode::RateLimit),
            86..88 => CallEnd::Error(CallErrorCode::InvalidRequest),
            88..90 => CallEnd::Error(CallErrorCode::Timeout),
            90..93 => CallEnd::Error(CallErrorCode::AdapterCrash),
            93..96 => CallEnd::Hang,
            96..98 => CallEnd::Deaf,
            _ => CallEnd::Panic,
        };
        let delay_ms = if chance.permille(300) { 0 } else { chance.between(1, 2500) };
        let chunks = if chance.permille(250) { chance.between(1, 4) } else { 0 };
        let process = chance.permille(100);
        Script { delay_ms, chunks, process, end, chance, cost: None }
    }

    /// Cost of the dispatch: mostly within its quote, sometimes more, sometimes an
    /// implausible amount.
    fn charged(self, world: &World, request: &Request) -> Script {
        let worst = worst(world.rule, world.seed, &request.step);
        match world.rule {
            Rule::Plain => return self,
            Rule::Thousand => return Script { end: CallEnd::Success, cost: Some(worst), ..self },
            Rule::Governed => {}
        }
        let worst = worst.micro_cents();
        let [high, low] = halves(request.run.0);
        let number = u64::from(request.dispatch_no);
        let mut chance = SeededRandom::of(&[world.seed, 9, high, low, sum(&request.step), number]);
        // Overruns close caps, so some seeds have none.
        let loose = if world.seed.is_multiple_of(3) { 0 } else { 15 };
        let cost = match chance.below(1000) {
            share if share < loose => worst + chance.between(1, worst),
            share if share < 2 * loose => COST_MICRO_CENTS_MAX + 1,
            share if share < 400 => worst,
            share if share < 500 => 0,
            _ => chance.below(worst),
        };
        Script { cost: Some(Money::from_micro_cents(cost)), ..self }
    }

    fn answer(&mut self, world: &World, request: &Request) -> Answer {
        let answer = self.said(request);
        let Some(cost) = self.cost else { return answer };
        world.costs(request);
        Answer { usage: Usage { cost, ..Usage::default() }, ..answer }
    }

    fn said(&mut self, request: &Request) -> Answer {
        match self.end {
            CallEnd::Success | CallEnd::Hang | CallEnd::Deaf | CallEnd::Panic => {
                let outputs = Map::from_iter([("x".to_owned(), json!(self.chance.below(10)))]);
                let text = Some(text_of(&request.step, request.dispatch_no));
                Answer { text, outputs: Some(outputs), ..Answer::default() }
            }
            CallEnd::Unfit => {
                let outputs = Map::from_iter([("y".to_owned(), json!("?"))]);
                let text = Some(text_of(&request.step, request.dispatch_no));
                Answer { text, outputs: Some(outputs), ..Answer::default() }
            }
            CallEnd::Error(code) => {
                let mut answer = Answer::failed(code, "scripted");
                if let Some(error) = &mut answer.error
                    && code == CallErrorCode::RateLimit
                {
                    error.retry_after_ms = Some(self.chance.between(100, 6000));
                }
                answer
            }
        }
    }
}

fn sum(step: &str) -> u64 {
    step.bytes().fold(0u64, |sum, byte| sum * 31 + u64::from(byte))
}

/// Quoted maximum cost of a dispatch.
fn quote(world: &World, step: &str) -> Quote {
    match world.rule {
        Rule::Plain => Quote::Priced,
        Rule::Governed | Rule::Thousand => Quote::AtMost(worst(world.rule, world.seed, step)),
    }
}

/// Answer of a dispatch, which names the dispatch.
pub(crate) fn text_of(step: &str, dispatch_no: u32) -> String {
    format!("{step}#{dispatch_no}")
}

/// An adapter inside the process.
pub(crate) struct LocalAdapter(pub(crate) Arc<World>);

/// A remote adapter that calls back.
pub(crate) struct AsyncAdapter(pub(crate) Arc<World>);

impl Adapter for LocalAdapter {
    fn provider(&self) -> &'static str {
        "edge"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn quote(&self, step: &str) -> Quote {
        quote(&self.0, step)
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            self.0.executes(request);
            let mut script = Script::of(self.0.seed, request).charged(&self.0, request);
            let cancelled = || {
                let failed = Answer::failed(CallErrorCode::Cancelled, "stopped");
                // Its cost so far is unknown.
                let answer = Answer { usage: Usage::unknown(), ..failed };
                Execution::Done(Box::new(answer))
            };
            if script.process {
                let process = Process { group: request.dispatch_no, started: "1".to_owned() };
                if call.emit(Emission::Process(process)).await.is_err() {
                    return cancelled();
                }
            }
            for number in 0..script.chunks {
                let pause = Duration::from_millis(script.chance.between(0, 200));
                tokio::time::sleep(pause).await;
                let emission = match number % 3 {
                    2 => Emission::Log(format!("line {number}")),
                    1 => Emission::Media { url: "u".to_owned(), mime: "m".to_owned() },
                    _ => Emission::Text(format!("part {number}")),
                };
                if call.emit(emission).await.is_err() {
                    return cancelled();
                }
            }
            let work = tokio::time::sleep(Duration::from_millis(script.delay_ms));
            match script.end {
                CallEnd::Deaf => return std::future::pending().await,
                CallEnd::Hang => {
                    call.cancelled().await;
                    return cancelled();
                }
                _ => {}
            }
            tokio::select! {
                biased;
                () = call.cancelled() => return cancelled(),
                () = work => {}
            }
            assert_ne!(script.end, CallEnd::Panic, "{SCRIPTED}");
            Execution::Done(Box::new(script.answer(&self.0, request)))
        })
    }
}

impl Adapter for AsyncAdapter {
    fn provider(&self) -> &'static str {
        "async"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(std::future::ready(Health::Healthy))
    }

    fn quote(&self, step: &str) -> Quote {
        quote(&self.0, step)
    }

    fn execute<'a>(&'a self, request: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            let mut script = Script::of(self.0.seed, request);
            // A worker that gets the same dispatch again after a crash recognises it.
            if self.0.takes(request) {
                self.0.executes(request);
                tokio::spawn(call_back(Arc::clone(&self.0), request.clone()));
            }
            let accepted_ms = script.chance.below(300);
            tokio::time::sleep(Duration::from_millis(accepted_ms)).await;
            Execution::Accepted
        })
    }
}

/// Delivers the result of remote work, perhaps late and repeatedly.
async fn call_back(world: Arc<World>, request: Request) {
    let mut script = Script::of(world.seed, &request).charged(&world, &request);
    if world.strikes(Fault::CallbackLost) || matches!(script.end, CallEnd::Hang | CallEnd::Deaf) {
        return;
    }
    let late_ms = if world.strikes(Fault::CallbackLate) { request.timeout_ms } else { 0 };
    tokio::time::sleep(Duration::from_millis(script.delay_ms + late_ms)).await;
    let Some(at) = world.journal().find(request.run, &request.step) else { return };
    let answer = Box::new(script.answer(&world, &request));
    let dispatch_no = match world.sabotage {
        Some(Sabotage::AcceptLate) => world.journal().dispatched(request.run, at),
        _ => request.dispatch_no,
    };
    let command = Command::Complete { at, dispatch_no, answer };
    let key = format!("callback:{}:{}", request.step, request.dispatch_no);
    if world.strikes(Fault::CallbackTwice) {
        let (world, command, key) = (Arc::clone(&world), command.clone(), key.clone());
        let pause_ms = script.chance.between(0, 2000);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            world.command(request.run, command, &key).await;
        });
    }
    world.command(request.run, command, &key).await;
}
