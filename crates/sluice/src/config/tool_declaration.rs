//! What the operator declares about the tools of a server: `[tool_servers.NAME]` has defaults
//! for all of its tools, `[tool_servers.NAME.tools.TOOL]` is about one tool or, as `get_*`,
//! about those whose names begin so.

use super::tool_server::{Notes, TABLE};
use serde_json::{Map, Value, json};
use sluice_core::choice::Choice as _;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_govern::catalog::{ServerDeclaration, ToolDeclaration};
use sluice_govern::facts::{ArgumentRole, SendsTo};
use sluice_govern::flow_label::{CHARS_MAX, NAMES_MAX, is_name};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Fields of a server that apply to all of its tools.
pub(super) const DEFAULTS: [&str; 4] = ["labels", "origin", "sensitive", "sends_to"];
/// Field of a server with the declarations of its tools.
pub(super) const TOOLS: &str = "tools";
/// Fields of a tool.
const FIELDS: [&str; 9] = [
    "labels",
    "origin",
    "sensitive",
    "sends_to",
    "read_only",
    "records",
    "private",
    "lists",
    "arguments",
];
/// Most declared tools of a server.
const TOOLS_MAX: usize = 1000;
/// Most fields of answers, and most arguments, of a tool.
const PATHS_MAX: usize = 256;
/// Longest name of a tool, a field or an argument, in bytes.
const PATH_BYTES_MAX: usize = 256;

/// Reads the declarations of a server.
pub(super) fn read(name: &str, fields: &DeTable<'_>, notes: &mut Notes) -> ServerDeclaration {
    let mut reader =
        DeclarationReader { within: format!("{TABLE}.{}", visible::brief(name)), notes };
    let defaults = reader.declaration(fields);
    let tools = reader.tools(fields);
    ServerDeclaration { name: name.into(), defaults, tools }
}

/// Adds the names of `read_only_tools`; `*` means all tools.
pub(super) fn add_read_only(
    declared: &ServerDeclaration,
    read_only_tools: &[String],
) -> ServerDeclaration {
    let mut declared = declared.clone();
    for tool in read_only_tools {
        let of = match tool.as_str() {
            "*" => &mut declared.defaults,
            _ => declared.tools.entry(tool.clone()).or_default(),
        };
        of.read_only = Some(true);
    }
    declared
}

/// The declarations as the file has them.
pub(super) fn shown(declared: &ServerDeclaration) -> Map<String, Value> {
    let mut fields = fields(&declared.defaults);
    if !declared.tools.is_empty() {
        let tools = declared.tools.iter();
        let tools: Map<String, Value> =
            tools.map(|(name, tool)| (name.clone(), self::fields(tool).into())).collect();
        fields.insert(TOOLS.to_owned(), tools.into());
    }
    fields
}

