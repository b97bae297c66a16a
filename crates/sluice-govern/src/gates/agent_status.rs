//! Gate 2: the agent must exist and be allowed to work.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::decision::Figure;
use crate::facts::Subject;
use crate::registry::{AgentStatus, Phase};

pub(super) const GATE: Gate =
    Gate { name: "agent_status", code: "agent_disabled", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let Subject::Agent(name, agent) = case.facts.subject else { return Finding::skip() };
    let Some(agent) = agent else {
        let message = format!("there is no agent {name}");
        return Finding::block(message, format!("register agent {name}, or name another"));
    };
    let phase = agent.phase_at(case.facts.now_ms);
    let no = |what: &str, hint: String| Finding::block(format!("agent {name} is {what}"), hint);
    let finding = match agent.status {
        AgentStatus::Paused => no("paused", format!("resume agent {name}")).paused(),
        AgentStatus::Terminated => no("terminated", "name another agent".to_owned()),
        AgentStatus::Error => no("broken", format!("repair agent {name}, then set it idle")),
        AgentStatus::Deprecated => no("deprecated", "name the agent that replaced it".to_owned()),
        AgentStatus::Idle | AgentStatus::Running if phase == Phase::Sunset => {
            let hint = match agent.phase {
                Phase::Poc => format!("the trial is over: extend it, or promote agent {name}"),
                Phase::Staging | Phase::Production | Phase::Sunset => {
                    "name the agent that replaced it".to_owned()
                }
            };
            Finding::block(format!("agent {name} has ended (phase sunset)"), hint)
        }
        AgentStatus::Idle | AgentStatus::Running => Finding::pass(),
    };
    finding.figures([
        ("status", Figure::Word(agent.status.as_str())),
        ("phase", Figure::Word(phase.as_str())),
    ])
}
