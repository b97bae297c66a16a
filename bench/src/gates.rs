//! One decision: ten gates, a hundred policies of which ten apply, twenty caps.

mod past;

use clap::Args;
use serde_json::{Map, Value, json};
use sluice_govern::action::Action;
use sluice_govern::decision::{Constraints, Disposition};
use sluice_govern::evaluate;
use sluice_govern::facts::{
    Cap, CapGate, Facts, FlowFacts, Inputs, Place, RunFacts, StepFacts, Subject, Verb, Worst,
};
use sluice_govern::money::Money;
use sluice_govern::policy::{DEFAULT, Policies};
use sluice_govern::registry::{Agent, Gateway, Health, Held, Posture};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Options {
    /// Number of decisions
    #[arg(long, default_value_t = 100_000)]
    decisions: usize,
    /// Number of policies in addition to the default set; a tenth of them applies
    #[arg(long, default_value_t = 100)]
    policies: usize,
    /// Number of cost caps
    #[arg(long, default_value_t = 20)]
    caps: usize,
    /// Number of policies about history; they decide on a tool call after `--events` events
    #[arg(long, default_value_t = 0)]
    history: usize,
    /// Number of events before the decision
    #[arg(long, default_value_t = 200)]
    events: usize,
}

fn policies(count: usize) -> anyhow::Result<Policies> {
    let mut text = String::new();
    for number in 0..count {
        let principal = match number % 10 {
            0 => "principal".to_owned(),
            _ => format!("principal == Agent::\"other-{number}\""),
        };
        text.push_str(&format!(
            "@id(\"rule-{number}\")\n@action(\"block\")\n@enforcement(\"hard\")\n\
             @category(\"guardrail\")\nforbid ({principal}, action == Action::\"dispatch_step\", \
             resource) when {{ context has cost && context.cost > {number}000000000 && \
             context has step && context.step.attempt > 3 }};\n"
        ));
    }
    let files = [(DEFAULT.0.to_owned(), DEFAULT.1.to_owned()), ("house".to_owned(), text)];
    Policies::load(&files).map_err(|errors| anyhow::anyhow!("{errors:?}"))
}

fn caps(count: usize) -> Vec<Cap<'static>> {
    let cap = |number: usize| Cap {
        whose: if number == 0 { CapGate::Agent } else { CapGate::Budget },
        name: format!("budget-{number}").into(),
        account: format!("envelope/budget-{number}/2026-11-15").into(),
        amount: Money::from_micro_cents(1_000_000_000_000),
        held: Money::from_micro_cents(number as u64),
        over: Money::ZERO,
        accepted: Money::ZERO,
    };
    (0..count).map(cap).collect()
}

fn facts<'a>(step_inputs: &'a StepInputs, caps: Vec<Cap<'a>>) -> Facts<'a> {
    let StepInputs { agent, gateway, .. } = step_inputs;
    Facts {
        now_ms: 1_794_700_800_000,
        verb: Verb::DispatchStep,
        subject: Subject::Agent("scribe", Some(agent)),
        role: None,
        place: Some(Place {
            name: "local",
            gateway: Some(gateway),
            health: Health::Healthy,
            serves: true,
        }),
        object: None,
        held: Held::No,
        running: 3,
        in_window: 5,
        caps,
        worst: Worst::Known(Money::from_micro_cents(10_000)),
        trust_ceiling: u8::MAX,
        inputs: Inputs { classes: vec!["caller", "agent"], ..Inputs::default() },
        call: None,
        flow: FlowFacts::default(),
        tool: None,
        history: None,
        posture: Posture::BoundedAutonomous,
        run: RunFacts {
            id: "run_0198c7d2e4f677818c51ef6fa49403c4",
            workflow: "vendor-review",
            version: Some(3),
            initiator: "ada",
            depth: 0,
            registered: true,
            definition: "5e",
        },
        step: Some(StepFacts { id: "assess", kind: "command", attempt: 1, capabilities: &[] }),
        asks: None,
        grant: None,
        action: Action {
            agent: "scribe",
            gateway: "local",
            workflow: "vendor-review",
            step: "assess",
            command: &step_inputs.command,
            stdin: None,
            env: &[],
            cwd: None,
            inputs: &step_inputs.inputs,
            memory: None,
            model: Some("small"),
            system_prompt: None,
            tools: &step_inputs.tools,
            constraints: Constraints::default(),
            cost_ceiling: None,
            policies: "".into(),
            session: None,
            definition: "5ae1797595e953fb5bef8593569db38319122fc82e64e58cdd79b71c08fd61c2",
        },
    }
}

/// Inputs of the step that is decided about.
struct StepInputs {
    agent: Agent,
    gateway: Gateway,
    command: String,
    inputs: Map<String, Value>,
    tools: Vec<String>,
}

fn step_inputs() -> StepInputs {
    let inputs = [("vendor", "Northwind Paper"), ("country", "NO")];
    StepInputs {
        agent: Agent::default(),
        gateway: Gateway::default(),
        command: "Assess the risk of Northwind Paper and say why. ".repeat(8),
        inputs: inputs.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect(),
        tools: vec!["search".to_owned()],
    }
}

/// The time of each of many decisions that allow the step, sorted, and the bytes of one.
pub(crate) fn decide(
    policies: &Policies,
    caps_count: usize,
    decisions: usize,
) -> anyhow::Result<(Vec<Duration>, usize)> {
    let step_inputs = step_inputs();
    let facts = facts(&step_inputs, caps(caps_count));
    let mut times = Vec::with_capacity(decisions);
    let mut written = 0;
    for _ in 0..decisions {
        let begun = Instant::now();
        let evaluated = evaluate(&facts, policies);
        times.push(begun.elapsed());
        let allowed = evaluated.decision.disposition == Disposition::Allow;
        anyhow::ensure!(allowed, "{evaluated:?}");
        written = evaluated.write(None, 0).len();
    }
    times.sort_unstable();
    Ok((times, written))
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Value> {
    let (times, written) = if options.history > 0 {
        past::decide(options.history, options.events, options.decisions)?
    } else {
        decide(&policies(options.policies)?, options.caps, options.decisions)?
    };
    let micros = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into a list"
        )]
        let at = ((times.len() - 1) as f64 * share) as usize;
        crate::fixture::brief(times[at].as_secs_f64() * 1e6)
    };
    Ok(json!({
        "bench": "gates", "decisions": times.len(), "policies": options.policies,
        "caps": options.caps, "history_policies": options.history, "events": options.events,
        "p50_us": micros(0.5), "p99_us": micros(0.99),
        "p999_us": micros(0.999), "decision_bytes": written,
    }))
}
