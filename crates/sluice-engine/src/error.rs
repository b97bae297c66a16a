//! What can go wrong, by what the caller does next.

use sluice_core::port::store::{NodeId, StoreError};
use sluice_core::run::command::Refusal;
use sluice_core::run::id::RunId;
use sluice_core::violation::Violation;

use crate::trust::RulesError;

/// An engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are no rules that could be used: nothing may run.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

/// A run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The arguments do not fit their declarations.
    #[error("the arguments do not fit: {}", list(.0))]
    Args(Vec<Violation>),
    /// A step names an agent that does not exist, or none.
    #[error("{0}")]
    Agent(String),
    /// The caller binds a role that the deployment binds to another agent.
    #[error("the deployment `{deployment}` binds the role `{role}` to `{agent}`")]
    RoleBound {
        /// The role.
        role: String,
        /// The deployment.
        deployment: String,
        /// The agent that the deployment binds the role to.
        agent: String,
    },
    /// The plan has parts that were not at hand.
    #[error("{0}")]
    Unresolved(String),
    /// The idempotency key was used for something else.
    #[error("the idempotency key belongs to {run}, which differs in {}", differs.join(", "))]
    KeyConflict {
        /// The run that has the key.
        run: RunId,
        /// In what this start differs from it.
        differs: Vec<String>,
    },
    /// The gates said no.
    #[error("{message}")]
    Blocked {
        /// The gate's code.
        code: &'static str,
        /// What it said.
        message: String,
    },
    /// The registry has changed since the request was resolved: resolve it again.
    #[error("the registry changed while the run was being started")]
    Moved,
    /// Too many runs above each other.
    #[error("sub-workflows start each other more than {0} deep")]
    TooDeep(u32),
    /// There is no such run to start from.
    #[error(transparent)]
    Load(LoadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine stops.
    #[error("the engine is stopping")]
    Stopping,
}

/// A store that fails while another run is read is a store that fails: the caller
/// tries again.
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
    /// There is none of that id.
    #[error("there is no {0}")]
    NoRun(RunId),
    /// Its journal cannot be folded: it is left alone.
    #[error("{run} cannot be read: {reason}")]
    Poison {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It makes no sense now.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The run could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine stops.
    #[error("the engine is stopping")]
    Stopping,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// It is done, durably.
    Done,
    /// It lies in the run's inbox: the process that owns it will see to it.
    Posted(NodeId),
}

fn list(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
