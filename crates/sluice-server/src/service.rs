//! What can be asked of one organisation, whoever carries the question: HTTP, an
//! agent over MCP, or the command line on its own data directory.
//!
//! INVARIANT: a service sees one store and nothing else. Each organisation has a
//! store of its own, so no question can reach another's.

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
pub mod export;
pub mod find;
pub mod forecast;
pub mod past;
pub mod policies;
pub mod registry;
pub mod rows;
pub mod runs;
pub mod start;
pub mod unused;
pub mod versions;

use crate::workspaces::Workspaces;
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::port::store::Store;
use sluice_engine::Engine;
use std::sync::Arc;

/// One organisation: where its runs are kept, and who works on them.
#[derive(Clone)]
pub struct Service {
    /// Where its runs and rows are.
    pub store: Arc<dyn Store>,
    /// Who works on them here.
    pub engine: Arc<Engine>,
    /// Where commands of its runs work; none where the caller keeps no files.
    pub workspaces: Option<Workspaces>,
    /// Who changes its rows.
    pub origin: RowOrigin,
    /// The secrets that its rows may name.
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
    /// Commands on rows that a server uses. Which secrets are declared is known there.
    Client,
}
