//! The format of setups.

use super::row::{Written, read_fields, row_schema};
use super::schedule::ScheduleRow;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::lens::written::LensDoc;
use crate::doc::read::{DocumentReader, Read, Spelling, document};
use crate::doc::schema::Defs;
use crate::doc::team::TeamRow;
use crate::id::RunId;
use crate::node::Node;
use crate::span::Spanned;
use serde_json::{Value, json};
use sluice_govern::limits::MEMORY_NOTES_MAX;
use sluice_govern::registry::{
    Agent, Budget, Deployment, Gateway, Hook, Instruction, MemoryProfile, Note, PolicySet, Price,
    Role, RowType as _, Scope, Webhook,
};

document! {
    /// The rows of the registry.
    pub(crate) struct SetupDoc {
        /// Agents, by name.
        optional "agents" agents: Table<Written<Agent>>,
        /// Gateways, by name.
        optional "gateways" gateways: Table<Written<Gateway>>,
        /// Bounds on the agents in a role, in every workflow.
        optional "roles" roles: Table<Written<Role>>,
        /// Deployments: the agents and the gateway of a workflow.
        optional "deployments" deployments: Table<Written<Deployment>>,
        /// Budgets.
        optional "budgets" budgets: Table<BudgetRow>,
        /// Prices of models, by model.
        optional "prices" prices: Table<Written<Price>>,
        /// Policies by name: text, or the file it is in.
        optional "policies" policies: Table<Policy>,
        /// A directory whose `.cedar` files are the active policies.
        optional "policy_dir" policy_dir: String,
        /// Texts that memory profiles load, by name.
        optional "notes" notes: Table<Written<Note>>,
        /// Memory profiles, by name: the past outputs and notes that steps load.
        optional "memories" memories: Table<MemoryRow>,
        /// Permanent instructions of the platform and the owner, by name.
        optional "instructions" instructions: Table<Written<Instruction>>,
        /// Library steps by name: step fields, and `locked`, the list of fields that steps cannot loosen.
        optional "library" library: Library,
        /// Lenses by id: their versions, or the file they are in.
        optional "lenses" lenses: Table<LensOrFile>,
        /// Teams by name, written like the `team` of a document.
        optional "teams" teams: Table<TeamRow>,
        /// Files with workflows. Each becomes an immutable version.
        optional "workflows" workflows: Vec<Spanned<String>>,
        /// Schedules that start workflows, by name.
        optional "schedules" schedules: Table<ScheduleRow>,
        /// Outbound webhooks, by name.
        optional "webhooks" webhooks: Table<Written<Webhook>>,
        /// Inbound webhooks, by name.
        optional "hooks" hooks: Table<Written<Hook>>,
    }
}

/// Library steps, which the registry's own reader reads later.
#[derive(Debug, Clone)]
pub(crate) struct Library;

impl Read for Library {
    fn read<'n>(_: &'n Node<'n>, _: &mut DocumentReader<'n, '_>) -> Option<Library> {
        Some(Library)
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "object", "additionalProperties": { "type": "object" } })
    }
}

/// A budget whose fields agree.
#[derive(Debug, Clone)]
pub(crate) struct BudgetRow;

impl Read for BudgetRow {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<BudgetRow> {
        let fields = read_fields(&Budget::ROW, node, cx)?;
        let scope = fields.get("scope").and_then(|node| cx.text(node)).and_then(Scope::parse);
        let Some(of) = fields.get("of") else { return Some(BudgetRow) };
        let name = cx.text(of)?;
        if scope == Some(Scope::Global) {
            let message = "a global budget applies to everything: `of` has no meaning";
            let problem = Problem::new(Code::ConflictingFields, of.span, message);
            cx.add(problem.with_hint("leave `of` out, or choose another scope"));
        } else if scope == Some(Scope::Run) && RunId::parse(name).is_none() {
            let message = format!("`{}` is not a run id", crate::visible::shorten(name));
            let problem = Problem::new(Code::BadValue, of.span, message);
            cx.add(problem.with_hint("`sluice runs list` shows the ids"));
        }
        Some(BudgetRow)
    }

    fn schema(defs: &mut Defs) -> Value {
        row_schema(&Budget::ROW, defs)
    }
}

/// A memory profile that is neither empty nor too large.
#[derive(Debug, Clone)]
pub(crate) struct MemoryRow;

impl Read for MemoryRow {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<MemoryRow> {
        let fields = read_fields(&MemoryProfile::ROW, node, cx)?;
        let notes = fields.get("notes").and_then(|notes| cx.list(notes)).map_or(0, <[_]>::len);
        if notes == 0 && fields.get("last_outputs").is_none() {
            let message = "`notes` or `last_outputs` is missing";
            cx.add(Problem::new(Code::MissingField, node.span, message));
        }
        if notes > MEMORY_NOTES_MAX {
            let message = format!("there are {notes} notes; the limit is {MEMORY_NOTES_MAX}");
            cx.add(Problem::new(Code::BadValue, node.span, message));
        }
        Some(MemoryRow)
    }

    fn schema(defs: &mut Defs) -> Value {
        row_schema(&MemoryProfile::ROW, defs)
    }
}

document! {
    /// Policies: their text, or a file with it.
    pub(crate) struct PolicyDoc {
        /// The file, relative to this file.
        optional "file" file: Spanned<String>,
        /// The text of the policies.
        optional "text" text: String,
        /// The policy set that they belong to (active).
        optional "set" set: PolicySet,
    }
}

/// Policies with either a text or a file.
#[derive(Debug, Clone)]
pub(crate) struct Policy;

impl Read for Policy {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Policy> {
        let map = PolicyDoc::read(node, cx)?;
        match (&map.file, &map.text) {
            (Some(file), Some(_)) => {
                let message = "`file` and `text` exclude each other";
                cx.add(Problem::new(Code::ConflictingFields, file.span, message));
            }
            (None, None) => {
                let message = "`file` or `text` is missing";
                cx.add(Problem::new(Code::MissingField, node.span, message));
            }
            _ => {}
        }
        Some(Policy)
    }

    fn schema(defs: &mut Defs) -> Value {
        PolicyDoc::schema(defs)
    }
}

document! {
    /// A lens in a file.
    pub(crate) struct LensFileDoc {
        /// The file, relative to this file.
        required "file" file: String,
    }
}

/// A lens, inline or in a file.
#[derive(Debug, Clone)]
pub(crate) struct LensOrFile;

impl Read for LensOrFile {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<LensOrFile> {
        if node.get("file").is_some() {
            LensFileDoc::read(node, cx)?;
            return Some(LensOrFile);
        }
        // Programs often write lenses, in their own spelling.
        let strict = std::mem::replace(&mut cx.spelling, Spelling::Either);
        let lens = LensDoc::read(node, cx);
        cx.spelling = strict;
        lens.map(|_| LensOrFile)
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [LensFileDoc::schema(defs), LensDoc::schema(defs)] })
    }
}
