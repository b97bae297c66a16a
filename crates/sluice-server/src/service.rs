//! The operations on one organisation, independent of the transport: HTTP, MCP, or the
//! command line on a local data directory.
//!
//! INVARIANT: a service sees one store and nothing else. Each organisation has its own
//! store, so no operation can reach another organisation's data.

pub mod approvals;
pub mod audit;
pub mod backtest;
pub mod callback;
pub mod checkpoint;
pub mod cost;
pub mod course;
pub mod document;
pub mod elide;
pub mod erase;
pub mod explain;
pub mod export;
pub mod find;
pub mod flow;
pub mod forecast;
pub mod past;
pub mod policies;
pub mod registry;
pub mod rows;
pub mod runs;
pub mod start;
pub mod tools;
pub mod unused;
pub mod versions;

use crate::workspaces::Workspaces;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::port::store::Store;
use sluice_engine::Engine;
use std::sync::Arc;

/// One organisation: its store, and the engine that executes its runs.
#[derive(Clone)]
pub struct Service {
    /// Stores the runs and rows.
    pub store: Arc<dyn Store>,
    /// Executes the runs in this process.
    pub engine: Arc<Engine>,
    /// The working directories of runs; `None` where the caller keeps no files.
    pub workspaces: Option<Workspaces>,
    /// Who changes rows through this service.
    pub origin: RowOrigin,
    /// The secrets that rows may name.
    pub secrets: Keyring,
}

/// Who changes rows through a service, and so which secrets they may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrigin {
    /// The operator, by commands on the data directory of the first organisation:
    /// variables and files of the machine too.
    Operator,
    /// Callers of a server: secrets that are declared for the organisation.
    Server,
    /// Commands on rows that a server uses. Only the server knows which secrets are declared.
    Client,
}
