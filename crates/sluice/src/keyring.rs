//! The secrets that rows may name here, as the operator declares them.

use crate::cli::run::Data;
use crate::config;
use crate::local;
use crate::organisation::{self, DEFAULT};
use sluice_bridge::secret::keyring::Keyring;
use std::path::PathBuf;

/// Those of an organisation whose rows are in a place.
pub(crate) fn of(data: &Data) -> Keyring {
    let name = organisation::of(data);
    let own = local::directory(data);
    // The first organisation's directory holds those of the others.
    let first = if name == DEFAULT { own.clone() } else { organisation::first(&own) };
    of_organisation(&name, vec![own, first, config::get().data()])
}

/// Those that settings of the operator name, which are no organisation's.
pub(crate) fn operator() -> Keyring {
    of_organisation(DEFAULT, vec![config::get().data()])
}

fn of_organisation(name: &str, closed: Vec<PathBuf>) -> Keyring {
    let declared = config::get().secrets_from().map(|(secret, _)| secret.clone());
    Keyring::new(name, declared, closed)
}
