//! Contradictions between rows.

use super::{find, names};
use crate::code::Code;
use crate::doc::setup::RowFault;
use crate::doc::team;
use crate::journal::event::DocumentSource;
use crate::suggest::suggest;
use serde::de::DeserializeOwned;
use sluice_govern::registry::{
    Agent, Budget, Deployment, Gateway, Hook, Instruction, Kind, MemoryProfile, PROVIDERS, Row,
    Schedule, Scope, Webhook, WorkflowVersion,
};
use sluice_govern::route::is_out_of_reach;
use std::collections::BTreeMap;

/// Built-in agents, which need no row.
pub(crate) const ALWAYS_THERE: [&str; 3] = ["http", "mock", "shell"];

/// Names of models or products that people write instead of the provider.
const PROVIDER_NICKNAMES: [(&str, &str); 10] = [
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("ollama", "openai"),
    ("vllm", "openai"),
    ("openrouter", "openai"),
    ("gemini", "google"),
    ("vertex", "google"),
    ("webhook", "http"),
    ("bash", "shell"),
];

/// Finds all contradictions between rows.
pub fn faults(rows: &[Row]) -> Vec<RowFault> {
    let mut finder = FaultFinder { rows, found: Vec::new() };
    for row in rows {
        match row.kind {
            Kind::Agent => finder.agent(row),
            Kind::Gateway => finder.gateway(row),
            Kind::Deployment => finder.deployment(row),
            Kind::Budget => finder.budget(row),
            Kind::Schedule => finder.schedule(row),
            Kind::Workflow => finder.document(row),
            Kind::Hook => finder.hook(row),
            Kind::Webhook => finder.webhook(row),
            Kind::Memory => finder.memory(row),
            Kind::Instruction => finder.instruction(row),
            _ => {}
        }
    }
    finder.check_unique(Kind::Gateway, "default", "is the default gateway", |row| {
        let gateway: Option<Gateway> = read(row);
        gateway.filter(|gateway| gateway.default).map(|_| String::new())
    });
    finder.check_unique(
        Kind::Deployment,
        "active",
        "is the active deployment of the workflow",
        |row| {
            let deployment: Option<Deployment> = read(row);
            deployment.filter(|one| one.active).map(|one| one.workflow)
        },
    );
    finder.found
}

struct FaultFinder<'r> {
    rows: &'r [Row],
    found: Vec<RowFault>,
}

