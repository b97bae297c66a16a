//! Refusals: a stable code, what is wrong, and what to do.
//!
//! The command line prints a refusal and exits with 2; the server answers it as a problem
//! document with the HTTP status of its code.

use sluice_core::id::RunId;
use sluice_core::port::store::StoreError;
use sluice_core::run::command::Refusal;
use sluice_engine::error::{CommandError, LoadError, StartError};

/// The request cannot be parsed, or a value in it is not valid.
pub const BAD_REQUEST: &str = "bad_request";
/// No run has this id or prefix.
pub(crate) const RUN_UNKNOWN: &str = "run_unknown";
/// No approval has this id or prefix.
pub(crate) const APPROVAL_UNKNOWN: &str = "approval_unknown";
/// Several ids begin with this prefix.
pub(crate) const ID_AMBIGUOUS: &str = "id_ambiguous";
/// Another live process owns the run.
pub(crate) const RUN_OWNED: &str = "run_owned";
pub(crate) const RUN_NOT_ENDED: &str = "run_not_ended";
/// The run has no such checkpoint.
pub(crate) const CHECKPOINT_UNKNOWN: &str = "checkpoint_unknown";
/// The data directory is missing or cannot be used.
pub const DATA_UNUSABLE: &str = "data_unusable";
/// The idempotency key was used for something else.
pub(crate) const KEY_CONFLICT: &str = "idempotency_conflict";
/// The caller binds a role that the deployment binds to another agent.
pub(crate) const ROLE_BOUND: &str = "role_bound";
/// The document is not the one that the run was started with.
pub const DOCUMENT_CHANGED: &str = "document_changed";
/// The run is paused by an operator.
pub const RUN_PAUSED: &str = "run_paused";
/// The run has no failed step to repeat.
pub(crate) const NOTHING_FAILED: &str = "nothing_failed";
/// The command needs confirmation, and there is no terminal to ask for it.
pub const NOT_CONFIRMED: &str = "not_confirmed";
/// A run's journal cannot be read.
pub(crate) const RUN_UNREADABLE: &str = "run_unreadable";
/// The signing key of seals, or the file that seals are copied to, cannot be used.
pub const SEAL_UNUSABLE: &str = "seal_unusable";
/// The content of a store was not written by a process that has its key.
pub const STORE_NOT_AUTHENTIC: &str = "store_not_authentic";
/// The store lacks the newest seal of its seal file, or holds a different one.
pub const STORE_ROLLED_BACK: &str = "store_rolled_back";
/// A file of seals cannot be read.
pub const SEAL_UNREADABLE: &str = "seal_unreadable";
/// No seal covers the run, or nothing is sealed at all.
pub(crate) const NOT_SEALED: &str = "not_sealed";
/// The run has no such event.
pub(crate) const EVENT_UNKNOWN: &str = "event_unknown";

/// No row has this name.
pub(crate) const ROW_UNKNOWN: &str = "row_unknown";
/// Other rows refer to the one that would be removed.
pub(crate) const ROW_IN_USE: &str = "row_in_use";
/// The content of a row is not valid for its kind.
pub(crate) const ROW_UNREADABLE: &str = "row_unreadable";
/// A version of a workflow exists already, with different content.
pub(crate) const VERSION_TAKEN: &str = "version_taken";
/// Policies that cannot be used, or a change that would leave none.
pub const POLICIES_REFUSED: &str = "policies_refused";
/// The operating system gives the process too little memory or too few threads.
pub const OUT_OF_RESOURCES: &str = "out_of_resources";
/// What to do about [`OUT_OF_RESOURCES`].
pub const RESOURCES_REMEDY: &str = "give the process more address space (`ulimit -v`), memory or \
                                    threads (`ulimit -u`, the container's limits)";
/// Policies in force do not allow the change.
pub(crate) const CHANGE_REFUSED: &str = "change_refused";
/// A row names a variable or a file, and its author is not the operator.
pub(crate) const SECRET_NOT_NAMED: &str = "secret_not_named";
/// The operator declares no secret of this name for the organisation.
pub(crate) const SECRET_UNKNOWN: &str = "secret_unknown";
/// Concurrent changes of the registry kept coming first.
pub const REGISTRY_BUSY: &str = "registry_busy";
/// The agent is not on trial.
pub const NOT_ON_TRIAL: &str = "not_on_trial";
/// The word list, or the address of the moderator, cannot be used.
pub const BAD_MODERATION: &str = "moderation_unusable";
/// A cost query would return too many rows.
pub(crate) const COST_TOO_WIDE: &str = "cost_too_wide";
/// The file exists and would be overwritten.
pub const FILE_EXISTS: &str = "file_exists";

