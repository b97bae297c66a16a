//! Sets of policies that are stored.

use crate::refused::{OUT_OF_RESOURCES, POLICIES_REFUSED, RESOURCES_REMEDY, Refused};
use sluice_govern::policy::{DEFAULT, Policies};
use sluice_govern::registry::{PolicySet, Row, policy_files};

/// Names and texts.
pub type Files = Vec<(String, String)>;

/// The set in force: what is stored, else the one that ships.
pub fn active(rows: &[Row]) -> Result<Files, Refused> {
    let stored = stored(rows, PolicySet::Active)?;
    if stored.is_empty() {
        let (name, text) = DEFAULT;
        return Ok(vec![(name.to_owned(), text.to_owned())]);
    }
    Ok(stored)
}

/// A set as it is stored.
pub fn stored(rows: &[Row], set: PolicySet) -> Result<Files, Refused> {
    policy_files(rows, set).map_err(|why| {
        Refused::new(POLICIES_REFUSED, why, "apply the file that the policy came from again")
    })
}

/// Loads a set, or says everything that is wrong with it.
pub fn load(files: &Files) -> Result<Policies, Refused> {
    Policies::load(files).map_err(|errors| {
        if let Some(error) = errors.iter().find(|error| error.machine) {
            return Refused::new(OUT_OF_RESOURCES, error.to_string(), RESOURCES_REMEDY);
        }
        let notes = errors.iter().map(ToString::to_string).collect();
        let remedy = "put the policies right; `sluice policies init` writes a set that works";
        Refused::new(POLICIES_REFUSED, "the policies cannot be used", remedy).with_notes(notes)
    })
}

/// Refuses rows whose policies would not be usable.
pub fn usable(there: &[Row], after: &[Row]) -> Result<(), Refused> {
    let (old, new) = (stored(there, PolicySet::Active)?, stored(after, PolicySet::Active)?);
    if new.is_empty() && !old.is_empty() {
        let message = "no active policy would be left";
        let remedy = "put other policies in their place; `sluice policies init` writes a set";
        return Err(Refused::new(POLICIES_REFUSED, message, remedy));
    }
    if new != old {
        load(&new)?;
    }
    let shadow = stored(after, PolicySet::Shadow)?;
    if !shadow.is_empty() && shadow != stored(there, PolicySet::Shadow)? {
        load(&shadow)?;
    }
    Ok(())
}
