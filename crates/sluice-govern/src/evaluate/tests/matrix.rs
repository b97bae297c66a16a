//! A readable matrix of principals by gates by outcomes.
//!
//! Each case changes one thing of a scene that is allowed. The verdict of the gate is
//! shown in full for an agent in production; below it are the results for other
//! principals in the same case, one letter per gate.

use super::scene::{NOW_MS, Scene, Who, cap, list, money};
use crate::decision::{Decision, GateOutcome};
use crate::facts::{CapGate, Verb, Worst};
use crate::registry::{
    Agent, AgentStatus, ExecutionTarget, Health, Held, POC_MS, Phase, Posture, Rate, TrustedContext,
};
use expect_test::expect_file;
use std::fmt::Write as _;

type SceneChange = fn(&mut Scene);

const ASK_ABOUT_MONEY: &str = "@id(\"money\") @action(\"require_approval\") @category(\"budget\") \
     @approvers(\"ada, finance\") forbid (principal, action, resource);";

const ASK: &str = "@id(\"ask\") @action(\"require_approval\") @approvers(\"security\") \
     @description(\"People look first.\") forbid (principal, action, resource);";

/// The gate, the case, and its change.
const CASES: &[(&str, &str, SceneChange)] = &[
    ("gateway_health", "healthy", |_| {}),
    ("gateway_health", "degraded", |s| s.health = Health::Degraded),
    ("gateway_health", "offline", |s| s.health = Health::Offline),
    ("gateway_health", "paused", |s| s.gateway().paused = true),
    ("gateway_health", "no such gateway", |s| s.gateway = Some(("moon".to_owned(), None))),
    ("gateway_health", "no route", |s| s.gateway = Some((String::new(), None))),
    ("gateway_health", "a gateway of no provider", |s| s.serves = false),
    ("gateway_health", "a gateway of a provider without an adapter", |s| {
        s.gateway().provider = "claude".to_owned();
        s.serves = false;
    }),
    ("gateway_health", "a native agent and a gateway with a URL", |s| {
        s.gateway().url = Some("http://bridge.example".to_owned());
        on_row(s, |a| a.execution_target = Some(ExecutionTarget::Native));
    }),
    ("gateway_health", "everything is stopped", |s| s.held = Held::Yes),
    ("gateway_health", "nowhere", |s| s.gateway = None),
    ("gateway_health", "nowhere, everything is stopped", |s| {
        s.gateway = None;
        s.held = Held::Yes;
    }),
    ("agent_status", "idle", |_| {}),
    ("agent_status", "terminated", |s| on_row(s, |a| a.status = AgentStatus::Terminated)),
    ("agent_status", "error", |s| on_row(s, |a| a.status = AgentStatus::Error)),
    ("agent_status", "deprecated", |s| on_row(s, |a| a.status = AgentStatus::Deprecated)),
    ("agent_status", "a trial that is over", |s| {
        on_row(s, |a| {
            a.phase = Phase::Poc;
            a.phase_since_ms = Some(NOW_MS - POC_MS);
        });
    }),
    ("concurrency", "no limit", |s| s.running = 1000),
    ("concurrency", "a slot is free", |s| busy(s, 1)),
    ("concurrency", "no slot is free", |s| busy(s, 2)),
    ("rate_limit", "no limit", |s| s.in_window = 1000),
    ("rate_limit", "below it", |s| sent(s, 9)),
    ("rate_limit", "reached", |s| sent(s, 10)),
    ("budget_agent", "no cap", |_| {}),
    ("budget_agent", "enough is left", |s| s.caps = vec![cap(CapGate::Agent, "month", 100, 75)]),
    ("budget_agent", "too little is left", |s| {
        s.caps = vec![cap(CapGate::Agent, "role", 100, 0), cap(CapGate::Agent, "month", 100, 76)];
    }),
    ("budget_agent", "too little is left, and a policy asks", |s| {
        s.caps = vec![cap(CapGate::Agent, "month", 100, 76)];
        s.policies = ASK_ABOUT_MONEY.to_owned();
    }),
    ("budget_agent", "an overrun closed it", |s| {
        let mut closed = cap(CapGate::Agent, "month", 100, 0);
        closed.over = money(1);
        s.caps = vec![closed];
    }),
    ("budget_agent", "unknown cost", |s| {
        s.caps = vec![cap(CapGate::Agent, "month", 100, 0)];
        s.worst = Worst::Unknown;
    }),
    ("budget_envelopes", "no cap, unknown cost", |s| s.worst = Worst::Unknown),
    ("budget_envelopes", "enough is left in all", |s| {
        s.caps =
            vec![cap(CapGate::Budget, "daily", 100, 0), cap(CapGate::Budget, "monthly", 500, 475)];
    }),
    ("budget_envelopes", "too little is left in two of three", |s| {
        s.caps = vec![
            cap(CapGate::Budget, "daily", 10, 0),
            cap(CapGate::Budget, "monthly", 500, 0),
            cap(CapGate::Budget, "total", 500, 490),
        ];
    }),
    ("budget_envelopes", "it costs nothing, and nothing is left", |s| {
        s.caps = vec![cap(CapGate::Budget, "daily", 100, 100)];
        s.worst = Worst::Known(money(0));
    }),
    ("budget_envelopes", "it costs nothing, and the cap was lowered below what is held", |s| {
        s.caps = vec![cap(CapGate::Budget, "daily", 100, 101)];
        s.worst = Worst::Known(money(0));
    }),
    ("budget_envelopes", "too little is left, and a policy asks", |s| {
        s.caps = vec![cap(CapGate::Budget, "daily", 10, 0)];
        s.policies = ASK_ABOUT_MONEY.to_owned();
    }),
    ("trust_level", "enough", |s| s.gateway().min_trust_level = 5),
    ("trust_level", "too little", |s| s.gateway().min_trust_level = 6),
    ("trust_level", "capped by the deployment", |s| {
        s.gateway().min_trust_level = 5;
        s.trust_ceiling = 4;
    }),
    ("trust_level", "nowhere", |s| s.gateway = None),
    ("context_trust", "no role", |_| {}),
    ("context_trust", "an allowed environment", |s| {
        s.role().allowed_environments = list(&["local"]);
    }),
    ("context_trust", "another environment", |s| {
        s.role().allowed_environments = list(&["dev", "test"]);
    }),
    ("context_trust", "accepted inputs", |s| inputs(s, &["human"], Some(60_000))),
    ("context_trust", "inputs of another class", |s| inputs(s, &["human", "tool"], Some(0))),
    ("context_trust", "inputs that are too old", |s| inputs(s, &["human"], Some(60_001))),
    ("context_trust", "inputs of unknown age", |s| inputs(s, &["human"], None)),
    ("context_trust", "no inputs", |s| inputs(s, &[], None)),
    ("policy_rules", "nothing matches", |_| {}),
    ("policy_rules", "a hard block", |s| own(s, "")),
    ("policy_rules", "a soft block", |s| own(s, "@enforcement(\"soft\")")),
    ("policy_rules", "an audited block", |s| own(s, "@enforcement(\"audit\")")),
    ("policy_rules", "a warning", |s| own(s, "@action(\"warn\")")),
    ("policy_rules", "a note", |s| own(s, "@action(\"log\")")),
    ("policy_rules", "a soft question", |s| {
        own(s, "@action(\"require_approval\") @enforcement(\"soft\")");
    }),
    ("policy_rules", "a question about money that is not short", |s| {
        s.policies = ASK_ABOUT_MONEY.to_owned();
    }),
    ("policy_rules", "a policy that cannot be evaluated", |s| {
        s.policies = "@id(\"sum\") forbid (principal, action, resource) \
                      when { context.time.ms + 9223372036854775807 > 0 };"
            .to_owned();
    }),
    ("policy_rules", "a tool the agent has", |s| tools(s, "read")),
    ("policy_rules", "a tool the agent does not have", |s| tools(s, "fly")),
    ("policy_rules", "a tool the agent must not use", |s| tools(s, "mail")),
    ("policy_rules", "only reading, with a tool that reads", |s| {
        tools(s, "read");
        s.posture = Posture::Retrieval;
    }),
    ("policy_rules", "only reading, with a tool that writes", |s| {
        tools(s, "write");
        s.posture = Posture::Retrieval;
    }),
    ("policy_rules", "only reading, without tools", |s| s.posture = Posture::Retrieval),
    ("policy_rules", "only reading, on a gateway that is a shell", |s| {
        s.gateway().provider = "shell".to_owned();
        s.posture = Posture::Retrieval;
    }),
    ("policy_rules", "calling a tool the agent must not use", |s| {
        tools(s, "read");
        s.verb = Verb::UseTool;
        s.object = Some("mail".to_owned());
    }),
    ("approval_required", "no approval required", |_| {}),
    ("approval_required", "the step asks", |s| s.asks = Some(list(&["ada"]))),
    ("approval_required", "the posture asks", |s| s.posture = Posture::ApprovalRequired),
    ("approval_required", "a policy asks", |s| s.policies = ASK.to_owned()),
    ("approval_required", "all of them ask", |s| {
        s.asks = Some(Vec::new());
        s.posture = Posture::ApprovalRequired;
        s.policies = ASK.to_owned();
    }),
    ("approval_required", "a person agreed", |s| {
        s.policies = ASK.to_owned();
        agree(s);
    }),
    ("approval_required", "a person agreed to something else", |s| {
        s.policies = ASK.to_owned();
        agree(s);
        s.command = "write something else".to_owned();
    }),
    ("approval_required", "a person agreed to more than is allowed now", |s| {
        s.policies = ASK.to_owned();
        agree(s);
        let more = crate::decision::Constraints {
            max_cost: Some(money(1000)),
            ..crate::decision::Constraints::default()
        };
        s.grant = Some((s.decide().action_digest, more));
    }),
    ("approval_required", "a person agreed, and a budget is short", |s| {
        s.policies = format!("{ASK}\n{ASK_ABOUT_MONEY}");
        agree(s);
        s.caps = vec![cap(CapGate::Budget, "daily", 10, 0)];
    }),
    ("approval_required", "a budget is short and asks, and a policy blocks", |s| {
        s.caps = vec![cap(CapGate::Budget, "daily", 10, 0)];
        s.policies =
            format!("{ASK_ABOUT_MONEY}\n@id(\"no\") forbid (principal, action, resource);");
    }),
];