/// A request or command that is refused.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// Stable, and documented on a page of its own.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// One note for each thing that is wrong.
    pub notes: Vec<String>,
    /// What to do.
    pub remedy: String,
}

/// Why an operation failed. One variant per thing the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is not valid, or not allowed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store failed: try again later.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The process is stopping: send the request to another node, or later.
    #[error("the engine is stopping")]
    Stopping,
}

/// The result of an operation of the service.
pub type ServiceResult<T> = Result<T, Failure>;
impl Refused {
    /// A refusal with a code, a message and a remedy.
    pub fn new(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Refused {
        Refused { code, message: message.into(), notes: Vec::new(), remedy: remedy.into() }
    }

    /// Adds a note for each thing that is wrong.
    pub fn with_notes(mut self, notes: Vec<String>) -> Refused {
        self.notes = notes;
        self
    }

    /// A refusal of a command by a run.
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
                "`sluice approvals list` lists the open approvals".to_owned()
            }
            Refusal::WrongDecision(_) => {
                "`sluice approvals show` lists the allowed decisions".to_owned()
            }
            Refusal::CommentMissing => "give a reason with `--reason TEXT`".to_owned(),
            Refusal::BadValues(_) => "give each with `--set NAME=VALUE`".to_owned(),
            Refusal::NotFailed(_) => {
                format!("`sluice runs restart {run} --from STEP` does steps again in a new run")
            }
            Refusal::Late => "nothing: the result is already recorded".to_owned(),
            Refusal::NothingToRewind => format!("`sluice runs show {run}` lists the checkpoints"),
            Refusal::NotApprover { .. } => {
                "let one of the approvers decide, or decide in a role that is named: `--role ROLE`"
                    .to_owned()
            }
            Refusal::SelfApproval(_) => "let another person decide".to_owned(),
            Refusal::AnsweredAlready(_) => "let the remaining approvers decide".to_owned(),
            Refusal::Widens(_) => {
                "`sluice approvals show` shows the constraints in force".to_owned()
            }
        };
        match refusal {
            Refusal::BadValues(violations) => {
                let notes = violations.iter().map(ToString::to_string).collect();
                Refused::new(refusal.code(), "the values do not fit", remedy).with_notes(notes)
            }
            _ => Refused::new(refusal.code(), refusal.to_string(), remedy),
        }
    }

    /// A run that another process owns.
    pub fn owned(run: RunId) -> Refused {
        let message = format!("{run} is being worked on by another process");
        Refused::new(RUN_OWNED, message, format!("follow it with `sluice runs watch {run}`"))
    }
}

/// The failure of a start.
pub fn start(error: StartError) -> Failure {
    match error {
        StartError::Args(violations) => {
            let notes = violations.iter().map(ToString::to_string).collect();
            let remedy = "give each with `--arg NAME=VALUE`; the document lists its arguments";
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
            let remedy = "reduce how deeply workflows start each other";
            Refused::new("recursion_limit", error.to_string(), remedy).into()
        }
        StartError::Moved => StoreError::Unavailable(StartError::Moved.to_string()).into(),
        StartError::Store(error) => error.into(),
        StartError::Stopping => Failure::Stopping,
    }
}

/// The failure of loading a run.
pub fn load(error: LoadError) -> Failure {
    match error {
        LoadError::NoRun(run) => {
            let remedy = "`sluice runs list` lists the runs";
            Refused::new(RUN_UNKNOWN, format!("there is no {run}"), remedy).into()
        }
        LoadError::Poison { run, reason } => {
            let message = format!("the journal of {run} cannot be read: {reason}");
            let remedy = "the run is not changed; other runs are not affected";
            Refused::new(RUN_UNREADABLE, message, remedy).into()
        }
        LoadError::Store(error) => error.into(),
    }
}

/// The failure of a command to a run.
pub fn command(run: RunId, error: CommandError) -> Failure {
    match error {
        CommandError::Refused(refusal) => Refused::by_run(run, &refusal).into(),
        CommandError::Load(error) => load(error),
        CommandError::Store(error) => error.into(),
        CommandError::Stopping => Failure::Stopping,
    }
}
