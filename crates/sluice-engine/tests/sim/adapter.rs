//! Agents whose behaviour a seed decides.

use crate::chance::{Chance, halves};
use crate::fault::Fault;
use crate::registry::worst;
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

/// What a panic that is part of the script says.
pub(crate) const SCRIPTED: &str = "scripted panic";

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Unfit,
    Error(CallErrorCode),
    /// It never ends, but stops when asked.
    Hang,
    /// It never ends and does not listen.
    Deaf,
    Panic,
}

/// What becomes of one dispatch: a function of the seed and the dispatch alone.
struct Script {
    delay_ms: u64,
    chunks: u64,
    process: bool,
    end: End,
    chance: Chance,
    cost: Option<Money>,
}

impl Script {
    fn of(seed: u64, request: &Request) -> Script {
        let [high, low] = halves(request.run.0);
        let step = sum(&request.step);
        let mut chance = Chance::of(&[seed, 3, high, low, step, request.dispatch_no.into()]);
        let end = match chance.below(100) {
            0..72 => End::Success,
            72..77 => End::Unfit,
            77..83 => End::Error(CallErrorCode::ProviderError),
            83..86 => End::Error(CallErrorCode::RateLimit),
            86..88 => End::Error(CallErrorCode::InvalidRequest),
            88..90 => End::Error(CallErrorCode::Timeout),
            90..93 => End::Error(CallErrorCode::AdapterCrash),
            93..96 => End::Hang,
            96..98 => End::Deaf,
            _ => End::Panic,
        };
        let delay_ms = if chance.permille(300) { 0 } else { chance.between(1, 2500) };
        let chunks = if chance.permille(250) { chance.between(1, 4) } else { 0 };
        let process = chance.permille(100);
        Script { delay_ms, chunks, process, end, chance, cost: None }
    }

    /// As a function of the dispatch, what it costs: mostly no more than was
    /// said, now and then more, or what nobody can believe.
    fn charged(self, world: &World, request: &Request) -> Script {
        let worst = worst(world.rule, world.seed, &request.step);
        match world.rule {
            Rule::Plain => return self,
            Rule::Thousand => return Script { end: End::Success, cost: Some(worst), ..self },
            Rule::Governed => {}
        }
        let worst = worst.micro_cents();
        let [high, low] = halves(request.run.0);
        let number = u64::from(request.dispatch_no);
        let mut chance = Chance::of(&[world.seed, 9, high, low, sum(&request.step), number]);
        // Overruns close caps: some seeds have none.
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
            End::Success | End::Hang | End::Deaf | End::Panic => {
                let outputs = Map::from_iter([("x".to_owned(), json!(self.chance.below(10)))]);
                let text = Some(text_of(&request.step, request.dispatch_no));
                Answer { text, outputs: Some(outputs), ..Answer::default() }
            }
            End::Unfit => {
                let outputs = Map::from_iter([("y".to_owned(), json!("?"))]);
                let text = Some(text_of(&request.step, request.dispatch_no));
                Answer { text, outputs: Some(outputs), ..Answer::default() }
            }
            End::Error(code) => {
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

/// What an adapter says a dispatch costs at most.
fn quote(world: &World, step: &str) -> Quote {
    match world.rule {
        Rule::Plain => Quote::Priced,
        Rule::Governed | Rule::Thousand => Quote::AtMost(worst(world.rule, world.seed, step)),
    }
}

/// The text with which a dispatch answers: says which dispatch it was.
pub(crate) fn text_of(step: &str, dispatch_no: u32) -> String {
    format!("{step}#{dispatch_no}")
}

/// An agent in the process.
pub(crate) struct Edge(pub(crate) Arc<World>);

/// An agent elsewhere, that calls back.
pub(crate) struct Async(pub(crate) Arc<World>);

impl Adapter for Edge {
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
                // It knows nothing of what it cost so far.
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
                End::Deaf => return std::future::pending().await,
                End::Hang => {
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
            assert_ne!(script.end, End::Panic, "{SCRIPTED}");
            Execution::Done(Box::new(script.answer(&self.0, request)))
        })
    }
}

impl Adapter for Async {
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
            // Whoever is asked again after a crash knows that it was asked before.
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

/// The result of work that goes on elsewhere, as often and as late as it comes.
async fn call_back(world: Arc<World>, request: Request) {
    let mut script = Script::of(world.seed, &request).charged(&world, &request);
    if world.strikes(Fault::CallbackLost) || matches!(script.end, End::Hang | End::Deaf) {
        return;
    }
    let late_ms = if world.strikes(Fault::CallbackLate) { request.timeout_ms } else { 0 };
    tokio::time::sleep(Duration::from_millis(script.delay_ms + late_ms)).await;
    let Some(at) = world.journal().find(request.run, &request.step) else { return };
    let answer = Box::new(script.answer(&world, &request));
    let command = Command::Complete { at, dispatch_no: request.dispatch_no, answer };
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
