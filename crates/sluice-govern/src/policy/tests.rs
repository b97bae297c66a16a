//! Loading, matching and replaying policies.

mod call;
mod changeable;
mod load;
mod matching;
mod names;

use super::*;
use crate::facts::{ArgumentFacts, CallFacts, FlowFacts, SeenIn, SendsTo, ToolFacts, Verb};
use crate::registry::Posture;

/// A set with one file per text: `a.cedar`, `b.cedar`, …
fn set(texts: &[&str]) -> Result<Policies, Vec<PolicyError>> {
    let names = ('a'..='z').map(|letter| format!("{letter}.cedar"));
    let files: Vec<_> = names.zip(texts.iter().map(|&text| text.to_owned())).collect();
    Policies::load(&files)
}

/// A set with the default permits.
fn with_default(text: &str) -> Policies {
    set(&[text, DEFAULT.1]).unwrap()
}

fn facts() -> PolicyFacts<'static> {
    PolicyFacts {
        // 2026-11-15, a Sunday, at 07:00.
        at: 1_794_700_800_000 + 7 * 3_600_000,
        verb: Verb::DispatchStep,
        who: Principal::Agent {
            name: "scribe".into(),
            role: Some("writer".into()),
            trust: 5,
            phase: "production".into(),
            status: "idle".into(),
            model: None,
            capabilities: vec!["web".to_owned()].into(),
        },
        what: Resource::Gateway {
            name: "local".into(),
            provider: "mock".into(),
            environment: "dev".into(),
            min_trust: 1,
            capabilities: [][..].into(),
            sends_to: None,
        },
        run: RunSeen {
            id: "run_1".into(),
            workflow: "report".into(),
            version: Some(2),
            initiator: "ada".into(),
            depth: 0,
            registered: false,
            definition: "".into(),
        },
        step: Some(StepSeen {
            id: "write".into(),
            kind: "command".into(),
            attempt: 1,
            capabilities: [][..].into(),
        }),
        inputs: InputsSeen::default(),
        cost: Some(500),
        posture: Posture::BoundedAutonomous,
        tools: vec!["search".to_owned()].into(),
        tool: None,
        flow: FlowFacts::default(),
        call: None,
        input: None,
        history: Default::default(),
        short_of_money: false,
    }
}