/// Other principals in the same case: name and difference.
const SUBJECTS: &[(&str, SceneChange)] = &[
    ("staging", |s| on_row(s, |agent| agent.phase = Phase::Staging)),
    ("poc", |s| {
        on_row(s, |agent| {
            if agent.phase != Phase::Poc {
                agent.phase = Phase::Poc;
                agent.phase_since_ms = Some(NOW_MS - POC_MS + 1);
            }
        });
    }),
    ("sunset", |s| on_row(s, |agent| agent.phase = Phase::Sunset)),
    ("paused", |s| on_row(s, |agent| agent.status = AgentStatus::Paused)),
    ("missing", |s| s.who = Who::Agent("ghost".to_owned(), None)),
    ("shell", |s| {
        if let Who::Agent(name, _) = &mut s.who {
            "shell".clone_into(name);
        }
    }),
    ("user", |s| {
        s.who = Who::User("ada".to_owned());
        s.verb = Verb::StartRun;
    }),
];

fn on_row(scene: &mut Scene, change: impl FnOnce(&mut Agent)) {
    change(scene.agent());
}

fn busy(scene: &mut Scene, running: u32) {
    scene.running = running;
    scene.agent().max_concurrent_steps = Some(2);
}

fn sent(scene: &mut Scene, in_window: u32) {
    scene.in_window = in_window;
    scene.agent().rate = Some(Rate { limit: 10, window_s: 60 });
}

