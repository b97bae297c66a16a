//! Agents whose behaviour a seed decides.

use crate::chance::{Chance, halves};
use crate::fault::Fault;
use crate::world::World;
use serde_json::{Map, json};
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Emission, Execution, Health, Process,
    Request,
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
}

impl Script {
    fn of(seed: u64, request: &Request) -> Script {
        let [high, low] = halves(request.run.0);
        let step = request.step.bytes().fold(0u64, |sum, byte| sum * 31 + u64::from(byte));
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
        Script { delay_ms, chunks, process: chance.permille(100), end, chance }
    }

    fn answer(&mut self, request: &Request) -> Answer {
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

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            self.0.executes(request);
            let mut script = Script::of(self.0.seed, request);
            let cancelled = || {
                let answer = Answer::failed(CallErrorCode::Cancelled, "stopped");
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
            Execution::Done(Box::new(script.answer(request)))
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

    fn execute<'a>(&'a self, request: &'a Request, _: &'a dyn Call) -> Later<'a, Execution> {
        Box::pin(async move {
            self.0.executes(request);
            let mut script = Script::of(self.0.seed, request);
            tokio::spawn(call_back(Arc::clone(&self.0), request.clone()));
            let accepted_ms = script.chance.below(300);
            tokio::time::sleep(Duration::from_millis(accepted_ms)).await;
            Execution::Accepted
        })
    }
}

/// The result of work that goes on elsewhere, as often and as late as it comes.
async fn call_back(world: Arc<World>, request: Request) {
    let mut script = Script::of(world.seed, &request);
    if world.strikes(Fault::CallbackLost) || matches!(script.end, End::Hang | End::Deaf) {
        return;
    }
    let late_ms = if world.strikes(Fault::CallbackLate) { request.timeout_ms } else { 0 };
    tokio::time::sleep(Duration::from_millis(script.delay_ms + late_ms)).await;
    let Some(at) = world.journal().find(request.run, &request.step) else { return };
    let answer = Box::new(script.answer(&request));
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
