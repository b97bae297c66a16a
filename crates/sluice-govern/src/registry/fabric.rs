//! The parsed registry.

use super::{
    Agent, Budget, Deployment, Gateway, Instruction, Kind, MemoryProfile, Note, Price, Role, Row,
    Token,
};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The parsed rows of a registry at one epoch.
#[derive(Debug, Clone, Default)]
pub struct Fabric {
    /// Grows with every change of a row.
    pub epoch: u64,
    /// Agents by name.
    pub agents: BTreeMap<String, Agent>,
    /// Gateways by name.
    pub gateways: BTreeMap<String, Gateway>,
    /// Roles by name.
    pub roles: BTreeMap<String, Role>,
    /// Deployments by name.
    pub deployments: BTreeMap<String, Deployment>,
    /// Budgets by name.
    pub budgets: BTreeMap<String, Budget>,
    /// Prices by model.
    pub prices: BTreeMap<String, Price>,
    /// Notes by name.
    pub notes: BTreeMap<String, Note>,
    /// Memory profiles by name.
    pub memories: BTreeMap<String, MemoryProfile>,
    /// Instructions by name.
    pub instructions: BTreeMap<String, Instruction>,
    /// Agents whose outputs some memory profile loads.
    pub remembered: BTreeSet<String>,
    /// Groups and roles of tokens: names that do not identify a single person.
    pub groups: BTreeSet<String>,
    /// Whether an operator stopped all work.
    pub held: Held,
    /// Rows that cannot be parsed, with the error. They are treated as missing.
    pub broken: Vec<(Kind, String, String)>,
}

/// Whether an operator stopped all work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Held {
    /// Work continues.
    #[default]
    No,
    /// Nothing is dispatched until the operator lifts the switch.
    Yes,
}

impl Fabric {
    /// Parses the rows. An unreadable row is treated as missing. If it is a budget, a
    /// role or an instruction, a bound would be missing, so it stops all work.
    pub fn read(epoch: u64, rows: &[Row]) -> Fabric {
        let mut fabric = Fabric { epoch, ..Fabric::default() };
        for row in rows {
            fabric.parse_row(row);
        }
        let named = fabric.memories.values().filter_map(|one| one.last_outputs.as_ref());
        fabric.remembered = named.map(|one| one.agent.clone()).collect();
        fabric
    }

    fn parse_row(&mut self, row: &Row) {
        let name = &row.name;
        let read = match row.kind {
            Kind::Agent => parse_into(&mut self.agents, row),
            Kind::Gateway => parse_into(&mut self.gateways, row),
            Kind::Role => parse_into(&mut self.roles, row),
            Kind::Deployment => parse_into(&mut self.deployments, row),
            Kind::Budget => parse_into(&mut self.budgets, row),
            Kind::Price => parse_into(&mut self.prices, row),
            Kind::Note => parse_into(&mut self.notes, row),
            Kind::Memory => parse_into(&mut self.memories, row),
            Kind::Instruction => parse_into(&mut self.instructions, row),
            Kind::Switch => {
                if row.body.get("held").and_then(serde_json::Value::as_bool) != Some(false) {
                    self.held = Held::Yes;
                }
                Ok(())
            }
            Kind::Policy
            | Kind::Library
            | Kind::Workflow
            | Kind::Lens
            | Kind::Team
            | Kind::Schedule
            | Kind::Webhook
            | Kind::Hook => Ok(()),
            Kind::Token => {
                // An unreadable token admits no caller and belongs to no group.
                let token = serde_json::from_value::<Token>(row.body.clone());
                let names = token.into_iter().flat_map(|token| [token.groups, token.roles]);
                self.groups.extend(names.flatten());
                Ok(())
            }
        };
        if let Err(why) = read {
            if matches!(row.kind, Kind::Budget | Kind::Role | Kind::Instruction) {
                self.held = Held::Yes;
            }
            self.broken.push((row.kind, name.clone(), why));
        }
    }

    /// Rejects a row that no process with the store's key wrote. If rows of its kind
    /// are bounds, the missing bound stops all work.
    pub fn refuse(&mut self, kind: &str, name: &str) {
        let Some(kind) = Kind::parse(kind) else { return };
        let unbounded = matches!(
            kind,
            Kind::Library
                | Kind::Workflow
                | Kind::Lens
                | Kind::Team
                | Kind::Schedule
                | Kind::Note
                | Kind::Memory
                | Kind::Webhook
                | Kind::Hook
                | Kind::Token
        );
        if !unbounded {
            self.held = Held::Yes;
        }
        let why = "no process with the key of this store wrote it";
        self.broken.push((kind, name.to_owned(), why.to_owned()));
    }

    /// Stops all work, because the rows may not be the newest ones.
    pub fn refuse_all(&mut self) {
        self.held = Held::Yes;
    }

    /// The active deployment of a workflow.
    pub fn deployment(&self, workflow: &str) -> Option<(&String, &Deployment)> {
        self.deployments.iter().find(|(_, one)| one.active && one.workflow == workflow)
    }
}

fn parse_into<T: DeserializeOwned>(
    into: &mut BTreeMap<String, T>,
    row: &Row,
) -> Result<(), String> {
    let read = serde_json::from_value(row.body.clone()).map_err(|error| error.to_string())?;
    into.insert(row.name.clone(), read);
    Ok(())
}
