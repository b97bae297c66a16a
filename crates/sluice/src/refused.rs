//! What only the command line meets and says no to: files, directories, keys.
//!
//! A refusal travels as an error to `main`, which draws it and exits with 2.

use crate::problem::{DOCUMENT_UNREADABLE, Unreadable};
use sluice_core::run::id::RunId;
use sluice_engine::engine::TakeError;
use sluice_engine::error;
use sluice_engine::trust::RulesError;
use sluice_server::refused::{
    DATA_UNUSABLE, Failure, OUT_OF_RESOURCES, POLICIES_REFUSED, RESOURCES_REMEDY, Refused, load,
};
use sluice_store::postgres;
use sluice_store::sqlite::OpenError;
use std::path::Path;

/// Arguments that the command line does not understand.
pub(crate) const USAGE_INVALID: &str = "usage_invalid";

/// What was refused, if that is what an error says.
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

/// Wrong usage, as the parser of arguments describes it: what is wrong in the first
/// paragraph, tips and the usage in the others.
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

/// A database that cannot be used.
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

/// A file that could not be read.
pub(crate) fn unreadable(file: &Unreadable) -> Refused {
    let message = format!("{}: {}", file.message(), file.cause);
    Refused::new(DOCUMENT_UNREADABLE, message, file.remedy())
}

/// An engine that could not be opened.
pub(crate) fn open(error: error::OpenError) -> anyhow::Error {
    match error {
        error::OpenError::Store(error) => error.into(),
        error::OpenError::Rules(error @ RulesError::Machine(_)) => {
            Refused::new(OUT_OF_RESOURCES, error.to_string(), RESOURCES_REMEDY).into()
        }
        error::OpenError::Rules(error) => {
            let remedy = "put the policies right; `sluice policies check` says what is wrong";
            Refused::new(POLICIES_REFUSED, error.to_string(), remedy).into()
        }
    }
}

/// A run that could not be taken up.
pub(crate) fn take(run: RunId, error: TakeError) -> anyhow::Error {
    match error {
        TakeError::Held(_) => Refused::owned(run).into(),
        TakeError::Load(error) => load(error).into(),
        error => error.into(),
    }
}
