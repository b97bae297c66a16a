//! Policies on the start of a run.

use crate::engine::Inner;
use crate::error::StartError;
use crate::start::Start;
use crate::trust::Rules;
use serde_json::json;
use sluice_core::id::RunId;
use sluice_core::port::authority::Authority as _;
use sluice_core::port::ledger::Entry;
use sluice_core::port::store::StoreError;
use sluice_core::seen::facts_of_caller;
use sluice_govern::action::Action;
use sluice_govern::ask;
use sluice_govern::decision::{Constraints, Disposition};
use sluice_govern::facts::{Facts, FlowFacts, Inputs, RunFacts, Subject, Verb, Worst};
use sluice_govern::money::Money;
use std::borrow::Cow;
use std::sync::Arc;

impl Inner {
    /// Records in the audit that the policies denied a start; returns the error.
    pub(crate) async fn record_denial(
        &self,
        request: &Start,
        denial: StartDenial,
    ) -> Result<StartError, StoreError> {
        let StartDenial { code, message, policy } = denial;
        let entry = Entry {
            at_ms: self.clock.now_ms(),
            category: "governance",
            what: "run_refused".to_owned(),
            actor: request.initiator.clone(),
            resource_type: "workflow".to_owned(),
            resource_id: request.workflow().into_owned(),
            event: None,
            detail: json!({"code": code, "message": message, "policy_hash": policy}),
        };
        self.store.record(self.node, vec![entry]).await?;
        Ok(StartError::Blocked { code, message })
    }

    /// Evaluates the policies on the start of a run; `None` if they allow it. A child was
    /// already decided in its parent run.
    pub(crate) fn start_denial(
        &self,
        rules: &Arc<Rules>,
        request: &Start,
        id: RunId,
    ) -> Option<StartDenial> {
        if request.parent.is_some() {
            return None;
        }
        let now_ms = self.clock.now_ms();
        let authority = self.view_under(Arc::clone(rules), now_ms);
        let reads_values = authority.policies().reads_values(Verb::StartRun);
        let plan = &request.stored.definition.plan;
        let run = id.to_string();
        let workflow = request.workflow();
        let facts = Facts {
            now_ms,
            verb: Verb::StartRun,
            subject: Subject::User(&request.initiator),
            role: None,
            place: None,
            object: None,
            held: authority.fabric().held,
            running: 0,
            in_window: 0,
            caps: Vec::new(),
            worst: Worst::Known(Money::ZERO),
            trust_ceiling: u8::MAX,
            inputs: Inputs::default(),
            call: reads_values.then(|| facts_of_caller(&request.args)),
            flow: FlowFacts::default(),
            tool: None,
            history: None,
            posture: request.posture.unwrap_or_default(),
            run: RunFacts {
                id: &run,
                workflow: &workflow,
                version: plan.version,
                initiator: &request.initiator,
                depth: request.depth,
                registered: request.source.is_registered(),
                definition: &request.stored.definition.hash,
            },
            step: None,
            asks: None,
            grant: None,
            action: action(request, &workflow),
        };
        let decision = ask(&facts, authority.policies());
        let verdict = match decision.disposition {
            Disposition::Allow => return None,
            Disposition::Block => decision.blocked_by.as_ref().map(|by| (by.gate, by.code)),
            Disposition::Hold => Some(("approval_required", "start_needs_approval")),
        };
        let (gate, code) = verdict.unwrap_or(("policy_rules", "policy_blocked"));
        let one = decision.gates.into_iter().find(|one| one.gate == gate);
        let message = one.and_then(|one| one.message).unwrap_or_default().into();
        Some(StartDenial { code, message, policy: authority.policies().hash().to_owned() })
    }
}

/// A start that the policies deny.
pub(crate) struct StartDenial {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Hash of the policies.
    policy: String,
}

fn action<'a>(request: &'a Start, workflow: &'a str) -> Action<'a> {
    Action {
        agent: "",
        gateway: "",
        workflow,
        step: "",
        command: "",
        stdin: None,
        env: &[],
        cwd: None,
        inputs: &request.args,
        memory: None,
        session: None,
        model: None,
        system_prompt: None,
        tools: &[],
        constraints: Constraints::default(),
        cost_ceiling: None,
        policies: Cow::Borrowed(""),
        definition: &request.stored.definition.hash,
    }
}
