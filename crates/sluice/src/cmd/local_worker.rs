//! Does the work of runs in this process, for the commands that start or continue one.

use super::{print_diagnostics, print_report, print_unreadable};
use crate::Exit;
use crate::adapters;
use crate::backend::{self, Identity};
use crate::cli::OutputFormat;
use crate::cli::run::WorkOptions;
use crate::cli::runs::WorkArgs;
use crate::client::Client;
use crate::config::{self, setting::Name};
use crate::input;
use crate::live::{self, FollowedRun};
use crate::local::{self, Again, Local};
use crate::moderation;
use crate::out::Out;
use crate::providers;
use crate::stop::StopSignals;
use sluice_bridge::directory::AdapterContext;
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_core::id::RunId;
use sluice_core::plan::step::Work;
use sluice_core::port::Clock as _;
use sluice_core::run::state::Run;
use sluice_core::status::StepStatus;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_engine::world::SystemClock;
use sluice_govern::registry::Kind;
use sluice_server::refused::Refused;
use sluice_server::service::Service;
use sluice_server::service::course;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// An engine on a data directory that claims the runs of a command.
pub(super) struct LocalWorker<'a> {
    pub(super) local: Local,
    pub(super) who: String,
    /// Options that a hint for the next command repeats.
    pub(super) again: Again,
    agents: Agents,
    options: &'a WorkOptions,
}

impl<'a> LocalWorker<'a> {
    /// Opens the data directory; none if the script is refused, which is reported.
    pub(super) async fn open(
        options: &'a WorkOptions,
        out: &mut Out,
    ) -> anyhow::Result<Option<LocalWorker<'a>>> {
        LocalWorker::open_with(options, providers::live(&options.data)?, out).await
    }

    /// The same, with these providers and tools.
    pub(super) async fn open_with(
        options: &'a WorkOptions,
        kit: AdapterContext,
        out: &mut Out,
    ) -> anyhow::Result<Option<LocalWorker<'a>>> {
        let Some(script) = mock_script(options.mock.as_ref(), options.view.output(), out)? else {
            return Ok(None);
        };
        LocalWorker::start(options, adapters::agents(&options.data, script, kit), Claims::Own)
            .await
            .map(Some)
    }

    /// Opens an existing data directory, to execute runs or, with `--detach`, only to record
    /// requests.
    pub(super) async fn open_existing(
        work: &'a WorkArgs,
        out: &mut Out,
    ) -> anyhow::Result<Option<LocalWorker<'a>>> {
        local::existing(&work.options.data)?;
        if work.detach {
            return LocalWorker::open_detached(&work.options).await.map(Some);
        }
        LocalWorker::open(&work.options, out).await
    }

    /// Opens it only to record requests. The process that claims the run checks its agents, so any
    /// agent is accepted here.
    async fn open_detached(options: &'a WorkOptions) -> anyhow::Result<LocalWorker<'a>> {
        let any_agent = Arc::new(MockAdapter::new(Script::default()));
        LocalWorker::start(options, Agents::new().with_fallback(any_agent), Claims::None).await
    }

    async fn start(
        options: &'a WorkOptions,
        agents: Agents,
        claims: Claims,
    ) -> anyhow::Result<LocalWorker<'a>> {
        let policies = crate::policies::source()?;
        let moderator = moderation::moderator(options.moderation.as_ref())?;
        let local =
            Local::open_with(&options.data, agents.clone(), claims, policies, moderator).await?;
        if claims == Claims::Own {
            tidy(&local);
        }
        let who = Identity::from(&options.name).principal();
        let again = Again::from_options(&options.data, options.mock.as_ref());
        let again = again.moderated(options.moderation.as_ref());
        Ok(LocalWorker { local, who, again, agents, options })
    }

    /// Follows a run that this process executes, then releases the data directory.
    pub(super) async fn follow(
        self,
        run: RunId,
        after: u64,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let mut stop = StopSignals::listen()?;
        let followed = FollowedRun {
            local: &self.local,
            run,
            view: self.options.view,
            who: self.who,
            yes: self.options.yes,
            after,
            again: self.again.clone(),
            stop: &mut stop,
        };
        let exit = live::follow(followed, out).await?;
        if stop.is_final() {
            return Ok(exit);
        }
        match stop.ending(self.local.close()).await {
            Ok(0) => Ok(exit),
            Ok(_) => {
                out.note(&live::killed(run, &self.again))?;
                Ok(exit)
            }
            Err(signal) => {
                out.note(&live::killed(run, &self.again))?;
                Ok(signal.exit())
            }
        }
    }

    /// The API on the same data directory.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        let identity = Identity::from(&self.options.name);
        backend::in_process(&self.local, &self.options.data, &identity).await
    }

    /// Loads a run by a unique prefix of its id.
    pub(super) async fn load(&self, run: &str) -> anyhow::Result<Run> {
        Ok(course::load(&self.local, run).await?)
    }

    /// Refuses a run with a step ahead whose agent is neither in this process nor in the
    /// registry. A registered agent is checked by its gateway when the step is sent.
    pub(super) async fn check_agents(
        &self,
        run: &Run,
        is_ahead: impl Fn(&str, StepStatus) -> bool,
    ) -> anyhow::Result<()> {
        let rows = self.local.store.registry(None).await?.rows;
        let registered =
            |name: &str| rows.iter().any(|row| row.kind == Kind::Agent && row.name == name);
        for (position, step) in (0u32..).zip(&run.definition.plan.steps) {
            let by_agent = matches!(step.work, Work::Command { .. } | Work::Lens(_));
            if !by_agent || !is_ahead(&step.id, run.steps[position as usize].status()) {
                continue;
            }
            let Some(agent) = run.agent_of(position) else { continue };
            if self.agents.get(agent).is_none() && !registered(agent) {
                let message =
                    format!("step `{}` needs the agent `{agent}`, which is not available", step.id);
                let remedy = "use a script in its place: `--mock FILE`";
                return Err(Refused::new("unknown_agent", message, remedy).into());
            }
        }
        Ok(())
    }
}

/// Removes old workspaces in the background.
fn tidy(local: &Local) {
    let service = Service::clone(local);
    let keep_ms = config::get().duration_ms(Name::WorkspacesKeep);
    tokio::spawn(async move {
        let Some(workspaces) = &service.workspaces else { return };
        // The next command removes what stays behind.
        let _ = workspaces.tidy(&*service.store, SystemClock.now_ms(), keep_ms).await;
    });
}

/// Reads the script of `--mock`, if given; none if it is refused, which is reported.
pub(super) fn mock_script(
    mock: Option<&OsString>,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<Option<Option<Script>>> {
    match mock {
        None => Ok(Some(None)),
        Some(name) => Ok(script(name, output, out)?.map(Some)),
    }
}

/// Reads a mock script; none if it is refused, which is reported.
pub(super) fn script(
    name: &OsStr,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<Option<Script>> {
    let input = match input::read(name) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, output, out)?;
            return Ok(None);
        }
    };
    match adapters::script(&input) {
        Ok(script) => Ok(Some(script)),
        Err(diagnostics) => {
            match output {
                OutputFormat::Text => print_diagnostics(&input, &diagnostics, out)?,
                OutputFormat::Json => print_report(&input, &diagnostics, out)?,
            }
            Ok(None)
        }
    }
}