impl FaultFinder<'_> {
    fn agent(&mut self, row: &Row) {
        let Some(agent) = read::<Agent>(row) else { return };
        if let Some(gateway) = &agent.gateway {
            self.check_exists(row, &["gateway"], Kind::Gateway, gateway);
            self.check_native(row, &["execution_target"], (&row.name, &agent), gateway);
        }
        if let Some(memory) = &agent.memory {
            self.check_exists(row, &["memory"], Kind::Memory, memory);
        }
    }

    fn memory(&mut self, row: &Row) {
        let Some(memory) = read::<MemoryProfile>(row) else { return };
        for (at, note) in memory.notes.iter().enumerate() {
            self.check_exists(row, &["notes", &at.to_string()], Kind::Note, note);
        }
        if let Some(last) = &memory.last_outputs {
            self.check_exists(row, &["last_outputs", "agent"], Kind::Agent, &last.agent);
        }
    }

    fn instruction(&mut self, row: &Row) {
        let Some(instruction) = read::<Instruction>(row) else { return };
        for (at, agent) in instruction.agents.iter().enumerate() {
            self.check_exists(row, &["agents", &at.to_string()], Kind::Agent, agent);
        }
    }

    fn gateway(&mut self, row: &Row) {
        let Some(gateway) = read::<Gateway>(row) else { return };
        for (at, agent) in gateway.agents.iter().enumerate() {
            self.check_exists(row, &["agents", &at.to_string()], Kind::Agent, agent);
        }
        self.provider(row, &gateway);
        if gateway.provider == "http" && gateway.url.is_none() && gateway.base_url.is_none() {
            self.found.push(RowFault {
                kind: row.kind,
                name: row.name.clone(),
                path: vec!["provider".to_owned()],
                code: Code::MissingField,
                message: "a gateway with the provider `http` needs a `base_url`".to_owned(),
                hint: Some(
                    "set `base_url` to the URL that receives the steps; for a bridge, set `url`"
                        .to_owned(),
                ),
            });
        }
    }

    /// Reports a provider for which this process has no adapter. A bridge has its own names
    /// for adapters.
    fn provider(&mut self, row: &Row, gateway: &Gateway) {
        let written = gateway.provider.as_str();
        if gateway.url.is_some() || written.is_empty() || PROVIDERS.contains(&written) {
            return;
        }
        let folded = written.to_ascii_lowercase();
        let nickname = PROVIDER_NICKNAMES.iter().find(|(name, _)| folded.starts_with(name));
        let near = nickname.map(|(_, meant)| *meant).or_else(|| suggest(written, PROVIDERS));
        let all = PROVIDERS.join("`, `");
        let hint = match near {
            Some(near) => format!("did you mean `{near}`? Providers are `{all}`"),
            None => format!("providers are `{all}`; for an adapter of a bridge, name its `url`"),
        };
        self.found.push(RowFault {
            kind: row.kind,
            name: row.name.clone(),
            path: vec!["provider".to_owned()],
            code: Code::UnknownProvider,
            message: format!("there is no provider `{written}`"),
            hint: Some(hint),
        });
    }

    /// Reports a native agent that is pinned to a gateway with a URL.
    fn check_native(
        &mut self,
        row: &Row,
        path: &[&str],
        (name, agent): (&str, &Agent),
        gateway: &str,
    ) {
        let gateway_row = find(self.rows, Kind::Gateway, gateway).and_then(read::<Gateway>);
        if !gateway_row.is_some_and(|gateway| is_out_of_reach(agent, &gateway)) {
            return;
        }
        self.found.push(RowFault {
            kind: row.kind,
            name: row.name.clone(),
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            code: Code::ConflictingRows,
            message: format!("agent `{name}` is native, and gateway `{gateway}` has a URL"),
            hint: Some(format!(
                "write `execution_target: cloud`, or pin `{name}` to a gateway without a URL"
            )),
        });
    }

    fn deployment(&mut self, row: &Row) {
        let Some(deployment) = read::<Deployment>(row) else { return };
        if let Some(gateway) = &deployment.gateway {
            self.check_exists(row, &["gateway"], Kind::Gateway, gateway);
        }
        for (role, agent) in &deployment.roles {
            self.check_exists(row, &["roles", role], Kind::Agent, agent);
        }
        for (agent, gateway) in &deployment.agent_gateways {
            let path = ["agent_gateways", agent.as_str()];
            self.check_exists(row, &path, Kind::Agent, agent);
            self.check_exists(row, &path, Kind::Gateway, gateway);
            if let Some(pinned) = find(self.rows, Kind::Agent, agent).and_then(read::<Agent>) {
                self.check_native(row, &path, (agent, &pinned), gateway);
            }
        }
    }

    fn budget(&mut self, row: &Row) {
        let Some(budget) = read::<Budget>(row) else { return };
        let Some(of) = &budget.of else { return };
        match budget.scope {
            Scope::Gateway => self.check_exists(row, &["of"], Kind::Gateway, of),
            Scope::Agent => self.check_exists(row, &["of"], Kind::Agent, of),
            // Workflows also come from files, and runs are temporary.
            Scope::Global | Scope::Workflow | Scope::Run => {}
        }
    }

    fn schedule(&mut self, row: &Row) {
        if let Some(schedule) = read::<Schedule>(row) {
            self.workflow(row, &["workflow"], &schedule.workflow);
        }
    }

    fn document(&mut self, row: &Row) {
        let Some(version) = read::<WorkflowVersion>(row) else { return };
        if let Some(team) = team::named(&version.text) {
            self.check_exists(row, &["team"], Kind::Team, &team);
        }
    }

    fn hook(&mut self, row: &Row) {
        if let Some(hook) = read::<Hook>(row) {
            self.workflow(row, &["workflow"], &hook.workflow);
        }
    }

    fn webhook(&mut self, row: &Row) {
        let Some(webhook) = read::<Webhook>(row) else { return };
        for (at, workflow) in webhook.workflows.iter().enumerate() {
            let path = ["workflows", &at.to_string()];
            // Only the name of a run's workflow decides, not its version.
            match workflow.split_once('@') {
                // Documents sent with a start request are not registered.
                None if workflow.starts_with(DocumentSource::INLINE) => {}
                None => self.workflow(row, &path, workflow),
                Some((name, _)) => self.found.push(RowFault {
                    kind: row.kind,
                    name: row.name.clone(),
                    path: path.map(str::to_owned).to_vec(),
                    code: Code::UnknownRow,
                    message: format!(
                        "a webhook follows all versions of a workflow, not `{workflow}`"
                    ),
                    hint: Some(format!("write `{name}`")),
                }),
            }
        }
    }

    /// Reports a workflow, or a version of one, that is not registered.
    fn workflow(&mut self, row: &Row, path: &[&str], wanted: &str) {
        let there = || names(self.rows, Kind::Workflow).filter_map(WorkflowVersion::split);
        let known = there()
            .any(|(name, version)| name == wanted || WorkflowVersion::row(name, version) == wanted);
        if known {
            return;
        }
        let hint = suggest(wanted, there().map(|(name, _)| name));
        let hint = match hint {
            Some(near) => format!("did you mean `{near}`?"),
            None => "register it: `workflows: [FILE]` in the setup, or `sluice workflows put FILE`"
                .to_owned(),
        };
        self.found.push(RowFault {
            kind: row.kind,
            name: row.name.clone(),
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            code: Code::UnknownRow,
            message: format!("there is no workflow `{wanted}` in the registry"),
            hint: Some(hint),
        });
    }

    /// Reports a name without a row.
    fn check_exists(&mut self, row: &Row, path: &[&str], kind: Kind, name: &str) {
        let always: &[&str] = match kind {
            Kind::Agent => &ALWAYS_THERE,
            Kind::Gateway => &["local"],
            _ => &[],
        };
        let there = || names(self.rows, kind).chain(always.iter().copied());
        if there().any(|one| one == name) {
            return;
        }
        let hint = suggest(name, there()).map(|near| format!("did you mean `{near}`?"));
        let message = format!("there is no {} `{name}`", kind.noun());
        self.found.push(RowFault {
            kind: row.kind,
            name: row.name.clone(),
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            code: Code::UnknownRow,
            message,
            hint,
        });
    }

    /// Reports rows that claim something that an earlier row has already.
    fn check_unique(
        &mut self,
        kind: Kind,
        field: &str,
        what: &str,
        claim: impl Fn(&Row) -> Option<String>,
    ) {
        let mut claimed: BTreeMap<String, &str> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.kind == kind) {
            let Some(of) = claim(row) else { continue };
            let shown = if of.is_empty() { String::new() } else { format!(" `{of}`") };
            let Some(first) = claimed.get(&of) else {
                claimed.insert(of, &row.name);
                continue;
            };
            self.found.push(RowFault {
                kind,
                name: row.name.clone(),
                path: vec![field.to_owned()],
                code: Code::ConflictingRows,
                message: format!("`{first}` {what}{shown} too"),
                hint: Some(format!("set `{field}: false` in one of them")),
            });
        }
    }
}

/// A row that cannot be read is ignored.
pub(super) fn read<T: DeserializeOwned>(row: &Row) -> Option<T> {
    serde_json::from_value(row.body.clone()).ok()
}
