//! The scripted adapter, for tests, demonstrations and dry runs.
//!
//! A script defines for each step what happens at its first, second, … dispatch. The request
//! has the dispatch number, so the adapter needs no state and answers the same after a crash.

mod behaviour;
mod parse;

#[cfg(test)]
mod tests;

use behaviour::Behaviour;
use indexmap::IndexMap;
use sluice_core::diagnostic::Diagnostic;
use sluice_core::money::Money;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Answer, Call, CallErrorCode, Capabilities, Execution, Health, Quote, Request,
};
use std::future::ready;

/// Entry for all steps without their own.
const ANY: &str = "*";

/// Scripted behaviour of steps.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// By step, instance or `*`; the lists are never empty.
    entries: IndexMap<String, Vec<Behaviour>>,
}

impl Script {
    /// Parses a script, YAML or JSON. Reports all problems with their positions.
    pub fn parse(text: &str) -> Result<Script, Vec<Diagnostic>> {
        Ok(Script { entries: parse::script(text)? })
    }

    /// Whether the script has an entry for the step or instance, except `*`.
    pub fn names(&self, step: &str) -> bool {
        self.entry_for(step).is_some()
    }

    /// The steps and instances with entries, except `*`.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str).filter(|key| *key != ANY)
    }

    fn entry_for(&self, step: &str) -> Option<&Vec<Behaviour>> {
        // A caller might pass `*`, although it is not a step id.
        let step = Some(step).filter(|step| *step != ANY)?;
        self.entries.get(step).or_else(|| self.entries.get(base_step(step)?))
    }

    /// Highest cost of an answer for the step.
    fn max_cost(&self, step: &str) -> Money {
        let list = self.entry_for(step).or_else(|| self.entries.get(ANY));
        list.into_iter().flatten().map(Behaviour::cost).max().unwrap_or_default()
    }

    fn behaviour(&self, request: &Request) -> Option<&Behaviour> {
        let list = self.entry_for(&request.step).or_else(|| self.entries.get(ANY))?;
        let at = usize::try_from(request.dispatch_no).unwrap_or(usize::MAX).saturating_sub(1);
        list.get(at).or(list.last())
    }
}

/// The step of an instance: `step` for `step[3]`.
fn base_step(step: &str) -> Option<&str> {
    let (base_step, _) = step.strip_suffix(']')?.rsplit_once('[')?;
    Some(base_step)
}

/// Adapter that follows a script.
#[derive(Debug, Clone)]
pub struct MockAdapter {
    script: Script,
}

impl MockAdapter {
    /// An adapter that follows `script`.
    pub fn new(script: Script) -> MockAdapter {
        MockAdapter { script }
    }
}

impl Adapter for MockAdapter {
    fn provider(&self) -> &'static str {
        "mock"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, tools: false, structured_output: true, cancel: true }
    }

    fn health(&self) -> Later<'_, Health> {
        Box::pin(ready(Health::Healthy))
    }

    /// The script has the cost of each answer.
    fn quote(&self, step: &str) -> Quote {
        Quote::AtMost(self.script.max_cost(step))
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        let Some(behaviour) = self.script.behaviour(request) else {
            return done(unscripted(&request.step));
        };
        match behaviour.at_once(request) {
            Some(answer) => done(answer),
            None => Box::pin(async move {
                let answer = behaviour.play(request, call).await;
                Execution::Done(Box::new(answer))
            }),
        }
    }
}

fn done<'a>(answer: Answer) -> Later<'a, Execution> {
    Box::pin(ready(Execution::Done(Box::new(answer))))
}

fn unscripted(step: &str) -> Answer {
    let shown = base_step(step).unwrap_or(step);
    let message = format!(
        "the mock script has no entry for step `{step}`; \
         add `{shown}: {{text: \"…\"}}` to it, or `\"*\": {{text: \"…\"}}` for all other steps"
    );
    Answer::failed(CallErrorCode::InvalidRequest, message)
}
