//! Pins tool definitions: a tool is offered to models only with the definition that was
//! accepted.
//!
//! Description and input schema of a tool are untrusted text that models read. The definitions
//! in the first listing of a server are accepted and stored in a file of the data directory. If
//! a definition changes later, or a tool is added, the tool cannot be used until the operator
//! accepts its definition.
//!
//! Tool servers belong to the machine and are shared by all organisations, and so is the file.

use crate::limits::PINS_BYTES_MAX;
use crate::tools::{Structured, Tool, ToolAnswer, ToolServer, ToolServerError};
use crate::wire::RequestIndex;
use serde_json::{Value, json};
use sluice_core::canonical;
use sluice_core::port::Later;
use sluice_govern::catalog::{Definitions, ToolDefinition, ToolState, own_name};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the file in its directory.
pub const FILE: &str = "tools.json";
/// Lock file, locked while the file is changed.
const LOCK: &str = "tools.lock";

fn definition(tool: &Tool) -> Arc<ToolDefinition> {
    let (description, input_schema) = (tool.description.clone(), tool.input_schema.clone());
    let whole = json!({"description": description, "input_schema": input_schema});
    let digest = canonical::sha256_hex(&whole, description.len() + 1024);
    Arc::new(ToolDefinition { digest, description, input_schema: Arc::new(input_schema) })
}

/// Pins by qualified tool name.
pub type Pins = BTreeMap<String, Definitions>;

/// File of the pinned definitions.
#[derive(Debug)]
pub struct PinFile {
    dir: PathBuf,
    cached: Mutex<CachedPins>,
    changes: AtomicU64,
}

/// The pins as they were last read.
#[derive(Debug, Default)]
struct CachedPins {
    version: Option<FileVersion>,
    pins: Arc<Pins>,
}

/// Changes whenever the file is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    bytes: u64,
    modified_at: (i64, i64),
}

impl PinFile {
    /// The file in `dir`; the file is created when the first tool is seen.
    pub fn new(dir: &Path) -> PinFile {
        PinFile { dir: dir.to_owned(), cached: Mutex::default(), changes: AtomicU64::new(0) }
    }

    /// Number of changes of the file that this process has noticed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The pins; empty if there is no file. Unchanged pins are the same `Arc`.
    pub fn read(&self) -> io::Result<Arc<Pins>> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version()?;
        if version != cached.version {
            let pins = match version {
                Some(_) => serde_json::from_slice(&fs::read(self.dir.join(FILE))?)?,
                None => Pins::new(),
            };
            *cached = CachedPins { version, pins: Arc::new(pins) };
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
        Ok(Arc::clone(&cached.pins))
    }

    fn version(&self) -> io::Result<Option<FileVersion>> {
        match fs::metadata(self.dir.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(|found| {
                let modified_at = (found.mtime(), found.mtime_nsec());
                Some(FileVersion { inode: found.ino(), bytes: found.len(), modified_at })
            }),
        }
    }

    /// Accepts the current definitions of all tools whose name `fits` selects. Returns the
    /// names of the tools that were changed.
    pub fn accept(&self, fits: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
        self.change(&mut |pins| {
            let changed = pins.iter_mut().filter(|(name, _)| fits(name));
            let accepted = changed.filter_map(|(name, pin)| {
                pin.accepted = Some(pin.changed.take()?);
                Some(name.clone())
            });
            accepted.collect()
        })
    }

    /// The state of each tool of a listing. The first listing of a server is accepted as a
    /// whole; a tool that appears later is not.
    pub(crate) fn check_and_pin(&self, server: &str, tools: &[Tool]) -> io::Result<Vec<ToolState>> {
        let now: Vec<Arc<ToolDefinition>> = tools.iter().map(definition).collect();
        let known = self.read()?;
        let noted = |(tool, now): (&Tool, &Arc<ToolDefinition>)| {
            known.get(&tool.name).is_some_and(|pin| match &pin.changed {
                Some(changed) => changed.digest == now.digest,
                None => is_accepted(pin, now),
            })
        };
        let states = |pins: &Pins| {
            let state = |tool: &Tool| pins.get(&tool.name).map(Definitions::state);
            tools.iter().map(|tool| state(tool).unwrap_or(ToolState::Unseen)).collect()
        };
        if tools.iter().zip(&now).all(noted) {
            return Ok(states(&known));
        }
        self.change(&mut |pins| {
            let is_known = pins.keys().any(|name| own_name(name, server).is_some());
            for (tool, now) in tools.iter().zip(&now) {
                let first = || match is_known {
                    true => Definitions::default(),
                    false => Definitions { accepted: Some(Arc::clone(now)), changed: None },
                };
                let pin = pins.entry(tool.name.clone()).or_insert_with(first);
                pin.changed = (!is_accepted(pin, now)).then(|| Arc::clone(now));
            }
            states(pins)
        })
    }

