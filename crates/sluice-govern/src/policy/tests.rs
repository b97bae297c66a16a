//! Loading, matching, replaying.

mod load;
mod matching;

use super::*;
use crate::facts::Verb;
use crate::registry::Posture;

/// Sets as files of one text each: `a.cedar`, `b.cedar`, …
fn set(texts: &[&str]) -> Result<Policies, Vec<PolicyError>> {
    let names = ('a'..='z').map(|letter| format!("{letter}.cedar"));
    let files: Vec<_> = names.zip(texts.iter().map(|&text| text.to_owned())).collect();
    Policies::load(&files)
}

/// A set with the default permits.
fn with_default(text: &str) -> Policies {
    set(&[text, DEFAULT.1]).unwrap()
}

fn facts() -> PolicyFacts {
    PolicyFacts {
        // 2026-11-15, a Sunday, at 07:00.
        at: 1_794_700_800_000 + 7 * 3_600_000,
        verb: Verb::DispatchStep,
        who: Principal::Agent {
            name: "scribe".to_owned(),
            role: Some("writer".to_owned()),
            trust: 5,
            phase: "production".into(),
            status: "idle".into(),
            model: None,
            capabilities: vec!["web".to_owned()],
        },
        what: Resource::Gateway {
            name: "local".to_owned(),
            provider: "mock".to_owned(),
            environment: "dev".to_owned(),
            min_trust: 1,
            capabilities: Vec::new(),
        },
        run: RunSeen {
            id: "run_1".to_owned(),
            workflow: "report".to_owned(),
            version: Some(2),
            initiator: "ada".to_owned(),
            depth: 0,
        },
        step: Some(StepSeen {
            id: "write".to_owned(),
            kind: "command".into(),
            attempt: 1,
            capabilities: Vec::new(),
        }),
        inputs: InputsSeen::default(),
        cost: Some(500),
        posture: Posture::BoundedAutonomous,
        tools: vec!["search".to_owned()],
        short_of_money: false,
    }
}
