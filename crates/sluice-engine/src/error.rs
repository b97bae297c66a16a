//! Errors, one variant for each thing the caller does next.

use sluice_core::id::RunId;
use sluice_core::port::store::{NodeId, StoreError};
use sluice_core::run::command::Refusal;
use sluice_core::violation::Violation;

use crate::trust::RulesError;

/// An engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store failed: retry.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The policies cannot be used, so nothing may run.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

/// A run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The arguments do not fit their declarations.
    #[error("the arguments do not fit: {}", list(.0))]
    Args(Vec<Violation>),
    /// A step names an unknown agent, or no agent.
    #[error("{0}")]
    Agent(String),
    /// The caller binds a role that the deployment binds to another agent.
    #[error("the deployment `{deployment}` binds the role `{role}` to `{agent}`")]
    RoleBound {
        /// The role that the caller binds.
        role: String,
        /// The name of the deployment that binds it already.
        deployment: String,
        /// The agent that the deployment binds the role to.
        agent: String,
    },
    /// A workflow, lens or library step that the plan refers to was not found.
    #[error("{0}")]
    Unresolved(String),
    /// The idempotency key already belongs to a different start.
    #[error("the idempotency key belongs to {run}, which differs in {}", differs.join(", "))]
    KeyConflict {
        /// The run that has the key.
        run: RunId,
        /// What differs between that run and this start.
        differs: Vec<String>,
    },
    /// A gate refused the start.
    #[error("{message}")]
    Blocked {
        /// Code of the refusal.
        code: &'static str,
        /// The gate's explanation.
        message: String,
    },
    /// The registry changed after the request was resolved: resolve it again.
    #[error("the registry changed while the run was being started")]
    Moved,
    /// Too many runs are nested.
    #[error("sub-workflows are nested more than {0} deep")]
    TooDeep(u32),
    /// The run that this start refers to cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// The store failed: retry.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine is shutting down.
    #[error("the engine is stopping")]
    Stopping,
}

/// A store error while another run is read is reported as a store error, so that
/// the caller retries.
impl From<LoadError> for StartError {
    fn from(error: LoadError) -> StartError {
        match error {
            LoadError::Store(error) => StartError::Store(error),
            LoadError::NoRun(_) | LoadError::Poison { .. } => StartError::Load(error),
        }
    }
}

/// A run could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store has no journal of this run.
    #[error("there is no {0}")]
    NoRun(RunId),
    /// Its journal cannot be folded: the run is quarantined.
    #[error("{run} cannot be read: {reason}")]
    Poison {
        /// Id of the quarantined run.
        run: RunId,
        /// What is wrong with the journal.
        reason: String,
    },
    /// The store failed: retry.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The run refused the command in its current state.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The run cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed: retry.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine is shutting down.
    #[error("the engine is stopping")]
    Stopping,
}

/// How far a command got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// It was applied, durably.
    Done,
    /// It waits in the run's durable mailbox for the node that owns the run.
    Posted(NodeId),
}

fn list(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
