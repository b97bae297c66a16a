//! Teams that are called by name: rows of the registry, and documents that name them.
//!
//! INVARIANT: a plan holds its team itself, never a name. A run keeps the team it
//! started with, and a team that is changed gives its workflows another hash.

use super::TeamDoc;
use crate::code::Code;
use crate::diagnostic::{Problem, Problems};
use crate::doc::read::{DocumentReader, Read};
use crate::doc::registry::Registry;
use crate::doc::schema::Defs;
use crate::node::{Kind, Node};
use crate::plan::Team;
use crate::span::Spanned;
use crate::visible::shorten;
use crate::yaml;
use serde_json::{Value, json};

/// What a document says of its team: the team itself, or the name of one that
/// the registry has.
#[derive(Debug, Clone)]
pub(crate) enum TeamField {
    Written(TeamDoc),
    Named(Spanned<String>),
}

impl Read for TeamField {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<TeamField> {
        match &node.kind {
            Kind::Text(_) => Spanned::read(node, cx).map(TeamField::Named),
            Kind::Map(_) => TeamDoc::read(node, cx).map(TeamField::Written),
            _ => {
                cx.wrong_type(node, "a map or the name of a team");
                None
            }
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [TeamDoc::schema(defs), { "type": "string" }] })
    }
}

impl TeamField {
    /// Checks the team, or takes over the one that is named. One that is not
    /// known is an error, even where no teams are at hand: without its members
    /// the steps would go to others, and without the approvals it asks for.
    pub(crate) fn settle(&mut self, registry: &Registry, cx: &mut DocumentReader<'_, '_>) {
        let name = match self {
            TeamField::Written(team) => return team.check(cx),
            TeamField::Named(name) => name,
        };
        if let Some(team) = registry.teams.as_ref().and_then(|teams| teams.get(&name.value)) {
            *self = TeamField::Written(team.clone());
            return;
        }
        let shown = shorten(&name.value);
        let problem = match &registry.teams {
            Some(teams) => {
                let message = format!("the registry has no team `{shown}`");
                let near = cx.suggest(&name.value, teams.keys().map(String::as_str));
                Problem::new(Code::UnknownRow, name.span, message).with_suggestion(near)
            }
            None => {
                let message = format!("there is no team `{shown}`: no teams are at hand");
                let hint = "`sluice teams set` makes one, `--registry FILE` hands one over";
                Problem::new(Code::UnknownRow, name.span, message).with_hint(hint)
            }
        };
        cx.add(problem);
    }

    /// The team, where it is known.
    pub(crate) fn team(&self) -> Option<&TeamDoc> {
        match self {
            TeamField::Written(team) => Some(team),
            TeamField::Named(_) => None,
        }
    }

    pub(crate) fn into_team(self) -> Team {
        let team = match self {
            TeamField::Written(team) => Some(team),
            TeamField::Named(_) => None,
        };
        team.expect("a document without errors names a team that is known").into_team()
    }
}

/// A team as a row: what a document may write, checked by itself.
#[derive(Debug, Clone)]
pub(crate) struct TeamRow(pub(crate) TeamDoc);

impl Read for TeamRow {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<TeamRow> {
        let team = TeamDoc::read(node, cx)?;
        team.check(cx);
        Some(TeamRow(team))
    }

    fn schema(defs: &mut Defs) -> Value {
        TeamDoc::schema(defs)
    }
}

/// The team that a document calls by name, as far as it can be read.
pub(crate) fn named(document: &str) -> Option<String> {
    // Most documents name none, and need not be parsed to see it. A key can be
    // written with escapes, too.
    if !document.contains("team") && !document.contains('\\') {
        return None;
    }
    let root = yaml::parse(document, &mut Problems::default())?;
    match &root.get("team")?.kind {
        Kind::Text(name) => Some(name.clone().into_owned()),
        _ => None,
    }
}