fn fields(declared: &ToolDeclaration) -> Map<String, Value> {
    let all = [
        ("labels", declared.labels.as_ref().map(|names| json!(names))),
        ("origin", declared.origins.as_ref().map(|names| json!(names))),
        ("sensitive", declared.secrecy.as_ref().map(|names| json!(names))),
        ("sends_to", declared.sends_to.map(|place| json!(place))),
        ("read_only", declared.read_only.map(|read_only| json!(read_only))),
        ("records", declared.records.as_ref().map(|paths| json!(paths))),
        ("private", declared.private.as_ref().map(|paths| json!(paths))),
        ("lists", declared.lists.as_ref().map(|paths| json!(paths))),
        ("arguments", declared.roles.as_ref().map(|roles| json!(roles))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

struct DeclarationReader<'n> {
    /// Name of the table.
    within: String,
    notes: &'n mut Notes,
}

impl DeclarationReader<'_> {
    fn note(&mut self, at: usize, what: &str) {
        self.notes.push((at, format!("`{}` {what}", self.within)));
    }

    fn tools(&mut self, fields: &DeTable<'_>) -> BTreeMap<String, ToolDeclaration> {
        let Some(value) = fields.get(TOOLS) else { return BTreeMap::new() };
        let at = value.span().start;
        let DeValue::Table(tools) = value.get_ref() else {
            self.note(at, "has `tools` that are not a table of tables");
            return BTreeMap::new();
        };
        if tools.len() > TOOLS_MAX {
            self.note(at, &format!("declares more than {TOOLS_MAX} tools"));
            return BTreeMap::new();
        }
        let mut declared = BTreeMap::new();
        for (name, value) in tools {
            let (at, name) = (name.span().start, name.get_ref().as_ref());
            let within = format!("{}.{TOOLS}.{}", self.within, visible::brief(name));
            let mut reader = DeclarationReader { within, notes: self.notes };
            let own = name.strip_suffix('*').unwrap_or(name);
            if name.is_empty() || name.len() > PATH_BYTES_MAX || own.contains(['*', '\0']) {
                let what = format!(
                    "is not the name of a tool or its start and `*`, of at most {PATH_BYTES_MAX} bytes"
                );
                reader.note(at, &what);
            }
            match value.get_ref() {
                DeValue::Table(fields) => {
                    reader.known(fields);
                    declared.insert(name.to_owned(), reader.declaration(fields));
                }
                _ => reader.note(at, "is not a table"),
            }
        }
        declared
    }

    fn known(&mut self, fields: &DeTable<'_>) {
        for key in fields.keys() {
            let field = key.get_ref().as_ref();
            if !FIELDS.contains(&field) {
                let near = suggest(field, FIELDS);
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let field = visible::brief(field);
                self.note(key.span().start, &format!("has no field `{field}`{near}"));
            }
        }
    }

    fn declaration(&mut self, fields: &DeTable<'_>) -> ToolDeclaration {
        let set = |names: Vec<Arc<str>>| names.into_iter().collect();
        ToolDeclaration {
            labels: self.names(fields, "labels"),
            origins: self.names(fields, "origin").map(set),
            secrecy: self.names(fields, "sensitive").map(set),
            sends_to: self.sends_to(fields),
            read_only: self.read_only(fields),
            records: self.paths(fields, "records"),
            private: self.paths(fields, "private"),
            lists: self.paths(fields, "lists"),
            roles: self.roles(fields),
        }
    }

    /// Names that policies refer to.
    fn names(&mut self, fields: &DeTable<'_>, field: &str) -> Option<Vec<Arc<str>>> {
        let (at, names) = self.texts(fields, field, NAMES_MAX)?;
        if let Some(bad) = names.iter().find(|name| !is_name(name.as_str())) {
            let bad = visible::brief(bad);
            let what = format!(
                "has `{bad}` in `{field}`, which is not a name: use lower-case letters, digits, `_`, \
                 `-` and `.`, a letter first, at most {CHARS_MAX}"
            );
            self.note(at, &what);
            return None;
        }
        Some(names.into_iter().map(Arc::from).collect())
    }

    /// Names of fields of answers.
    fn paths(&mut self, fields: &DeTable<'_>, field: &str) -> Option<Vec<String>> {
        let (at, paths) = self.texts(fields, field, PATHS_MAX)?;
        let is_path = |path: &&String| (1..=PATH_BYTES_MAX).contains(&path.len());
        if !paths.iter().all(|path| is_path(&path)) {
            let what =
                format!("has a name in `{field}` that is empty or over {PATH_BYTES_MAX} bytes");
            self.note(at, &what);
            return None;
        }
        Some(paths)
    }

    fn texts(
        &mut self,
        fields: &DeTable<'_>,
        field: &str,
        most: usize,
    ) -> Option<(usize, Vec<String>)> {
        let value = fields.get(field)?;
        let at = value.span().start;
        let texts: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(items) if items.len() <= most => {
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        if texts.is_none() {
            self.note(at, &format!("has `{field}` that is not a list of at most {most} texts"));
        }
        Some((at, texts?))
    }

    fn read_only(&mut self, fields: &DeTable<'_>) -> Option<bool> {
        let value = fields.get("read_only")?;
        let read_only = value.get_ref().as_bool();
        if read_only.is_none() {
            self.note(value.span().start, "has `read_only` that is neither `true` nor `false`");
        }
        read_only
    }

    fn sends_to(&mut self, fields: &DeTable<'_>) -> Option<SendsTo> {
        let value = fields.get("sends_to")?;
        let place = value.get_ref().as_str().and_then(SendsTo::parse);
        if place.is_none() {
            let words = SendsTo::NAMES.join("`, `");
            self.note(value.span().start, &format!("has `sends_to` that is not one of `{words}`"));
        }
        place
    }

    fn roles(&mut self, fields: &DeTable<'_>) -> Option<BTreeMap<String, ArgumentRole>> {
        let value = fields.get("arguments")?;
        let at = value.span().start;
        let arguments = match value.get_ref() {
            DeValue::Table(arguments) if arguments.len() <= PATHS_MAX => arguments,
            _ => {
                let what =
                    format!("has `arguments` that are not a table of at most {PATHS_MAX} roles");
                self.note(at, &what);
                return None;
            }
        };
        let mut roles = BTreeMap::new();
        for (path, role) in arguments {
            let (at, path) = (path.span().start, path.get_ref().as_ref());
            let role = role.get_ref().as_str().and_then(ArgumentRole::parse);
            match role.filter(|_| (1..=PATH_BYTES_MAX).contains(&path.len())) {
                Some(role) => {
                    roles.insert(path.to_owned(), role);
                }
                None => {
                    let (path, words) = (visible::brief(path), ArgumentRole::NAMES.join("`, `"));
                    self.note(
                        at,
                        &format!("has an argument `{path}` whose role is not one of `{words}`"),
                    );
                }
            }
        }
        Some(roles)
    }
}
