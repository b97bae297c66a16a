//! What Sluice says no to: a code, what is wrong, what to do.
//!
//! The command line draws a refusal and exits with 2; the server answers it as
//! a problem with the status of its code.

use sluice_core::port::store::StoreError;
use sluice_core::run::command::Refusal;
use sluice_core::run::id::RunId;
use sluice_engine::error::{CommandError, LoadError, StartError};

/// There is no run of this id, or of this beginning.
pub const RUN_UNKNOWN: &str = "run_unknown";
/// There is no question of this id, or of this beginning.
pub const APPROVAL_UNKNOWN: &str = "approval_unknown";
/// A beginning that several ids have.
pub const ID_AMBIGUOUS: &str = "id_ambiguous";
/// The run is worked on by a process that lives.
pub const RUN_OWNED: &str = "run_owned";
/// The run has not ended.
pub const RUN_NOT_ENDED: &str = "run_not_ended";
/// There is no such checkpoint.
pub const CHECKPOINT_UNKNOWN: &str = "checkpoint_unknown";
/// The data directory is missing or cannot be used.
pub const DATA_UNUSABLE: &str = "data_unusable";
/// The idempotency key was used for something else.
pub const KEY_CONFLICT: &str = "idempotency_conflict";
/// The caller binds a role that the deployment binds to another agent.
pub const ROLE_BOUND: &str = "role_bound";
/// The document is not the one that the run was started with.
pub const DOCUMENT_CHANGED: &str = "document_changed";
/// The run is paused by an operator.
pub const RUN_PAUSED: &str = "run_paused";
/// Nothing failed that could be done again.
pub const NOTHING_FAILED: &str = "nothing_failed";
/// Nobody is there to confirm it.
pub const NOT_CONFIRMED: &str = "not_confirmed";
/// A run's journal cannot be read.
pub const RUN_UNREADABLE: &str = "run_unreadable";
/// The key that seals are signed with, or the file they are copied to, cannot be used.
pub const SEAL_UNUSABLE: &str = "seal_unusable";
/// What a store holds is not what a process with its key wrote.
pub const STORE_NOT_AUTHENTIC: &str = "store_not_authentic";
/// The store lacks the newest seal of its seal file, or has another one in its place.
pub const STORE_ROLLED_BACK: &str = "store_rolled_back";
/// A file that should hold seals does not.
pub const SEAL_UNREADABLE: &str = "seal_unreadable";
/// Nothing of a run is under a seal, or nothing is sealed at all.
pub const NOT_SEALED: &str = "not_sealed";
/// The run has no such event.
pub const EVENT_UNKNOWN: &str = "event_unknown";

/// There is no row of this name.
pub const ROW_UNKNOWN: &str = "row_unknown";
/// Other rows name the one that would go.
pub const ROW_IN_USE: &str = "row_in_use";
/// A row says what no row of its kind can.
pub const ROW_UNREADABLE: &str = "row_unreadable";
/// A version of a workflow is there already, with another text.
pub const VERSION_TAKEN: &str = "version_taken";
/// Policies that cannot be used, or a change that would leave none.
pub const POLICIES_REFUSED: &str = "policies_refused";
/// The system gives the process too little memory or too few threads.
pub const OUT_OF_RESOURCES: &str = "out_of_resources";
/// What to do then.
pub const RESOURCES_REMEDY: &str = "give the process more address space (`ulimit -v`), memory or \
                                    threads (`ulimit -u`, the container's limits)";
/// Policies in force do not allow the change.
pub const CHANGE_REFUSED: &str = "change_refused";
/// A row names a variable or a file, and its author is not the operator.
pub const SECRET_NOT_NAMED: &str = "secret_not_named";
/// The operator declares no secret of this name for the organisation.
pub const SECRET_UNKNOWN: &str = "secret_unknown";
/// Others kept changing the registry.
pub const REGISTRY_BUSY: &str = "registry_busy";
/// The agent is not on trial.
pub const NOT_ON_TRIAL: &str = "not_on_trial";
/// The word list, or the address of the moderator, cannot be used.
pub const BAD_MODERATION: &str = "moderation_unusable";
/// A question about costs with more rows than are answered.
pub const COST_TOO_WIDE: &str = "cost_too_wide";
/// A file that would be written over.
pub const FILE_EXISTS: &str = "file_exists";

/// Something that is not done.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// Stable, with a page of its own.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// One for each thing that is wrong.
    pub notes: Vec<String>,
    /// What to do.
    pub remedy: String,
}

/// Why something that was asked for was not done. One variant per thing the
/// caller does next.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It makes no sense, or is not allowed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store failed: try again later.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The process is about to end: ask another, or later.
    #[error("the engine is stopping")]
    Stopping,
}

/// What was asked for, or why it was not done.
pub type Done<T> = Result<T, Failure>;

