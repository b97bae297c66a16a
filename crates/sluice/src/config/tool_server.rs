//! MCP servers: `[tool_servers.NAME]` in `sluice.toml`, and nowhere else.
//!
//! A server is a local command or a URL. Only the operator configures them: no document and no
//! row can name another.

use super::tool_declaration::{self, TOOLS};
use serde_json::{Value, json};
use sluice_bridge::mcp::McpServer;
use sluice_bridge::mcp::stdio::Command;
use sluice_bridge::pinned::{PinFile, Pinned};
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::secret::SecretRef;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_govern::catalog::ServerDeclaration;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

pub(super) const TABLE: &str = "tool_servers";
/// Fields of a server, without those that declare its tools.
const FIELDS: [&str; 5] = ["command", "env", "url", "key", "read_only_tools"];
/// Most servers.
const SERVERS_MAX: usize = 100;
/// Most arguments of a command, and most variables.
const WORDS_MAX: usize = 100;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolServer {
    pub(crate) name: String,
    way: ToolTransport,
    read_only_tools: Vec<String>,
    /// What is declared about its tools, without `read_only_tools`.
    declared: ServerDeclaration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolTransport {
    Command(Command),
    Url {
        url: String,
        key: Option<SecretRef>,
    },
    /// This process cannot reach the server: it runs at a bridge.
    Bridge,
}

/// A problem, and its offset in the text.
pub(super) type Notes = Vec<(usize, String)>;

impl ToolServer {
    /// A client of the server; `None` if it runs at a bridge. The command is not started yet.
    pub(crate) fn open(
        &self,
        pins: &Arc<PinFile>,
        secrets: &Keyring,
    ) -> Option<Arc<dyn sluice_bridge::tools::ToolServer>> {
        let server = match &self.way {
            ToolTransport::Bridge => return None,
            ToolTransport::Command(command) => McpServer::process(&self.name, command.clone()),
            ToolTransport::Url { url, key } => {
                let key = key.as_ref().map(|key| secrets.of_setting(key));
                McpServer::remote(&self.name, url, key)
                    .expect("the address was checked when it was read")
            }
        };
        let server = server.with_declaration(self.declaration());
        Some(Arc::new(Pinned::new(Arc::new(server), Arc::clone(pins))))
    }

    /// What is declared about its tools.
    pub(crate) fn declaration(&self) -> ServerDeclaration {
        tool_declaration::add_read_only(&self.declared, &self.read_only_tools)
    }

    /// The name among the settings.
    pub(crate) fn setting(&self) -> String {
        format!("{TABLE}.{}", self.name)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut shown = match &self.way {
            ToolTransport::Command(command) => json!({"command": command.argv, "env": command.env}),
            ToolTransport::Url { url, key } => json!({"url": url, "key": key}),
            ToolTransport::Bridge => json!({}),
        };
        if !self.read_only_tools.is_empty() {
            shown["read_only_tools"] = json!(self.read_only_tools);
        }
        for (field, value) in tool_declaration::shown(&self.declared) {
            shown[field] = value;
        }
        shown
    }
}

impl fmt::Display for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            ToolTransport::Command(command) => {
                f.write_str(&visible::brief(&command.argv.join(" ")))?;
                if !command.env.is_empty() {
                    write!(f, " (sees {})", command.env.join(", "))?;
                }
            }
            ToolTransport::Url { url, key } => {
                f.write_str(&visible::brief(url))?;
                key.iter().try_for_each(|key| write!(f, " (key {key})"))?;
            }
            ToolTransport::Bridge => f.write_str("at a bridge")?,
        }
        match self.declared.tools.len() {
            0 => Ok(()),
            1 => f.write_str(", 1 tool declared"),
            count => write!(f, ", {count} tools declared"),
        }
    }
}

/// Parses the table, or returns all of its problems.
pub(super) fn read(table: &DeTable<'_>, dir: &Path) -> Result<Vec<ToolServer>, Notes> {
    let (mut servers, mut notes) = (Vec::new(), Notes::new());
    if table.len() > SERVERS_MAX {
        return Err(vec![(0, format!("there are more than {SERVERS_MAX} servers of tools"))]);
    }
    for (name, value) in table {
        let (at, name) = (name.span().start, name.get_ref().as_ref());
        let mut reader = ToolServerReader { name, dir, notes: Notes::new() };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
            let what =
                "is not a valid name of a server: use letters, digits, `_` and `-`, at most 64";
            reader.note(at, what);
        }
        match value.get_ref() {
            DeValue::Table(fields) => {
                let read_only_tools = reader.words(fields, "read_only_tools").unwrap_or_default().1;
                let declared = tool_declaration::read(name, fields, &mut reader.notes);
                reader.contradictions(at, &read_only_tools, &declared);
                if let Some(way) = reader.way(at, fields)
                    && reader.notes.is_empty()
                {
                    let name = name.to_owned();
                    servers.push(ToolServer { name, way, read_only_tools, declared });
                }
            }
            _ => reader.note(at, "is to be a table with `command` or `url`"),
        }
        notes.extend(reader.notes);
    }
    if notes.is_empty() { Ok(servers) } else { Err(notes) }
}

