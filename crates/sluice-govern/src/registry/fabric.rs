//! Everything an operator has set up, read and ready.

use super::{
    Agent, Deployment, Envelope, Gateway, Instruction, Kind, MemoryProfile, Note, Price, Role, Row,
    Token,
};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a registry at one epoch, read.
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
    /// Envelopes by name.
    pub envelopes: BTreeMap<String, Envelope>,
    /// Prices by model.
    pub prices: BTreeMap<String, Price>,
    /// Notes by name.
    pub notes: BTreeMap<String, Note>,
    /// Memory profiles by name.
    pub memories: BTreeMap<String, MemoryProfile>,
    /// Instructions by name.
    pub instructions: BTreeMap<String, Instruction>,
    /// Agents whose answers some memory profile loads.
    pub remembered: BTreeSet<String>,
    /// Groups and roles of tokens: names that stand for no single person.
    pub groups: BTreeSet<String>,
    /// Whether an operator stopped everything.
    pub held: Held,
    /// Rows that cannot be read, and why. They count as missing.
    pub broken: Vec<(Kind, String, String)>,
}

/// Whether an operator stopped everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Held {
    /// No.
    #[default]
    No,
    /// Yes: nothing is dispatched until it is undone.
    Yes,
}

impl Fabric {
    /// Reads the rows. A row that cannot be read is as if it were not there,
    /// but an envelope or an instruction that cannot be read would be a bound that
    /// is gone: it stops everything.
    pub fn read(epoch: u64, rows: &[Row]) -> Fabric {
        let mut fabric = Fabric { epoch, ..Fabric::default() };
        for row in rows {
            fabric.take(row);
        }
        let named = fabric.memories.values().filter_map(|one| one.last_outputs.as_ref());
        fabric.remembered = named.map(|one| one.agent.clone()).collect();
        fabric
    }

    fn take(&mut self, row: &Row) {
        let name = &row.name;
        let read = match row.kind {
            Kind::Agent => keep(&mut self.agents, row),
            Kind::Gateway => keep(&mut self.gateways, row),
            Kind::Role => keep(&mut self.roles, row),
            Kind::Deployment => keep(&mut self.deployments, row),
            Kind::Envelope => keep(&mut self.envelopes, row),
            Kind::Price => keep(&mut self.prices, row),
            Kind::Note => keep(&mut self.notes, row),
            Kind::Memory => keep(&mut self.memories, row),
            Kind::Instruction => keep(&mut self.instructions, row),
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
                // A token that cannot be read lets no caller in, and is in no group.
                let token = serde_json::from_value::<Token>(row.body.clone());
                let names = token.into_iter().flat_map(|token| [token.groups, token.roles]);
                self.groups.extend(names.flatten());
                Ok(())
            }
        };
        if let Err(why) = read {
            if matches!(row.kind, Kind::Envelope | Kind::Role | Kind::Instruction) {
                self.held = Held::Yes;
            }
            self.broken.push((row.kind, name.clone(), why));
        }
    }

    /// A row that no process with the store's key wrote. It is not used; where rows of
    /// its kind are bounds, the bound that it hides stops everything.
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

    /// The deployment of a workflow that counts.
    pub fn deployment(&self, workflow: &str) -> Option<(&String, &Deployment)> {
        self.deployments.iter().find(|(_, one)| one.active && one.workflow == workflow)
    }
}

fn keep<T: DeserializeOwned>(into: &mut BTreeMap<String, T>, row: &Row) -> Result<(), String> {
    let read = serde_json::from_value(row.body.clone()).map_err(|error| error.to_string())?;
    into.insert(row.name.clone(), read);
    Ok(())
}
