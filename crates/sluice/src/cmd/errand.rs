//! Work that is asked of a server: told, then followed.

use crate::Exit;
use crate::cli::run::View;
use crate::cli::runs::Place;
use crate::client::{Client, only_here};
use crate::desk;
use crate::live;
use crate::local::Again;
use crate::out::{Layout, Out};
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use sluice_core::visible;

/// What is asked, and how its course is shown.
pub(super) struct Errand<'a> {
    client: &'a Client,
    place: &'a Place,
    again: Again,
}

/// A run before it is told something.
#[derive(Debug, Deserialize)]
pub(super) struct Before {
    pub(super) run_id: String,
    pub(super) last_event_id: u64,
}

impl<'a> Errand<'a> {
    /// Refuses what only this process could do: the server has its own hands.
    pub(super) fn new(client: &'a Client, place: &'a Place) -> anyhow::Result<Errand<'a>> {
        let here = &place.here;
        desk::by_token(&here.name)?;
        let given = [
            ("`--mock`", here.mock.is_some()),
            ("`--policies`", !here.policies.is_empty()),
            ("`--moderation`", here.moderation.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(only_here(flag).into());
        }
        Ok(Errand { client, place, again: Again::of(&here.data, None) })
    }

    /// A run by a beginning of its id.
    pub(super) async fn detail(&self, run: &str) -> anyhow::Result<Before> {
        self.client.get(&["runs", run], &[]).await?.read()
    }

    /// Follows a run that goes on at the server.
    pub(super) async fn go_on(
        &self,
        run: &str,
        word: &str,
        after: u64,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let (shown, again) = (visible::brief(run), &self.again.look);
        if self.place.detach {
            return detach(self.client, run, word, self.place.here.view, again, out).await;
        }
        out.note(&format!("{shown} {word}"))?;
        live::follow_there(self.client, run, after, self.place.here.view, again, out).await
    }

    /// Starts a new run out of another, and follows it.
    pub(super) async fn renew(
        &self,
        source: &str,
        kind: &str,
        body: &Value,
        out: &mut Out,
    ) -> anyhow::Result<Exit> {
        let source = self.detail(source).await?.run_id;
        let made = self.client.post(&["runs", &source, kind], body).await?.data;
        let run = made["run_id"].as_str().context("the server shows no new run")?;
        let word = format!("started, a {kind} of {}", visible::brief(&source));
        self.go_on(run, &word, 0, out).await
    }
}

/// Leaves a run to the server: a text for people, the run for programs.
pub(super) async fn detach(
    client: &Client,
    run: &str,
    word: &str,
    view: View,
    again: &str,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    if view.json {
        out.json(Layout::Line, &client.get(&["runs", run, "state"], &[]).await?.raw)?;
    } else {
        let shown = visible::brief(run);
        out.print(&format!("{shown} {word}; `sluice runs watch {shown}{again}` follows it\n"))?;
    }
    Ok(Exit::Done)
}