fn inputs(scene: &mut Scene, classes: &[&'static str], age_ms: Option<u64>) {
    scene.classes = classes.to_vec();
    scene.age_ms = age_ms;
    scene.role().trusted_context = Some(TrustedContext {
        accepted_source_classes: list(&["human", "agent"]),
        max_age_s: Some(60),
    });
}

fn own(scene: &mut Scene, annotations: &str) {
    scene.policies = format!("@id(\"own\") {annotations} forbid (principal, action, resource);");
}

fn tools(scene: &mut Scene, tool: &str) {
    scene.tools = list(&[tool]);
    let tools = &mut scene.agent().tools;
    tools.allow = list(&["read", "write"]);
    tools.deny = list(&["mail"]);
    tools.read_only = list(&["read"]);
}

fn agree(scene: &mut Scene) {
    let constraints = crate::decision::Constraints::default();
    scene.grant = Some((scene.decide().action_digest, constraints));
}

/// One letter per gate; a warning that only observes is an `o`.
fn letters(decision: &Decision) -> String {
    let letter = |verdict: &crate::decision::GateVerdict| match verdict.outcome {
        GateOutcome::Pass => '.',
        GateOutcome::Warn if verdict.observe => 'o',
        GateOutcome::Warn => 'w',
        GateOutcome::Block => 'B',
        GateOutcome::Hold => 'H',
        GateOutcome::Skip => '-',
    };
    decision.gates.iter().map(letter).collect()
}

fn summary(decision: &Decision) -> String {
    let mut text = format!("{} {:?}", letters(decision), decision.disposition).to_lowercase();
    if let Some(by) = &decision.blocked_by {
        let _ = write!(text, " by {} {}", by.gate, by.code);
        text.push_str(if by.retryable { ", retryable" } else { "" });
        text.push_str(if by.paused { ", paused" } else { "" });
    }
    text.replacen(&letters(decision).to_lowercase(), &letters(decision), 1)
}

fn draw(text: &mut String, gate: &str, title: &str, change: SceneChange) {
    let mut scene = Scene::default();
    change(&mut scene);
    let decision = scene.decide();
    let _ = writeln!(text, "\n{gate}: {title}");
    let _ = writeln!(text, "  {:<11}{}", "production", summary(&decision));
    let verdict = decision.gates.iter().find(|verdict| verdict.gate == gate).unwrap();
    for (name, value) in [("message", &verdict.message), ("hint", &verdict.hint)] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {name}: {value}");
        }
    }
    if !verdict.figures.is_empty() {
        let figures = serde_json::to_string(&verdict.figures).unwrap();
        let digests = decision.action_digest.as_str();
        let _ = writeln!(text, "    figures: {}", figures.replace(digests, "(the action's)"));
    }
    for hold in &decision.holds {
        let policy = hold.policy.as_deref().unwrap_or("no policy");
        let approvers = hold.approvers.join(", ");
        let _ = writeln!(text, "    held by {policy} for [{approvers}]: {}", hold.reason);
    }
    if !decision.constraints.is_empty() {
        let constraints = serde_json::to_string(&decision.constraints).unwrap();
        let _ = writeln!(text, "    constraints: {constraints}");
    }
    for (name, differ) in SUBJECTS {
        let mut other = Scene::default();
        change(&mut other);
        differ(&mut other);
        let decision = other.decide();
        let _ = writeln!(text, "  {name:<11}{}", summary(&decision));
        let verdict = decision.gates.iter().find(|verdict| verdict.gate == gate).unwrap();
        if verdict.observe {
            let _ = writeln!(text, "    message: {}", verdict.message.as_deref().unwrap());
        }
    }
}

#[test]
fn every_gate_says_what_it_should_to_everyone() {
    let mut text = "Gates in order: one letter each.\n. pass, w warn, o observe (poc), B block, \
                    H hold, - skip\n"
        .to_owned();
    for (gate, title, change) in CASES {
        draw(&mut text, gate, title, *change);
    }
    expect_file!["../../../tests/golden/matrix.txt"].assert_eq(&text);
}