impl Refused {
    /// A refusal; `remedy` says what to do.
    pub fn new(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Refused {
        Refused { code, message: message.into(), notes: Vec::new(), remedy: remedy.into() }
    }

    /// The same, with a note for each thing that is wrong.
    pub fn with_notes(mut self, notes: Vec<String>) -> Refused {
        self.notes = notes;
        self
    }

    /// A command that a run says no to.
    pub fn by_run(run: RunId, refusal: &Refusal) -> Refused {
        let remedy = match refusal {
            Refusal::Ended(_) => {
                format!(
                    "`sluice runs show {run}` says how it ended; `sluice runs restart {run}` makes a new one"
                )
            }
            Refusal::NotPaused | Refusal::NotBlocked(_) => {
                format!("`sluice runs show {run}` says what it waits for")
            }
            Refusal::NoMember(_) => {
                "use the id of a member as the document writes it, or see `sluice agents list`"
                    .to_owned()
            }
            Refusal::NoApproval(_) | Refusal::Resolved(_) => {
                "`sluice approvals list` shows what is open".to_owned()
            }
            Refusal::WrongDecision(_) => "`sluice approvals show` lists the answers".to_owned(),
            Refusal::CommentMissing => "say why with `--reason TEXT`".to_owned(),
            Refusal::BadValues(_) => "give each with `--set NAME=VALUE`".to_owned(),
            Refusal::NotFailed(_) => {
                format!("`sluice runs restart {run} --from STEP` does steps again in a new run")
            }
            Refusal::Late => "nothing: the result is known".to_owned(),
            Refusal::NothingToRewind => format!("`sluice runs show {run}` lists the checkpoints"),
            Refusal::NotApprover { .. } => {
                "let one of them answer, or answer in a role that is named: `--role ROLE`"
                    .to_owned()
            }
            Refusal::SelfApproval(_) => "let somebody else answer".to_owned(),
            Refusal::AnsweredAlready(_) => "let the others answer".to_owned(),
            Refusal::Widens(_) => "`sluice approvals show` says what it is held to".to_owned(),
        };
        match refusal {
            Refusal::BadValues(violations) => {
                let notes = violations.iter().map(ToString::to_string).collect();
                Refused::new(refusal.code(), "the values do not fit", remedy).with_notes(notes)
            }
            _ => Refused::new(refusal.code(), refusal.to_string(), remedy),
        }
    }

    /// A run that somebody else works on.
    pub fn owned(run: RunId) -> Refused {
        let message = format!("{run} is being worked on by another process");
        Refused::new(RUN_OWNED, message, format!("follow it with `sluice runs watch {run}`"))
    }
}

/// A run that could not be started.
pub fn start(error: StartError) -> Failure {
    match error {
        StartError::Args(violations) => {
            let notes = violations.iter().map(ToString::to_string).collect();
            let remedy = "give each with `--arg NAME=VALUE`; the document says what it takes";
            Refused::new("invalid_args", "the arguments do not fit", remedy)
                .with_notes(notes)
                .into()
        }
        StartError::Agent(message) => {
            let remedy = "`sluice run --help` shows `--agent`, `--bind` and `--mock`";
            Refused::new("unknown_agent", message, remedy).into()
        }
        StartError::RoleBound { .. } => {
            let remedy = "leave the binding of this role out, or change the deployment";
            Refused::new(ROLE_BOUND, error.to_string(), remedy).into()
        }
        StartError::Unresolved(message) => {
            let remedy = "name a file that holds it with `--registry FILE`";
            Refused::new("unresolved_reference", message, remedy).into()
        }
        StartError::KeyConflict { .. } => {
            let remedy = "use another key, or send the same again; a key is in use for a day";
            Refused::new(KEY_CONFLICT, error.to_string(), remedy).into()
        }
        StartError::Blocked { code, message } => {
            let remedy = "`sluice policies list` shows the policies in force";
            Refused::new(code, message, remedy).into()
        }
        StartError::Load(error) => load(error),
        StartError::TooDeep(_) => {
            let remedy = "let fewer workflows start each other";
            Refused::new("recursion_limit", error.to_string(), remedy).into()
        }
        StartError::Moved => StoreError::Unavailable(StartError::Moved.to_string()).into(),
        StartError::Store(error) => error.into(),
        StartError::Stopping => Failure::Stopping,
    }
}

/// A run that could not be loaded.
pub fn load(error: LoadError) -> Failure {
    match error {
        LoadError::NoRun(run) => {
            let remedy = "`sluice runs list` shows the runs there are";
            Refused::new(RUN_UNKNOWN, format!("there is no {run}"), remedy).into()
        }
        LoadError::Poison { run, reason } => {
            let message = format!("the journal of {run} cannot be read: {reason}");
            let remedy = "it is left alone; other runs are not affected";
            Refused::new(RUN_UNREADABLE, message, remedy).into()
        }
        LoadError::Store(error) => error.into(),
    }
}

/// A command that was not carried out.
pub fn command(run: RunId, error: CommandError) -> Failure {
    match error {
        CommandError::Refused(refusal) => Refused::by_run(run, &refusal).into(),
        CommandError::Load(error) => load(error),
        CommandError::Store(error) => error.into(),
        CommandError::Stopping => Failure::Stopping,
    }
}
