//! The secrets that rows may name, as the operator declares them.

use crate::cli::run::Data;
use crate::config;
use crate::local;
use crate::organisation::{self, DEFAULT};
use sluice_bridge::secret::keyring::Keyring;
use std::path::PathBuf;

/// The secrets of the organisation of a data directory.
pub(crate) fn for_data(data: &Data) -> Keyring {
    let name = organisation::name_of(data);
    let own = local::directory(data);
    // The directory of the first organisation holds all others.
    let first = if name == DEFAULT { own.clone() } else { organisation::first(&own) };
    of_organisation(&name, vec![own, first, config::get().data()])
}

/// The secrets that settings of the operator may name.
pub(crate) fn operator() -> Keyring {
    of_organisation(DEFAULT, vec![config::get().data()])
}

fn of_organisation(name: &str, closed: Vec<PathBuf>) -> Keyring {
    let declared = config::get().secrets_from().map(|(secret, _)| secret.clone());
    Keyring::new(name, declared, closed)
}
