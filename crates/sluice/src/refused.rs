//! What the command line says no to: a code, what is wrong, what to do.
//!
//! A refusal travels as an error to `main`, which draws it and exits with 2.

use crate::problem::{DOCUMENT_UNREADABLE, Unreadable};
use sluice_core::run::command::Refusal;
use sluice_core::run::id::RunId;
use sluice_engine::engine::TakeError;
use sluice_engine::error::{self, CommandError, LoadError, StartError};
use sluice_store::sqlite::OpenError;
use std::path::Path;

/// There is no run of this id, or of this beginning.
pub(crate) const RUN_UNKNOWN: &str = "run_unknown";
/// There is no question of this id, or of this beginning.
pub(crate) const APPROVAL_UNKNOWN: &str = "approval_unknown";
/// A beginning that several ids have.
pub(crate) const ID_AMBIGUOUS: &str = "id_ambiguous";
/// The run is worked on by a process that lives.
pub(crate) const RUN_OWNED: &str = "run_owned";
/// The run has not ended.
pub(crate) const RUN_NOT_ENDED: &str = "run_not_ended";
/// There is no such checkpoint.
pub(crate) const CHECKPOINT_UNKNOWN: &str = "checkpoint_unknown";
/// The data directory is missing or cannot be used.
pub(crate) const DATA_UNUSABLE: &str = "data_unusable";
/// The idempotency key was used for something else.
pub(crate) const KEY_CONFLICT: &str = "idempotency_conflict";
/// The document is not the one that the run was started with.
pub(crate) const DOCUMENT_CHANGED: &str = "document_changed";
/// The run is paused by an operator.
pub(crate) const RUN_PAUSED: &str = "run_paused";
/// Nothing failed that could be done again.
pub(crate) const NOTHING_FAILED: &str = "nothing_failed";
/// Nobody is there to confirm it.
pub(crate) const NOT_CONFIRMED: &str = "not_confirmed";
/// A run's journal cannot be read.
pub(crate) const RUN_UNREADABLE: &str = "run_unreadable";
/// The key that seals are signed with, or the file they are copied to, cannot be used.
pub(crate) const SEAL_UNUSABLE: &str = "seal_unusable";
/// A file that should hold seals does not.
pub(crate) const SEAL_UNREADABLE: &str = "seal_unreadable";
/// Nothing of a run is under a seal, or nothing is sealed at all.
pub(crate) const NOT_SEALED: &str = "not_sealed";
/// The run has no such event.
pub(crate) const EVENT_UNKNOWN: &str = "event_unknown";

/// There is no row of this name.
pub(crate) const ROW_UNKNOWN: &str = "row_unknown";
/// Other rows name the one that would go.
pub(crate) const ROW_IN_USE: &str = "row_in_use";
/// A row says what no row of its kind can.
pub(crate) const ROW_UNREADABLE: &str = "row_unreadable";
/// A version of a workflow is there already, with another text.
pub(crate) const VERSION_TAKEN: &str = "version_taken";
/// Policies that cannot be used, or a change that would leave none.
pub(crate) const POLICIES_REFUSED: &str = "policies_refused";
/// Policies in force do not allow the change.
pub(crate) const CHANGE_REFUSED: &str = "change_refused";
/// Others kept changing the registry.
pub(crate) const REGISTRY_BUSY: &str = "registry_busy";
/// The agent is not on trial.
pub(crate) const NOT_ON_TRIAL: &str = "not_on_trial";
/// The word list, or the address of the moderator, cannot be used.
pub(crate) const BAD_MODERATION: &str = "moderation_unusable";
/// A file that would be written over.
pub(crate) const FILE_EXISTS: &str = "file_exists";

/// Something that is not done.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// One for each thing that is wrong.
    pub(crate) notes: Vec<String>,
    pub(crate) remedy: String,
}

impl Refused {
    pub(crate) fn new(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Refused {
        Refused { code, message: message.into(), notes: Vec::new(), remedy: remedy.into() }
    }

    pub(crate) fn with_notes(mut self, notes: Vec<String>) -> Refused {
        self.notes = notes;
        self
    }

    /// A command that a run says no to.
    pub(crate) fn by_run(run: RunId, refusal: &Refusal) -> Refused {
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

    /// A data directory that cannot be used.
    pub(crate) fn by_store(dir: &Path, error: &OpenError) -> Refused {
        let mut message = error.to_string();
        if let OpenError::Directory { source, .. } = error {
            message = format!("{message}: {source}");
        }
        let remedy = match error {
            OpenError::Directory { .. } => {
                "name another directory with `--data DIR`, or put its permissions right".to_owned()
            }
            OpenError::ReadOnly { .. } => {
                format!("ask for the right to write in {}", dir.display())
            }
            OpenError::Newer { .. } => {
                "use the newer Sluice, or another directory with `--data DIR`".to_owned()
            }
            OpenError::Altered { .. } => "use the Sluice that made it".to_owned(),
            OpenError::Damaged { .. } => {
                "put a backup in its place, or use another directory with `--data DIR`".to_owned()
            }
            OpenError::Failed(_) => "check the disk and the processes that use it".to_owned(),
        };
        Refused::new(DATA_UNUSABLE, message, remedy)
    }

    /// A run that somebody else works on.
    pub(crate) fn owned(run: RunId) -> Refused {
        let message = format!("{run} is being worked on by another process");
        Refused::new(RUN_OWNED, message, format!("follow it with `sluice runs watch {run}`"))
    }
}

/// A file that could not be read.
pub(crate) fn unreadable(file: &Unreadable) -> Refused {
    let message = format!("{}: {}", file.message(), file.cause);
    Refused::new(DOCUMENT_UNREADABLE, message, file.remedy())
}

/// An engine that could not be opened.
pub(crate) fn open(error: error::OpenError) -> anyhow::Error {
    match error {
        error::OpenError::Store(error) => error.into(),
        error::OpenError::Rules(error) => {
            let remedy = "put the policies right; `sluice policies check` says what is wrong";
            Refused::new(POLICIES_REFUSED, error.to_string(), remedy).into()
        }
    }
}

/// A run that could not be started.
pub(crate) fn start(error: StartError) -> anyhow::Error {
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
        StartError::Unresolved(message) => {
            let remedy = "name a file that holds it with `--registry FILE`";
            Refused::new("unresolved_reference", message, remedy).into()
        }
        StartError::KeyConflict(run) => {
            let message = format!("the idempotency key was used with other arguments, for {run}");
            let remedy = "use another key; one counts for a day";
            Refused::new(KEY_CONFLICT, message, remedy).into()
        }
        StartError::Blocked { code, message } => {
            let remedy = "`sluice policies list` shows the policies in force";
            Refused::new(code, message, remedy).into()
        }
        StartError::Load(error) => load(error),
        error => anyhow::Error::new(error).context("the run was not started"),
    }
}

/// A run that could not be loaded.
pub(crate) fn load(error: LoadError) -> anyhow::Error {
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
pub(crate) fn command(run: RunId, error: CommandError) -> anyhow::Error {
    match error {
        CommandError::Refused(refusal) => Refused::by_run(run, &refusal).into(),
        CommandError::Load(error) => load(error),
        error => error.into(),
    }
}

/// A run that could not be taken up.
pub(crate) fn take(run: RunId, error: TakeError) -> anyhow::Error {
    match error {
        TakeError::Held(_) => Refused::owned(run).into(),
        TakeError::Load(error) => load(error),
        error => error.into(),
    }
}
