//! Refusals of the command line itself: files, directories, keys.
//!
//! A refusal is returned as an error to `main`, which prints it and exits with 2.

use crate::problem::{DOCUMENT_UNREADABLE, Unreadable};
use sluice_core::id::RunId;
use sluice_engine::engine::TakeError;
use sluice_engine::error;
use sluice_engine::trust::RulesError;
use sluice_server::refused::{
    DATA_UNUSABLE, Failure, OUT_OF_RESOURCES, POLICIES_REFUSED, RESOURCES_REMEDY, Refused, load,
};
use sluice_store::postgres;
use sluice_store::sqlite::OpenError;
use std::path::Path;

pub(crate) const USAGE_INVALID: &str = "usage_invalid";

/// The refusal in an error, if it is one.
pub(crate) fn in_error(error: &anyhow::Error) -> Option<&Refused> {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Refused(refused)) => Some(refused),
        _ => error.downcast_ref::<Refused>(),
    }
}

/// Whether an error is a refusal with this code.
pub(crate) fn is(error: &anyhow::Error, code: &str) -> bool {
    in_error(error).is_some_and(|refused| refused.code == code)
}

/// Converts a usage error of clap: its first paragraph is the message, tips and usage are the
/// remedy.
pub(crate) fn usage(error: &clap::Error) -> Refused {
    let text = error.render().to_string();
    let (what, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let what = what.trim().trim_start_matches("error: ");
    let message = what.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let advice = |word: &str| {
        let found = rest.lines().find_map(|line| line.trim().strip_prefix(word));
        found.map(|advice| advice.trim().to_owned())
    };
    let remedy = match (advice("tip:"), advice("Usage:")) {
        (Some(tip), _) => tip,
        (None, Some(usage)) => format!("usage: {usage}"),
        (None, None) => "`sluice --help` lists the commands".to_owned(),
    };
    Refused::new(USAGE_INVALID, message, remedy)
}

pub(crate) fn by_store(dir: &Path, error: &OpenError) -> Refused {
    let mut message = error.to_string();
    if let OpenError::Directory { source, .. } = error {
        message = format!("{message}: {source}");
    }
    let remedy = match error {
        OpenError::Directory { .. } => {
            "name another directory with `--data DIR`, or correct its permissions".to_owned()
        }
        OpenError::ReadOnly { .. } => {
            format!("ask for the right to write in {}", dir.display())
        }
        OpenError::Newer { .. } => {
            "use the newer Sluice, or another directory with `--data DIR`".to_owned()
        }
        OpenError::Older { .. } => {
            "copy the directory to where it can be written, and name the copy with `--data DIR`"
                .to_owned()
        }
        OpenError::Altered { .. } => "use the Sluice that made it".to_owned(),
        OpenError::Damaged { .. } => {
            "put a backup in its place, or use another directory with `--data DIR`".to_owned()
        }
        OpenError::NoThread(_) => {
            return Refused::new(OUT_OF_RESOURCES, error.to_string(), RESOURCES_REMEDY);
        }
        OpenError::Failed(_) => "check the disk and the processes that use it".to_owned(),
    };
    Refused::new(DATA_UNUSABLE, message, remedy)
}

pub(crate) fn by_database(error: &postgres::OpenError) -> Refused {
    let remedy = match error {
        postgres::OpenError::Url(_) => {
            "give a URL such as `postgres://sluice@db.example/sluice` with `--database-url`"
        }
        postgres::OpenError::Newer { .. } => "use the newer Sluice, or another database",
        postgres::OpenError::Unfinished => "end it before anything is started on the database",
        postgres::OpenError::Altered { .. } => "use the Sluice that made it",
        postgres::OpenError::Failed(_) => {
            "check that the server runs and is reached, and that the user may make tables in it"
        }
    };
    Refused::new(DATA_UNUSABLE, error.to_string(), remedy)
}

pub(crate) fn unreadable(file: &Unreadable) -> Refused {
    let message = format!("{}: {}", file.message(), file.cause);
    Refused::new(DOCUMENT_UNREADABLE, message, file.remedy())
}

pub(crate) fn open(error: error::OpenError) -> anyhow::Error {
    match error {
        error::OpenError::Store(error) => error.into(),
        error::OpenError::Rules(error @ RulesError::Machine(_)) => {
            Refused::new(OUT_OF_RESOURCES, error.to_string(), RESOURCES_REMEDY).into()
        }
        error::OpenError::Rules(error) => {
            let remedy = "correct the policies; `sluice policies check` reports the problems";
            Refused::new(POLICIES_REFUSED, error.to_string(), remedy).into()
        }
    }
}

/// A run that could not be claimed.
pub(crate) fn claim(run: RunId, error: TakeError) -> anyhow::Error {
    match error {
        TakeError::Held(_) => Refused::owned(run).into(),
        TakeError::Load(error) => load(error).into(),
        error => error.into(),
    }
}
