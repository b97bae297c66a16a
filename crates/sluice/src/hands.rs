//! Who does the work in this process: the shell, whoever gateways speak to, and a
//! script if one is named.

use crate::cli::run::Data;
use crate::local;
use crate::place;
use sluice_bridge::directory::{Directory, Kit};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::scrubbed::Scrubbed;
use sluice_bridge::secret::known;
use sluice_bridge::shell::{Config, ShellAdapter, Workspace};
use sluice_core::diagnostic::Diagnostic;
use sluice_core::port::Later;
use sluice_core::port::adapter::{
    Adapter, Call, Capabilities, Execution, Health, Process, Quote, Request,
};
use sluice_engine::agents::Agents;
use sluice_server::service::document::Input;
use std::sync::Arc;

/// The agent that answers from a script.
pub(crate) const MOCK: &str = "mock";

/// The agent that sends a step to the URL in its command.
const HTTP: &str = "http";

/// The agents of a run that is worked on here. A script replaces every model and
/// gateway, and the shell in the steps it names: a test run calls no server.
pub(crate) fn agents(data: &Data, script: Option<Script>, kit: Kit) -> Agents {
    let shell = ShellAdapter::new(Config::new(workspaces(data)));
    let Some(script) = script else {
        return gateways(Agents::new().with("shell", scrubbed(Arc::new(shell))), kit);
    };
    let mock = Arc::new(MockAdapter::new(script.clone()));
    let shell = ScriptedShell { script, mock: Arc::clone(&mock), shell };
    let (shell, mock) = (scrubbed(Arc::new(shell)), scrubbed(mock));
    Agents::new().with("shell", shell).with(MOCK, Arc::clone(&mock)).with_fallback(mock)
}

/// An adapter that says no secret which this process has read: a command may print
/// one, and a script repeat one.
pub(crate) fn scrubbed(adapter: Arc<dyn Adapter>) -> Arc<dyn Adapter> {
    Arc::new(Scrubbed::new(adapter, known::process()))
}

/// The agents of a server: the shell is there only if the operator says so. A script
/// answers for gateways of the provider `mock` and for the agent `mock`; all other
/// gateways are real.
pub(crate) fn served(data: &Data, script: Option<Script>, shell: Shell, kit: Kit) -> Agents {
    let mut agents = Agents::new();
    if shell == Shell::On {
        let shell = ShellAdapter::new(Config::new(workspaces(data)));
        agents = agents.with("shell", scrubbed(Arc::new(shell)));
    }
    if let Some(script) = script {
        agents = agents.with(MOCK, scrubbed(Arc::new(MockAdapter::new(script))));
    }
    gateways(agents, kit)
}

/// Lets gateways be spoken to as their rows say, and steps be sent to URLs.
fn gateways(agents: Agents, kit: Kit) -> Agents {
    agents.with(HTTP, kit.http()).with_gateways(Arc::new(Directory::new(kit)))
}

/// Whether steps may run commands on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    On,
    Off,
}

/// Reads a script.
pub(crate) fn script(input: &Input) -> Result<Script, Vec<Diagnostic>> {
    Script::parse(input.text()?)
}

/// Each run works in a directory of its own.
fn workspaces(data: &Data) -> Workspace {
    Workspace::PerRun(place::workspaces(&local::directory(data)))
}

/// A shell, but for the steps that a script names.
struct ScriptedShell {
    script: Script,
    mock: Arc<MockAdapter>,
    shell: ShellAdapter,
}

impl Adapter for ScriptedShell {
    fn provider(&self) -> &'static str {
        self.shell.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.shell.capabilities()
    }

    fn health(&self) -> Later<'_, Health> {
        self.shell.health()
    }

    fn quote(&self, step: &str) -> Quote {
        if self.script.names(step) { self.mock.quote(step) } else { self.shell.quote(step) }
    }

    fn execute<'a>(&'a self, request: &'a Request, call: &'a dyn Call) -> Later<'a, Execution> {
        if self.script.names(&request.step) {
            self.mock.execute(request, call)
        } else {
            self.shell.execute(request, call)
        }
    }

    fn stop_survivor<'a>(&'a self, process: &'a Process) -> Later<'a, ()> {
        self.shell.stop_survivor(process)
    }
}
