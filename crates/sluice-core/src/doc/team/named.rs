//! Teams referred to by name: rows of the registry, and documents that name them.
//!
//! INVARIANT: a plan contains its team, never a name. A run keeps the team that it started
//! with, and changing a team changes the hash of its workflows.

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

/// The `team` field of a document: a team, or the name of a registered one.
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
    /// Checks the team, or resolves its name. An unknown name is an error even if no teams
    /// are loaded: without the team, steps would go to other agents and skip its approvals.
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
                let message = format!("there is no team `{shown}`: no teams are loaded");
                let hint = "create it with `sluice teams set`, or pass it with `--registry FILE`";
                Problem::new(Code::UnknownRow, name.span, message).with_hint(hint)
            }
        };
        cx.add(problem);
    }

    /// The team, if it is known.
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

/// A team as a registry row, checked on its own.
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

/// The name of the team that a document refers to, as far as it can be read.
pub(crate) fn named(document: &str) -> Option<String> {
    // Most documents name no team, and need not be parsed to see it. A key may also be
    // written with escapes.
    if !document.contains("team") && !document.contains('\\') {
        return None;
    }
    let root = yaml::parse(document, &mut Problems::default())?;
    match &root.get("team")?.kind {
        Kind::Text(name) => Some(name.clone().into_owned()),
        _ => None,
    }
}
