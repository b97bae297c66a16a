//! Whether a run may begin as the rows are, and which rows count.

use crate::engine::Inner;
use crate::error::StartError;
use crate::permit::Verdict;
use crate::start::Start;
use crate::trust::Rules;
use sluice_core::journal::event::DocumentSource;
use sluice_core::plan::step::{Step, Work};
use sluice_core::port::authority::Authority as _;
use sluice_core::run::id::RunId;
use sluice_core::run::seat::Planned;
use sluice_govern::registry::{Deployment, Posture};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a run may not begin as the rows are.
pub(crate) enum NotAdmitted {
    /// A step names an agent that does not exist, or nothing.
    Unfit(StartError),
    /// The policies refuse it.
    Stopped(Verdict),
}

impl Inner {
    /// The rules to start a run under: not older than those its document was resolved
    /// under, and not newer.
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

    /// Whether a run may begin as the rows are.
    pub(crate) fn admit(
        &self,
        rules: &Arc<Rules>,
        request: &Start,
        id: RunId,
    ) -> Result<(), NotAdmitted> {
        check_bindings(rules, request).map_err(NotAdmitted::Unfit)?;
        self.check_agents(rules, request).map_err(NotAdmitted::Unfit)?;
        self.stopped(rules, request, id)
            .map_or(Ok(()), |verdict| Err(NotAdmitted::Stopped(verdict)))
    }

    /// Every step must have an agent that can do it.
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
                    let message = format!("{what} `{name}` of step `{}` is not at hand", step.id);
                    return Err(StartError::Unresolved(message));
                }
                Work::Command { .. } | Work::Lens(_) => {}
            }
            let default = request.default_agent.as_deref();
            let agent = match request.stored.definition.planned(position, &bindings, default) {
                Planned::Agent(agent) => agent,
                // It waits until an operator assigns a member.
                Planned::Unassigned => continue,
                Planned::Unnamed => return Err(StartError::Agent(no_agent(step))),
            };
            if view.agent(agent).is_none() {
                let known: Vec<&str> = self.agents.names().collect();
                let known = match known.as_slice() {
                    [] => "no agent is set up".to_owned(),
                    known => format!("there is {}", known.join(", ")),
                };
                let message = format!(
                    "step `{}` names the agent `{agent}`, which is not here; {known}",
                    step.id
                );
                return Err(StartError::Agent(message));
            }
        }
        Ok(())
    }
}

/// The deployment that a run is started under. An inline document has none: it is no
/// run of the workflow whose name it says.
pub(crate) fn deployment<'r>(
    rules: &'r Rules,
    request: &Start,
) -> Option<(&'r String, &'r Deployment)> {
    let registered = request.source != DocumentSource::Inline;
    let name = &request.stored.definition.plan.name;
    rules.fabric.deployment(name).filter(|_| registered)
}

/// How much freedom a run has. A run above it that is bounded in nothing lifts no bound
/// of the run's own deployment.
pub(crate) fn posture(rules: &Rules, request: &Start) -> Posture {
    let deployed = deployment(rules, request).map(|(_, one)| one.posture);
    let above = request.posture.filter(|posture| *posture != Posture::default());
    above.or(deployed).unwrap_or_default()
}

/// Which agent has which role: as the deployment says, else as the caller does.
pub(crate) fn bindings(rules: &Rules, request: &Start) -> BTreeMap<String, String> {
    let mut bindings = request.role_bindings.clone();
    let deployed = deployment(rules, request).map(|(_, one)| one.roles.clone());
    bindings.extend(deployed.unwrap_or_default());
    bindings
}

/// A caller binds only roles that the deployment leaves open. What a run inherits from
/// the run above it, or from the run it is made from, gives way without a word.
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
        format!(" (its role `{role}` is bound to none: `--bind {role}=AGENT`)")
    });
    format!(
        "step `{}` names no agent{role}; name one in the document, give the run a default with \
         `--agent NAME`, or let a script answer with `--mock FILE`",
        step.id
    )
}