struct ToolServerReader<'t> {
    name: &'t str,
    dir: &'t Path,
    notes: Notes,
}

impl ToolServerReader<'_> {
    fn note(&mut self, at: usize, what: &str) {
        let name = visible::brief(self.name);
        self.notes.push((at, format!("`{TABLE}.{name}` {what}")));
    }

    fn way(&mut self, at: usize, fields: &DeTable<'_>) -> Option<ToolTransport> {
        let known = || FIELDS.into_iter().chain(tool_declaration::DEFAULTS).chain([TOOLS]);
        for key in fields.keys() {
            let field = key.get_ref().as_ref();
            if known().all(|known| known != field) {
                let near = suggest(field, known());
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let field = visible::brief(field);
                self.note(key.span().start, &format!("has no field `{field}`{near}"));
            }
        }
        let argv = self.words(fields, "command");
        let env = self.words(fields, "env");
        let url = self.text(fields, "url");
        let key = self.text(fields, "key");
        match (argv, url) {
            (Some((at, argv)), None) => {
                if let Some((at, _)) = key {
                    self.note(at, "has a `key`, which only one with a `url` is shown");
                }
                self.command(at, argv, env)
            }
            (None, Some((at, url))) => {
                if let Some((at, _)) = env {
                    self.note(at, "has an `env`, which only a `command` sees");
                }
                self.address(at, url, key)
            }
            (Some(_), Some(_)) => {
                self.note(at, "has both a `command` and a `url`");
                None
            }
            (None, None) => {
                if fields.contains_key("command") || fields.contains_key("url") {
                    return None;
                }
                if fields.contains_key(TOOLS) {
                    return Some(ToolTransport::Bridge);
                }
                let what = "needs a `command` or a `url`, or `tools` if it runs at a bridge";
                self.note(at, what);
                None
            }
        }
    }

    fn command(
        &mut self,
        at: usize,
        mut argv: Vec<String>,
        env: Option<(usize, Vec<String>)>,
    ) -> Option<ToolTransport> {
        let Some(program) = argv.first_mut().filter(|program| !program.is_empty()) else {
            self.note(at, "has a `command` without a program");
            return None;
        };
        // Paths are relative to the file; a bare name is searched in `PATH`.
        if program.contains('/') {
            *program = self.dir.join(&*program).to_string_lossy().into_owned();
        }
        let (at, env) = env.unwrap_or_default();
        if let Some(own) = env.iter().find(|name| name.starts_with(super::PREFIX)) {
            let own = visible::brief(own).into_owned();
            self.note(at, &format!("has an `env` with `{own}`: settings of Sluice stay its own"));
        }
        let is_name = |name: &String| format!("env:{name}").parse::<SecretRef>().is_ok();
        if let Some(bad) = env.iter().find(|name| !is_name(name)) {
            let bad = visible::brief(bad).into_owned();
            self.note(at, &format!("has an `env` with `{bad}`, which names no variable"));
        }
        Some(ToolTransport::Command(Command { argv, env }))
    }

    fn address(
        &mut self,
        at: usize,
        url: String,
        key: Option<(usize, String)>,
    ) -> Option<ToolTransport> {
        if let Err(refusal) = McpServer::remote(self.name, &url, None) {
            self.note(at, &format!("has a `url` that {refusal}"));
        }
        let key = match key.map(|(at, key)| key.parse::<SecretRef>().map_err(|bad| (at, bad))) {
            None => None,
            Some(Ok(key)) => Some(key),
            Some(Err((at, bad))) => {
                self.note(at, &format!("has a `key` that cannot be used: {bad}"));
                None
            }
        };
        Some(ToolTransport::Url { url, key })
    }

    /// Refuses a tool that is read-only in the list and not in its own declaration.
    fn contradictions(
        &mut self,
        at: usize,
        read_only_tools: &[String],
        declared: &ServerDeclaration,
    ) {
        for tool in read_only_tools {
            let own = declared.tools.get(tool);
            if own.is_some_and(|own| own.read_only == Some(false)) {
                let tool = visible::brief(tool).into_owned();
                self.note(
                    at,
                    &format!("has `{tool}` in `read_only_tools`, which is declared not to be"),
                );
            }
        }
    }

    fn text(&mut self, fields: &DeTable<'_>, name: &str) -> Option<(usize, String)> {
        let value = fields.get(name)?;
        let at = value.span().start;
        let Some(text) = value.get_ref().as_str() else {
            self.note(at, &format!("has a `{name}` that is not a text"));
            return None;
        };
        Some((at, text.to_owned()))
    }

    fn words(&mut self, fields: &DeTable<'_>, name: &str) -> Option<(usize, Vec<String>)> {
        let value = fields.get(name)?;
        let at = value.span().start;
        let words: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(items) if items.len() <= WORDS_MAX => {
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        let whole = |words: &Vec<String>| !words.iter().any(|word| word.contains('\0'));
        let words = words.filter(whole);
        if words.is_none() {
            let what = format!("has a `{name}` that is not a list of at most {WORDS_MAX} texts");
            self.note(at, &what);
        }
        words.map(|words| (at, words))
    }
}
