//! What agents, gateways, tools and memory add to a step, and where they send what it read.

use super::{Builder, Field, Part, Site};
use crate::flow::graph::Slot;
use crate::flow::label::LabelSet;
use crate::flow::{Destination, Sink};
use crate::plan::step::Step;
use crate::run::definition::Definition;
use crate::run::seat::Planned;
use sluice_govern::catalog::CatalogTool;
use sluice_govern::flow_label::UNKNOWN;
use sluice_govern::registry::{ANYTHING, Agent, Gateway, SessionMode};
use sluice_govern::tools;
use std::collections::BTreeMap;
use std::rc::Rc;

static NO_BINDINGS: BTreeMap<String, String> = BTreeMap::new();

/// What an executor depends on: its agent, its pin and the capabilities of the step.
pub(super) type Key<'p> = (&'p str, Option<&'p str>, &'p [String]);

/// An agent with the gateways that may execute its steps.
#[derive(Debug, Clone)]
pub(super) struct Executor<'p> {
    /// What they add to its outputs.
    adds: Slot,
    /// What they declare that they add. It can be in the arguments of a tool call.
    declared: LabelSet,
    gateways: Rc<[&'p str]>,
}

impl<'p> Builder<'p> {
    /// A step that an agent executes.
    pub(super) fn connect_executor(&mut self, call: u32, at: u32, step: &'p Step) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = |field| Site { call, step: Some(at), field };
        let agent = self.agent(call, at);
        let executor = self.executor(call, agent, step);
        self.graph.link(slots.read, slots.answer, site(Field::Step));
        self.connect_outputs(call, at, step, slots.read, Field::Step);
        self.graph.link(executor.adds, slots.answer, site(Field::Agent));
        self.connect_outputs(call, at, step, executor.adds, Field::Agent);
        self.connect_memory(call, at, step, agent);
        let row = self.setting.fabric.agents.get(agent);
        if row.is_some_and(|row| row.session == SessionMode::Continue) {
            let session = match self.sessions.get(&(call, agent)) {
                Some(session) => *session,
                None => {
                    let session = self.slot(call, None, Part::Session(agent));
                    self.sessions.insert((call, agent), session);
                    session
                }
            };
            self.graph.link(slots.read, session, site(Field::Agent));
            self.graph.link(session, slots.sent, site(Field::Agent));
        }
        // A repeated request quotes the answer, and so the answers of tools.
        let slot = if step.reask == 0 { slots.sent } else { slots.read };
        for gateway in &*executor.gateways {
            let destination = Destination::Gateway(gateway);
            self.sinks.push(Sink { call, step: at, slot, destination, agent: Some(agent) });
        }
        let tools = self.tools(step, row);
        if !tools.is_empty() {
            let node = self.graph.node(slots.read);
            node.own = node.own.with(executor.declared);
        }
        for (number, name, tool) in tools {
            let answers = self.slot(call, Some(at), Part::Tool(name));
            let own = match tool {
                Some(tool) => self.labels.set(
                    tool.origins.iter().map(|name| &**name),
                    tool.secrecy.iter().map(|name| &**name),
                ),
                None => self.labels.origin(UNKNOWN),
            };
            self.graph.node(answers).own = own;
            self.graph.link(answers, slots.read, site(Field::Tool(number)));
            self.sinks.push(Sink {
                call,
                step: at,
                slot: slots.read,
                destination: Destination::Tool(name),
                agent: Some(agent),
            });
        }
    }

