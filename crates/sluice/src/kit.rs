//! How providers and tools are reached from here: live, kept in a recording, or
//! answered by one.

use crate::Exit;
use crate::cli::run::Data;
use crate::config::{self, setting::Name};
use crate::keyring;
use crate::out::Out;
use sluice_bridge::directory::Kit;
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::pinned::PinFile;
use sluice_bridge::record::Recorder;
use sluice_bridge::replay::Replay;
use sluice_bridge::tools::ToolServer;
use sluice_core::visible;
use sluice_server::refused::Refused;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A file that cannot be recorded to or replayed.
const RECORDING_UNUSABLE: &str = "recording_unusable";

/// Private places that may be called all the same, as they were written.
pub(crate) fn allowed_words() -> &'static [String] {
    config::get().words(Name::OutboundAllow)
}

/// The same, read.
pub(crate) fn allowed() -> Result<AllowList, Refused> {
    AllowList::parse(allowed_words().iter().map(String::as_str)).map_err(|error| {
        let remedy = "`outbound.allow` lists hosts, addresses and networks such as `10.0.0.0/8`";
        Refused::new(config::CONFIG_INVALID, error.to_string(), remedy)
    })
}

/// The servers of tools, held to what was accepted of them by a file in this directory.
pub(crate) fn tool_servers(dir: &Path) -> BTreeMap<String, Arc<dyn ToolServer>> {
    let pins = Arc::new(PinFile::new(dir));
    let secrets = keyring::operator();
    let named = config::get().tool_servers().iter();
    named.map(|server| (server.name.clone(), server.open(&pins, &secrets))).collect()
}

/// Providers and tools are really asked, with the secrets of a place's organisation.
pub(crate) fn live(data: &Data) -> Result<Kit, Refused> {
    let tool_servers = tool_servers(&config::get().data());
    let (wire, secrets) = (Arc::new(Outbound::new(allowed()?)), keyring::of(data));
    Ok(Kit { wire, tool_servers, secrets, callbacks: None })
}

/// What becomes of what providers and tools say.
pub(crate) enum Tape {
    /// Nothing.
    None,
    /// It is kept.
    Record(Arc<Recorder>),
    /// It comes from a recording.
    Replay(Arc<Replay>),
}

impl Tape {
    /// As the command says.
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

    /// How providers and tools are reached.
    pub(crate) fn kit(&self, data: &Data) -> Result<Kit, Refused> {
        let kit = live(data)?;
        Ok(match self {
            Tape::None => kit,
            Tape::Record(recorder) => {
                let kept =
                    |(name, server): (String, Arc<dyn ToolServer>)| (name, recorder.tools(server));
                let tool_servers = kit.tool_servers.into_iter().map(kept).collect();
                Kit { wire: recorder.wire(kit.wire), tool_servers, ..kit }
            }
            Tape::Replay(replay) => {
                let names = kit.tool_servers.into_keys();
                let tool_servers: BTreeMap<_, _> =
                    names.map(|name| (name.clone(), replay.tools(&name))).collect();
                Kit { wire: replay.wire(), tool_servers, ..kit }
            }
        })
    }

    /// Says what was kept, or where the run asked something else. A run that ended
    /// well but asked something else has failed as a replay.
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
                    out.note(&format!("never asked for: {}", visible::line(one)))?;
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

/// What went wrong otherwise is said first.
fn failed(exit: Exit) -> Exit {
    if exit == Exit::Done { Exit::Failed } else { exit }
}
