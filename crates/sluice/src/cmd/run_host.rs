//! The process that does the work of a run which a command starts or reopens: this
//! one, or a server.

use super::local_worker::LocalWorker;
use super::run_commands::{CommandDelivery, RunCommand};
use crate::Exit;
use crate::backend::{self, Identity};
use crate::cli::run::View;
use crate::cli::runs::WorkArgs;
use crate::client::{Client, only_local};
use crate::live;
use crate::local::Again;
use crate::out::{Layout, Out};
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use sluice_core::status::StepStatus;
use sluice_core::visible;

pub(super) struct RunHost<'a> {
    pub(super) client: Client,
    /// Set where this process does the work.
    worker: Option<LocalWorker<'a>>,
    view: View,
    /// Leaves the run to the process that claims it next.
    detach: bool,
    again: Again,
}

/// A run before a command changes it.
#[derive(Debug, Deserialize)]
pub(super) struct RunBefore {
    pub(super) run_id: String,
    pub(super) status: String,
    pub(super) last_event_id: u64,
}

impl<'a> RunHost<'a> {
    /// The configured server, else this process; none if the script of `--mock` was
    /// refused, which is reported.
    pub(super) async fn open(
        work: &'a WorkArgs,
        out: &mut Out,
    ) -> anyhow::Result<Option<RunHost<'a>>> {
        let options = &work.options;
        let (view, detach) = (options.view, work.detach);
        if let Some(client) = backend::server_for(&options.data, &Identity::from(&options.name))? {
            let given = [
                ("`--mock`", options.mock.is_some()),
                ("`--policies`", !options.policies.is_empty()),
                ("`--moderation`", options.moderation.is_some()),
            ];
            if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(only_local(flag).into());
            }
            let again = Again::from_options(&options.data, None);
            return Ok(Some(RunHost { client, worker: None, view, detach, again }));
        }
        let Some(worker) = LocalWorker::open_existing(work, out).await? else { return Ok(None) };
        Ok(Some(RunHost { detach, ..RunHost::local(worker, view).await? }))
    }

    /// This process.
    pub(super) async fn local(worker: LocalWorker<'a>, view: View) -> anyhow::Result<RunHost<'a>> {
        let (client, again) = (worker.client().await?, worker.again.clone());
        Ok(RunHost { client, worker: Some(worker), view, detach: false, again })
    }

    /// A run, by a unique prefix of its id.
    pub(super) async fn before(&self, run: &str) -> anyhow::Result<RunBefore> {
        self.client.get(&["runs", run], &[]).await?.read()
    }

    /// Refuses a command that would run a step whose agent this process does not have.
    /// A server checks that itself.
    pub(super) async fn check_agents(
        &self,
        run: &str,
        is_ahead: impl Fn(&str, StepStatus) -> bool,
    ) -> anyhow::Result<()> {
        match &self.worker {
            Some(worker) => worker.check_agents(&worker.load(run).await?, is_ahead).await,
            None => Ok(()),
        }
    }

    /// Sends a command to a run, then follows it: `word` says what the run has become.
    pub(super) async fn send(
        self,
        before: &RunBefore,
        command: &RunCommand<'_>,
        word: &str,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let delivery = command.send(&self.client, out).await?.delivery;
        self.follow(&before.run_id, word, (before.last_event_id, delivery), out).await
    }

    /// Starts a new run out of another one, and follows it.
    pub(super) async fn derive(
        self,
        source: &str,
        kind: &str,
        body: &Value,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let made = self.client.post(&["runs", source, kind], body).await?.data;
        let run = made["run_id"].as_str().context("the server shows no new run")?;
        let word = format!("started, a {kind} of {}", visible::brief(source));
        let delivery = match self.worker {
            Some(_) => CommandDelivery::Local,
            None => CommandDelivery::Remote,
        };
        self.follow(run, &word, (0, delivery), out).await
    }

    /// Follows a run from an event on. A run that another process works on is left to it.
    async fn follow(
        self,
        run: &str,
        word: &str,
        (after, delivery): (u64, CommandDelivery),
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let RunHost { client, worker, view, detach, again } = self;
        let is_remote = worker.is_some() && delivery != CommandDelivery::Local;
        if detach || is_remote {
            detached(&client, run, word, delivery, (view, &again.look), out).await?;
            client.close().await;
            return Ok(Exit::Done);
        }
        out.note(&format!("{} {word}", visible::brief(run)))?;
        match worker {
            Some(worker) => {
                let run = worker.load(run).await?.id;
                worker.follow(run, after, out).await
            }
            None => live::watch(&client, run, after, view, &again.look, out).await,
        }
    }
}

/// Prints a run that is left to another process: a text for people, its state for
/// programs.
pub(super) async fn detached(
    client: &Client,
    run: &str,
    word: &str,
    delivery: CommandDelivery,
    (view, again): (View, &str),
    out: &mut Out,
) -> anyhow::Result<()> {
    if view.json {
        return out.json(Layout::Line, &client.get(&["runs", run, "state"], &[]).await?.raw);
    }
    let run = visible::brief(run);
    let next = match delivery {
        CommandDelivery::Local => format!("`sluice resume {run}{again}` continues it"),
        CommandDelivery::Remote | CommandDelivery::Pending => {
            format!("`sluice runs watch {run}{again}` follows it")
        }
    };
    out.print(&format!("{run} {word}; {next}\n"))
}