    fn agent(&self, call: u32, at: u32) -> &'p str {
        let document = self.calls[call as usize].document;
        let definition: &'p Definition = &document.definition;
        let deployment = self.setting.fabric.deployment(&definition.plan.name);
        let bindings = deployment.map_or(&NO_BINDINGS, |(_, one)| &one.roles);
        match definition.planned(at, bindings, self.setting.default_agent) {
            Planned::Agent(agent) => agent,
            Planned::Unnamed | Planned::Unassigned => "",
        }
    }

    fn executor(&mut self, call: u32, agent: &'p str, step: &'p Step) -> Executor<'p> {
        let fabric = self.setting.fabric;
        let row = fabric.agents.get(agent);
        let workflow = &self.calls[call as usize].plan().name;
        let deployment = fabric.deployment(workflow).map(|(_, one)| one);
        let pin = deployment.and_then(|one| one.agent_gateways.get(agent));
        let pin = pin.or_else(|| row.and_then(|row| row.gateway.as_ref())).map(String::as_str);
        let own = row.map_or(&[][..], |row| &row.capabilities);
        let capabilities = if step.capabilities.is_empty() { own } else { &step.capabilities };
        let key: Key<'p> = (agent, pin, capabilities);
        if let Some(known) = self.executors.get(&key) {
            return known.clone();
        }
        let mut declared = LabelSet::default();
        let adds = self.slot(call, None, Part::Agent(agent));
        if let Some(row) = row {
            let origins = row.origin.iter().flatten();
            declared = self.labels.set(origins, &row.sensitive);
        }
        let mut own = declared;
        let mut names = Vec::new();
        for (name, gateway) in fabric.gateways.iter().filter(|(name, gateway)| match pin {
            Some(pin) => name.as_str() == pin,
            None => may_serve(gateway, agent, capabilities),
        }) {
            names.push(name.as_str());
            let slot = self.slot(call, None, Part::Gateway(name));
            let labels = self.labels.set(gateway.origin.iter().flatten(), &gateway.sensitive);
            self.graph.node(slot).own = labels;
            declared = declared.with(labels);
            self.graph.link(slot, adds, Site { call, step: None, field: Field::Agent });
            if gateway.origin.is_none() && row.is_none_or(|row| row.origin.is_none()) {
                own = own.with(self.labels.origin(UNKNOWN));
            }
        }
        if names.is_empty() {
            // Every process has a gateway of its own, which declares nothing.
            names.push(pin.unwrap_or(IMPLIED));
            if row.is_none_or(|row| row.origin.is_none()) {
                own = own.with(self.labels.origin(UNKNOWN));
            }
        }
        self.graph.node(adds).own = own;
        let executor = Executor { adds, declared, gateways: names.into() };
        self.executors.insert(key, executor.clone());
        executor
    }

    /// The tools that a step may use, with their positions in its list.
    fn tools(
        &self,
        step: &'p Step,
        agent: Option<&'p Agent>,
    ) -> Vec<(u32, &'p str, Option<&'p CatalogTool>)> {
        let catalog = self.setting.catalog;
        let mut found = Vec::new();
        for (number, written) in (0..).zip(&step.tools) {
            let before = found.len();
            if let Some(server) = written.strip_suffix(".*") {
                let of_server = catalog.tools().filter(|(_, tool)| *tool.facts.server == *server);
                found.extend(of_server.map(|(name, tool)| (number, name, Some(tool))));
            }
            if found.len() == before {
                found.push((number, written.as_str(), catalog.tool(written)));
            }
        }
        if let Some(list) = agent.map(|row| &row.tools) {
            let allowed = |name: &str| list.allow.is_empty() || tools::names(&list.allow, name);
            found.retain(|(_, name, _)| allowed(name) && !tools::names(&list.deny, name));
        }
        found
    }

    /// The memory that a step loads: its own, else its member's, else its agent's.
    fn connect_memory(&mut self, call: u32, at: u32, step: &'p Step, agent: &'p str) {
        let slots = self.calls[call as usize].steps[at as usize];
        let site = Site { call, step: Some(at), field: Field::Memory };
        self.remembered.push((agent, slots.answer, site));
        let plan = self.calls[call as usize].plan();
        let team = plan.team.iter().flat_map(|team| &team.members);
        let mut members = team.filter(|member| member.agent.as_deref() == Some(agent));
        let of_member = members.find_map(|member| member.memory_profile.as_ref());
        let of_agent = || self.setting.fabric.agents.get(agent).and_then(|row| row.memory.as_ref());
        let Some(name) = step.memory.as_ref().or(of_member).or_else(of_agent) else { return };
        let memory = match self.memories.get(name.as_str()) {
            Some(memory) => *memory,
            None => self.add_memory(name),
        };
        self.graph.link(memory, slots.sent, site);
    }

    /// The slot of a memory profile, with the labels of its notes.
    fn add_memory(&mut self, name: &'p str) -> Slot {
        let memory = self.slot(0, None, Part::Memory(name));
        self.memories.insert(name, memory);
        let site = Site { call: 0, step: None, field: Field::Memory };
        let Some(profile) = self.setting.fabric.memories.get(name) else {
            self.graph.node(memory).own = self.labels.origin(UNKNOWN);
            return memory;
        };
        let mut own = self.labels.set(&profile.origin, &profile.sensitive);
        // Other runs may have left anything in the outputs of the agent.
        if profile.last_outputs.is_some() {
            own = own.with(self.labels.origin(UNKNOWN));
        }
        self.graph.node(memory).own = own;
        for (name, note) in
            profile.notes.iter().filter_map(|name| self.setting.fabric.notes.get_key_value(name))
        {
            let slot = self.slot(0, None, Part::Note(name));
            let mut own = self.labels.set(&note.origin, &note.sensitive);
            if note.untrusted && note.origin.is_empty() {
                own = own.with(self.labels.origin(UNKNOWN));
            }
            self.graph.node(slot).own = own;
            self.graph.link(slot, memory, site);
        }
        memory
    }

    /// Links the outputs of agents to the memory profiles that load them.
    pub(super) fn link_memories(&mut self) {
        for (name, memory) in self.memories.clone() {
            let profile = self.setting.fabric.memories.get(name);
            let Some(last) = profile.and_then(|one| one.last_outputs.as_ref()) else { continue };
            let outputs = self.remembered.iter().filter(|(agent, ..)| *agent == last.agent);
            for (_, from, site) in outputs.copied().collect::<Vec<_>>() {
                self.graph.link(from, memory, site);
            }
        }
    }
}

/// The gateway of a process without rows.
const IMPLIED: &str = "local";

/// Whether a gateway may execute steps of an agent.
fn may_serve(gateway: &Gateway, agent: &str, capabilities: &[String]) -> bool {
    let offers =
        |wanted: &String| gateway.capabilities.iter().any(|one| one == wanted || one == ANYTHING);
    let deployed = gateway.agents.is_empty() || gateway.agents.iter().any(|one| one == agent);
    deployed && capabilities.iter().all(offers)
}
