//! What every command does that works on a run in this process.

use super::{tell_people, tell_report, tell_unreadable};
use crate::Exit;
use crate::cli::Reader;
use crate::cli::run::Here;
use crate::cli::runs::Place;
use crate::config::{self, setting::Name};
use crate::hands;
use crate::input;
use crate::kit;
use crate::live::{self, Follow, Part};
use crate::local::{self, Again, Local};
use crate::moderation;
use crate::out::{Layout, Out};
use crate::stop::Stop;
use sluice_bridge::directory::Kit;
use sluice_bridge::mock::{MockAdapter, Script};
use sluice_core::plan::step::Work;
use sluice_core::port::Clock as _;
use sluice_core::run::id::RunId;
use sluice_core::run::projection::project;
use sluice_core::run::state::Run;
use sluice_core::run::status::StepStatus;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_engine::world::SystemClock;
use sluice_govern::registry::Kind;
use sluice_server::refused::Refused;
use sluice_server::service::Service;
use sluice_server::service::find;
use std::sync::Arc;

/// A data directory, opened to work in it.
pub(super) struct Bench<'a> {
    pub(super) local: Local,
    pub(super) who: String,
    /// Options that a next command needs too.
    pub(super) again: Again,
    agents: Agents,
    here: &'a Here,
}

impl<'a> Bench<'a> {
    /// Opens the data directory; nothing if the script is refused, which is told.
    pub(super) async fn open(here: &'a Here, out: &mut Out) -> anyhow::Result<Option<Bench<'a>>> {
        Bench::equipped(here, kit::live(&here.data)?, out).await
    }

    /// The same, with other ways to reach providers and tools.
    pub(super) async fn equipped(
        here: &'a Here,
        kit: Kit,
        out: &mut Out,
    ) -> anyhow::Result<Option<Bench<'a>>> {
        let script = match &here.mock {
            None => None,
            Some(name) => match script(name, here.view.reader(), out)? {
                Some(script) => Some(script),
                None => return Ok(None),
            },
        };
        Bench::with(here, hands::agents(&here.data, script, kit), Claims::Own).await.map(Some)
    }

    /// Opens a data directory that is there, to work in it or to note things down.
    pub(super) async fn at(place: &'a Place, out: &mut Out) -> anyhow::Result<Option<Bench<'a>>> {
        local::existing(&place.here.data)?;
        if place.detach {
            return Bench::aside(&place.here).await.map(Some);
        }
        Bench::open(&place.here, out).await
    }

    /// Opens it only to note things down. Whether there are agents for it is
    /// then for whoever does the work to see.
    async fn aside(here: &'a Here) -> anyhow::Result<Bench<'a>> {
        let anybody = Arc::new(MockAdapter::new(Script::default()));
        Bench::with(here, Agents::new().with_fallback(anybody), Claims::None).await
    }

    async fn with(here: &'a Here, agents: Agents, claims: Claims) -> anyhow::Result<Bench<'a>> {
        let policies = crate::policies::source()?;
        let moderator = moderation::moderator(here.moderation.as_ref())?;
        let local = Local::under(&here.data, agents.clone(), claims, policies, moderator).await?;
        if claims == Claims::Own {
            tidy(&local);
        }
        let who = local::who(&here.name);
        let again = Again::of(&here.data, here.mock.as_ref());
        let again = again.moderated(here.moderation.as_ref());
        Ok(Bench { local, who, again, agents, here })
    }

    /// Follows a run that is worked on here, then lets everything go.
    pub(super) async fn follow(
        self,
        run: RunId,
        after: u64,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let mut stop = Stop::listen()?;
        let follow = Follow {
            local: &self.local,
            run,
            view: self.here.view,
            part: Part::Work { who: self.who, yes: self.here.yes },
            after,
            again: self.again.clone(),
            stop: Some(&mut stop),
        };
        let exit = live::follow(follow, out).await?;
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

    /// Leaves a run to another process: a text for people, the run for programs.
    pub(super) async fn detach(
        self,
        run: RunId,
        text: &str,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        if self.here.view.json {
            let now = find::load(&self.local, run).await?;
            let taken = self.local.store.taken(run).await?;
            out.json(Layout::Line, &project(&now).with_taken(taken))?;
        } else {
            out.print(&format!("{text}\n"))?;
        }
        self.local.close().await;
        Ok(Exit::Done)
    }

    /// Refuses a run if nobody here can do a step that is `ahead` of it. An agent
    /// that is registered is done by its gateway, and that says so itself if it cannot.
    pub(super) async fn has_hands_for(
        &self,
        run: &Run,
        ahead: impl Fn(u32, StepStatus) -> bool,
    ) -> anyhow::Result<()> {
        let rows = self.local.store.registry(None).await?.rows;
        let registered =
            |name: &str| rows.iter().any(|row| row.kind == Kind::Agent && row.name == name);
        for (position, step) in (0u32..).zip(&run.definition.plan.steps) {
            let by_agent = matches!(step.work, Work::Command { .. } | Work::Lens(_));
            if !by_agent || !ahead(position, run.steps[position as usize].status()) {
                continue;
            }
            let Some(agent) = run.agent_of(position) else { continue };
            if self.agents.get(agent).is_none() && !registered(agent) {
                let message =
                    format!("step `{}` is for the agent `{agent}`, which is not here", step.id);
                let remedy = "let a script answer for it with `--mock FILE`";
                return Err(Refused::new("unknown_agent", message, remedy).into());
            }
        }
        Ok(())
    }
}

/// Removes workspaces of runs that ended long ago, while the command does its work.
fn tidy(local: &Local) {
    let service = Service::clone(local);
    let keep_ms = config::get().duration_ms(Name::WorkspacesKeep);
    tokio::spawn(async move {
        let Some(workspaces) = &service.workspaces else { return };
        // What stays behind is removed by the next command.
        let _ = workspaces.tidy(&*service.store, SystemClock.now_ms(), keep_ms).await;
    });
}

/// Reads a script; nothing if it is refused, which is told.
pub(super) fn script(
    name: &std::ffi::OsStr,
    reader: Reader,
    out: &mut Out,
) -> anyhow::Result<Option<Script>> {
    let input = match input::read(name) {
        Ok(input) => input,
        Err(unreadable) => {
            tell_unreadable(&unreadable, reader, out)?;
            return Ok(None);
        }
    };
    match hands::script(&input) {
        Ok(script) => Ok(Some(script)),
        Err(diagnostics) => {
            match reader {
                Reader::Person => tell_people(&input, &diagnostics, out)?,
                Reader::Program => tell_report(&input, &diagnostics, out)?,
            }
            Ok(None)
        }
    }
}
