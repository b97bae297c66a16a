//! The adapters that execute steps in this process: the shell, the registered gateways, and a
//! mock script.

use crate::cli::run::Data;
use crate::data_location;
use crate::handles;
use crate::local;
use sluice_bridge::directory::{AdapterContext, Directory};
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_bridge::redacting_adapter::RedactingAdapter;
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
use tokio::sync::Semaphore;

/// The agent that answers from a script.
pub(crate) const MOCK: &str = "mock";

/// The agent that sends a step to the URL in its command.
const HTTP: &str = "http";

/// The agents of a command that executes runs. A script replaces every model and gateway, and
/// the shell in the steps it names: a test run calls no server.
pub(crate) fn agents(data: &Data, script: Option<Script>, kit: AdapterContext) -> Agents {
    let shell = ShellAdapter::new(Config::new(workspaces(data)));
    let Some(script) = script else {
        return gateways(Agents::new().with("shell", scrubbed(Arc::new(shell))), kit);
    };
    let mock = Arc::new(MockAdapter::new(script.clone()));
    let shell = ScriptedShell { script, mock: Arc::clone(&mock), shell };
    let (shell, mock) = (scrubbed(Arc::new(shell)), scrubbed(mock));
    Agents::new().with("shell", shell).with(MOCK, Arc::clone(&mock)).with_fallback(mock)
}

/// Redacts the secrets that this process has read from the answers of an adapter: a shell
/// command may print one.
pub(crate) fn scrubbed(adapter: Arc<dyn Adapter>) -> Arc<dyn Adapter> {
    Arc::new(RedactingAdapter::new(adapter, known::process()))
}

/// The agents of a server. The shell must be enabled by the operator. A script answers for
/// gateways of the provider `mock` and for the agent `mock`; all other gateways are real.
pub(crate) fn served(
    data: &Data,
    script: Option<Script>,
    shell: Shell,
    kit: AdapterContext,
) -> Agents {
    let mut agents = Agents::new();
    if let Shell::On { running } = shell {
        let shell = ShellAdapter::new(Config { running, ..Config::new(workspaces(data)) });
        agents = agents.with("shell", scrubbed(Arc::new(shell)));
    }
    if let Some(script) = script {
        agents = agents.with(MOCK, scrubbed(Arc::new(MockAdapter::new(script))));
    }
    gateways(agents, kit)
}

/// Adds the registered gateways and the agent `http`.
fn gateways(agents: Agents, kit: AdapterContext) -> Agents {
    agents.with(HTTP, kit.http()).with_gateways(Arc::new(Directory::new(kit)))
}

/// Whether steps may run commands on this machine.
#[derive(Debug, Clone)]
pub(crate) enum Shell {
    On {
        /// Commands that the server runs at once.
        running: Arc<Semaphore>,
    },
    Off,
}

impl Shell {
    /// Enabled, with as many commands at once as leave the file handles of a server's
    /// connections alone.
    pub(crate) fn beside(connections: usize) -> Shell {
        Shell::On { running: Arc::new(Semaphore::new(handles::commands(connections))) }
    }
}

pub(crate) fn script(input: &Input) -> Result<Script, Vec<Diagnostic>> {
    Script::parse(input.text()?)
}

fn workspaces(data: &Data) -> Workspace {
    Workspace::PerRun(data_location::workspaces(&local::directory(data)))
}

/// A shell in which a script answers for the steps it names.
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
