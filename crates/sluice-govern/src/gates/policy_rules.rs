//! Gate 9: policies, the posture of the run, and the agent's tools.

use super::{Finding, Gate, Trial};
use crate::case::Case;
use crate::facts::{Facts, Subject, Verb};
use crate::registry::{Agent, Posture};
use crate::tools::names;

pub(super) const GATE: Gate =
    Gate { name: "policy_rules", code: "policy_blocked", trial: Trial::Enforced, judge };

fn judge(case: &mut Case<'_>) -> Finding {
    let facts = case.facts;
    let matches = case.matches();
    let finding = if let Some(why) = matches.blocked() {
        let hint = match matches.rules.iter().find(|rule| rule.blocks()) {
            _ if !matches.errors.is_empty() => "correct the policy".to_owned(),
            _ if !matches.permitted => {
                format!("write a policy that permits {}", facts.verb.as_str())
            }
            Some(rule) => format!("change the step, or policy {}", rule.name),
            None => "change the policies".to_owned(),
        };
        Finding::block(why, hint)
    } else if let Some((why, hint)) = tools(facts).or_else(|| retrieval(facts)) {
        Finding::block(why, hint)
    } else {
        let warning: Vec<&str> = matches
            .rules
            .iter()
            .filter(|rule| rule.warns())
            .map(|rule| rule.name.as_str())
            .collect();
        if warning.is_empty() {
            Finding::pass()
        } else {
            Finding::warn(format!("warning by {}", warning.join(", ")))
        }
    };
    match matches.rules.len() {
        0 => finding,
        matched => finding.figures([("matched", matched.into())]),
    }
}

/// The requested tools, including the tool being called.
fn requested_tools<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f str> {
    let called = facts.object.filter(|_| facts.verb == Verb::UseTool);
    facts.action.tools.iter().map(String::as_str).chain(called)
}

/// Why the agent may not use a requested tool, with a hint.
fn tools(facts: &Facts<'_>) -> Option<(String, String)> {
    let Subject::Agent(name, Some(Agent { tools, .. })) = facts.subject else { return None };
    for tool in requested_tools(facts) {
        if names(&tools.deny, tool) {
            let message = format!("agent {name} must not use tool {tool}");
            return Some((message, format!("drop {tool} from the step")));
        }
        if !tools.allow.is_empty() && !names(&tools.allow, tool) {
            let message = format!("agent {name} does not have tool {tool}");
            let hint = format!("drop {tool} from the step, or allow it for agent {name}");
            return Some((message, hint));
        }
    }
    None
}

/// Why a read-only run may not do this, with a hint.
fn retrieval(facts: &Facts<'_>) -> Option<(String, String)> {
    let Subject::Agent(name, Some(agent)) = facts.subject else { return None };
    if facts.posture != Posture::Retrieval {
        return None;
    }
    let provider = facts.place.and_then(|place| place.gateway).map(|row| row.provider.as_str());
    let acts = match (name, provider) {
        ("shell", _) | (_, Some("shell")) => Some("a shell may do anything"),
        ("http", _) => Some("an HTTP request may change something"),
        _ => None,
    };
    if let Some(why) = acts.filter(|_| facts.verb == Verb::DispatchStep) {
        let message = format!("the run is read-only: {why}");
        let hint = "give the step to an agent with read-only tools, or change the posture";
        return Some((message, hint.to_owned()));
    }
    let tool = requested_tools(facts).find(|tool| !names(&agent.tools.read_only, tool))?;
    let message = format!("the run is read-only: tool {tool} is not marked read-only");
    Some((message, format!("drop {tool} from the step, or mark it read_only for agent {name}")))
}
