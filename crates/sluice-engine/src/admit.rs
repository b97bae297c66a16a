//! Checks a start against the registry: role bindings, agents, policies.

use crate::engine::Inner;
use crate::error::StartError;
use crate::start::Start;
use crate::start_policy::StartDenial;
use crate::trust::Rules;
use sluice_core::id::RunId;
use sluice_core::journal::event::DocumentSource;
use sluice_core::plan::step::{Step, Work};
use sluice_core::port::authority::Authority as _;
use sluice_core::run::seat::Planned;
use sluice_govern::registry::{Deployment, Posture};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a run may not start under the current rows.
pub(crate) enum NotAdmitted {
    /// The request is not valid: for example, a step names an unknown agent.
    Invalid(StartError),
    /// The policies deny it.
    Denied(StartDenial),
}

impl Inner {
    /// The rules to start a run under: exactly those that its document was resolved under.
    pub(crate) async fn rules_for(
        self: &Arc<Self>,
        request: &Start,
    ) -> Result<Arc<Rules>, StartError> {
        let rules = self.trust.rules();
        let Some(epoch) = request.resolved_under.filter(|epoch| *epoch != rules.fabric.epoch)
        else {
            return Ok(rules);
        };
        if rules.fabric.epoch < epoch {
            self.refresh_rules().await?;
        }
        let rules = self.trust.rules();
        if rules.fabric.epoch == epoch { Ok(rules) } else { Err(StartError::Moved) }
    }

    /// Checks whether a run may start under these rules.
    pub(crate) fn admit(
        &self,
        rules: &Arc<Rules>,
        request: &Start,
        id: RunId,
    ) -> Result<(), NotAdmitted> {
        check_bindings(rules, request).map_err(NotAdmitted::Invalid)?;
        self.check_agents(rules, request).map_err(NotAdmitted::Invalid)?;
        self.start_denial(rules, request, id)
            .map_or(Ok(()), |denial| Err(NotAdmitted::Denied(denial)))
    }

    /// Checks that every step has an agent that can execute it.
    pub(crate) fn check_agents(
        &self,
        rules: &Arc<Rules>,
        request: &Start,
    ) -> Result<(), StartError> {
        let plan = &request.stored.definition.plan;
        let bindings = bindings(rules, request);
        let view = self.view_under(Arc::clone(rules), self.clock.now_ms());
        for (position, step) in (0u32..).zip(&plan.steps) {
            match &step.work {
                Work::Approval | Work::Workflow(_) => continue,
                Work::Unresolved { what, name } => {
                    let message = format!("{what} `{name}` of step `{}` was not found", step.id);
                    return Err(StartError::Unresolved(message));
                }
                Work::Command { .. } | Work::Lens(_) => {}
            }
            let default = request.default_agent.as_deref();
            let agent = match request.stored.definition.planned(position, &bindings, default) {
                Planned::Agent(agent) => agent,
                // The step waits until an operator assigns a team member.
                Planned::Unassigned => continue,
                Planned::Unnamed => return Err(StartError::Agent(no_agent(step))),
            };
            if view.agent(agent).is_none() {
                let known: Vec<&str> = self.agents.names().collect();
                let known = match known.as_slice() {
                    [] => "no agent is configured".to_owned(),
                    known => format!("configured: {}", known.join(", ")),
                };
                let message = format!(
                    "step `{}` names the agent `{agent}`, which is not configured; {known}",
                    step.id
                );
                return Err(StartError::Agent(message));
            }
        }
        Ok(())
    }
}

/// The deployment that a run starts under. An inline document has none, even if it
/// bears the name of a deployed workflow.
pub(crate) fn deployment<'r>(
    rules: &'r Rules,
    request: &Start,
) -> Option<(&'r String, &'r Deployment)> {
    let registered = request.source != DocumentSource::Inline;
    let name = &request.stored.definition.plan.name;
    rules.fabric.deployment(name).filter(|_| registered)
}

/// Autonomy of a run. A parent without limits does not lift the limits of the run's own
/// deployment.
pub(crate) fn posture(rules: &Rules, request: &Start) -> Posture {
    let deployed = deployment(rules, request).map(|(_, one)| one.posture);
    let above = request.posture.filter(|posture| *posture != Posture::default());
    above.or(deployed).unwrap_or_default()
}

/// Agent of each role: the deployment takes precedence over the caller.
pub(crate) fn bindings(rules: &Rules, request: &Start) -> BTreeMap<String, String> {
    let mut bindings = request.role_bindings.clone();
    let deployed = deployment(rules, request).map(|(_, one)| one.roles.clone());
    bindings.extend(deployed.unwrap_or_default());
    bindings
}

/// A caller may bind only roles that the deployment leaves open. Bindings inherited from
/// a parent or origin run are overridden silently.
pub(crate) fn check_bindings(rules: &Rules, request: &Start) -> Result<(), StartError> {
    if request.parent.is_some() || request.origin.is_some() {
        return Ok(());
    }
    let Some((name, deployed)) = deployment(rules, request) else { return Ok(()) };
    let taken = |(role, agent): &(&String, &String)| {
        deployed.roles.get(*role).is_some_and(|bound| bound != *agent)
    };
    match request.role_bindings.iter().find(taken) {
        None => Ok(()),
        Some((role, _)) => Err(StartError::RoleBound {
            role: role.clone(),
            deployment: name.clone(),
            agent: deployed.roles[role].clone(),
        }),
    }
}

fn no_agent(step: &Step) -> String {
    let role = step.role.as_ref().map_or_else(String::new, |role| {
        format!(" (its role `{role}` is not bound: `--bind {role}=AGENT`)")
    });
    format!(
        "step `{}` names no agent{role}; name one in the document, set a default with \
 `--agent NAME`, or use scripted answers with `--mock FILE`",
        step.id
    )
}
