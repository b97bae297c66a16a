//! How this process reaches providers and tools: live, recorded, or replayed from a recording.

use crate::Exit;
use crate::cli::run::Data;
use crate::config::{self, setting::Name};
use crate::keyring;
use crate::out::Out;
use sluice_bridge::directory::AdapterContext;
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::pinned::PinFile;
use sluice_bridge::record::Recorder;
use sluice_bridge::replay::Replay;
use sluice_bridge::tool_catalog::PinnedCatalog;
use sluice_bridge::tools::ToolServer;
use sluice_core::port::authority::CatalogSource;
use sluice_core::visible;
use sluice_server::refused::Refused;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const RECORDING_UNUSABLE: &str = "recording_unusable";

/// Private addresses that may be called, as configured.
pub(crate) fn allowed_words() -> &'static [String] {
    config::get().words(Name::OutboundAllow)
}

/// The same, parsed.
pub(crate) fn allowed() -> Result<AllowList, Refused> {
    AllowList::parse(allowed_words().iter().map(String::as_str)).map_err(|error| {
        let remedy = "`outbound.allow` lists hosts, addresses and networks such as `10.0.0.0/8`";
        Refused::new(config::CONFIG_INVALID, error.to_string(), remedy)
    })
}

/// The MCP servers, with the accepted tool definitions of this file.
pub(crate) fn tool_servers(pins: &Arc<PinFile>) -> BTreeMap<String, Arc<dyn ToolServer>> {
    let secrets = keyring::operator();
    let named = config::get().tool_servers().iter();
    let opened = named.map(|server| Some((server.name.clone(), server.open(pins, &secrets)?)));
    opened.flatten().collect()
}

/// File of the accepted tool definitions of this process.
fn pins() -> Arc<PinFile> {
    static PINS: OnceLock<Arc<PinFile>> = OnceLock::new();
    Arc::clone(PINS.get_or_init(|| Arc::new(PinFile::new(&config::get().data()))))
}

/// The catalog of the tools of this process; `None` if no MCP server is configured.
pub(crate) fn catalog() -> Option<Arc<dyn CatalogSource>> {
    static CATALOG: OnceLock<Arc<PinnedCatalog>> = OnceLock::new();
    if config::get().tool_servers().is_empty() {
        return None;
    }
    let catalog = CATALOG
        .get_or_init(|| Arc::new(PinnedCatalog::new(config::get().tool_declarations(), pins())));
    Some(Arc::clone(catalog) as _)
}

/// Calls providers and tools, with the secrets of the organisation.
pub(crate) fn live(data: &Data) -> Result<AdapterContext, Refused> {
    let tool_servers = tool_servers(&pins());
    let (wire, secrets) = (Arc::new(Outbound::new(allowed()?)), keyring::for_data(data));
    Ok(AdapterContext { wire, tool_servers, secrets, callbacks: None })
}

/// Whether exchanges with providers and tools are recorded or replayed.
pub(crate) enum Tape {
    None,
    Record(Arc<Recorder>),
    Replay(Arc<Replay>),
}

impl Tape {
    pub(crate) fn new(record: Option<&Path>, replay: Option<&Path>) -> Result<Tape, Refused> {
        let refused = |path: &Path, why: String, remedy: &str| {
            let message = format!("`{}`: {why}", path.display());
            Refused::new(RECORDING_UNUSABLE, message, remedy)
        };
        Ok(match (record, replay) {
            (Some(path), _) => Tape::Record(Recorder::create(path).map_err(|error| {
                refused(path, error.to_string(), "name a file that can be written")
            })?),
            (None, Some(path)) => Tape::Replay(Replay::open(path).map_err(|error| {
                refused(path, error.to_string(), "name a file that `sluice run --record` made")
            })?),
            (None, None) => Tape::None,
        })
    }

    pub(crate) fn kit(&self, data: &Data) -> Result<AdapterContext, Refused> {
        let kit = live(data)?;
        Ok(match self {
            Tape::None => kit,
            Tape::Record(recorder) => {
                let kept =
                    |(name, server): (String, Arc<dyn ToolServer>)| (name, recorder.tools(server));
                let tool_servers = kit.tool_servers.into_iter().map(kept).collect();
                AdapterContext { wire: recorder.wire(kit.wire), tool_servers, ..kit }
            }
            Tape::Replay(replay) => {
                let names = kit.tool_servers.into_keys();
                let tool_servers: BTreeMap<_, _> =
                    names.map(|name| (name.clone(), replay.tools(&name))).collect();
                AdapterContext { wire: replay.wire(), tool_servers, ..kit }
            }
        })
    }

    /// Prints the recorded exchanges, or the differences of a replay. A replay with differences
    /// fails.
    pub(crate) fn end(&self, exit: Exit, out: &mut Out) -> anyhow::Result<Exit> {
        match self {
            Tape::None => Ok(exit),
            Tape::Record(recorder) => match recorder.finish() {
                Ok(count) => {
                    out.note(&format!("exchanges recorded: {count}"))?;
                    Ok(exit)
                }
                Err(error) => {
                    out.note(&error.to_string())?;
                    Ok(failed(exit))
                }
            },
            Tape::Replay(replay) => {
                let (diverged, unused) = (replay.diverged(), replay.unused());
                for one in &diverged {
                    out.note(&format!("diverged at {}", visible::line(one)))?;
                }
                for one in &unused {
                    out.note(&format!("never requested: {}", visible::line(one)))?;
                }
                let same = diverged.is_empty() && unused.is_empty();
                if same {
                    out.note("replayed without a difference")?;
                }
                Ok(if same { exit } else { failed(exit) })
            }
        }
    }
}

/// The exit code of the run takes precedence.
fn failed(exit: Exit) -> Exit {
    if exit == Exit::Done { Exit::Failed } else { exit }
}