    /// Changes the file atomically. Processes take turns.
    fn change<T>(&self, change: &mut dyn FnMut(&mut Pins) -> T) -> io::Result<T> {
        let lock = private(&self.dir.join(LOCK))?;
        lock.lock()?;
        let mut pins = Pins::clone(&*self.read()?);
        let changed = change(&mut pins);
        let bytes = serde_json::to_vec_pretty(&pins).map_err(io::Error::other)?;
        if bytes.len() > PINS_BYTES_MAX {
            return Err(io::Error::other(format!("the file would exceed {PINS_BYTES_MAX} bytes")));
        }
        let unfinished = self.dir.join(format!("{FILE}.tmp"));
        let mut file = private(&unfinished)?;
        file.write_all(&bytes).and_then(|()| file.sync_all())?;
        fs::rename(&unfinished, self.dir.join(FILE))?;
        self.read()?;
        Ok(changed)
    }
}

fn is_accepted(pin: &Definitions, now: &ToolDefinition) -> bool {
    pin.accepted.as_ref().is_some_and(|accepted| accepted.digest == now.digest)
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// A tool server that offers only tools with their accepted definition.
#[derive(Debug)]
pub struct Pinned {
    server: Arc<dyn ToolServer>,
    file: Arc<PinFile>,
}

impl Pinned {
    /// Restricts a server to the definitions in a file.
    pub fn new(server: Arc<dyn ToolServer>, file: Arc<PinFile>) -> Pinned {
        Pinned { server, file }
    }

    /// The tools of the server, with their states.
    async fn listed(&self) -> Result<(Arc<[Tool]>, Vec<ToolState>), ToolServerError> {
        let tools = self.server.tools().await?;
        let (file, listed) = (Arc::clone(&self.file), Arc::clone(&tools));
        let name = self.server.name().to_owned();
        let seen = tokio::task::spawn_blocking(move || file.check_and_pin(&name, &listed));
        let seen = seen.await.map_err(io::Error::other).and_then(|seen| seen);
        let states = seen.map_err(|error| {
            let name = self.server.name();
            ToolServerError(format!(
                "cannot check the accepted definitions of `{name}`: {FILE}: {error}"
            ))
        })?;
        Ok((tools, states))
    }

    async fn accepted(&self) -> Result<Arc<[Tool]>, ToolServerError> {
        let (tools, states) = self.listed().await?;
        if states.iter().all(|state| *state == ToolState::Accepted) {
            return Ok(tools);
        }
        let mut kept = Vec::new();
        for (tool, state) in tools.iter().zip(states) {
            match state.refusal(&tool.name) {
                Some(why) => tracing::warn!(tool = tool.name, "{why}"),
                None => kept.push(tool.clone()),
            }
        }
        Ok(kept.into())
    }

    async fn state_of(&self, tool: &str) -> Result<ToolState, ToolServerError> {
        let (tools, states) = self.listed().await?;
        let at = tools.iter().position(|listed| listed.name == tool);
        Ok(at.and_then(|at| states.get(at)).copied().unwrap_or(ToolState::Unseen))
    }
}

impl ToolServer for Pinned {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn reads_only(&self, tool: &str) -> bool {
        self.server.reads_only(tool)
    }

    fn tools(&self) -> Later<'_, Result<Arc<[Tool]>, ToolServerError>> {
        Box::pin(self.accepted())
    }

    fn state<'a>(&'a self, tool: &'a str) -> Later<'a, Result<ToolState, ToolServerError>> {
        Box::pin(self.state_of(tool))
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: &'a Value,
        index: RequestIndex<'a>,
    ) -> Later<'a, Result<(ToolAnswer, Structured), ToolServerError>> {
        self.server.call(tool, input, index)
    }
}

#[cfg(test)]
mod tests;
