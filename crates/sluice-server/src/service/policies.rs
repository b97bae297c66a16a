//! Loads and checks stored policy sets.

use super::registry::now_ms;
use crate::refused::{OUT_OF_RESOURCES, POLICIES_REFUSED, RESOURCES_REMEDY, Refused};
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::{DEFAULT, Policies, PolicyError};
use sluice_govern::registry::{Kind, PolicySet, Row, Token, policy_files};

/// Names and texts of policy files.
pub type Files = Vec<(String, String)>;

/// The active set: the stored one, or the default.
pub fn active(rows: &[Row]) -> Result<Files, Refused> {
    let stored = stored(rows, PolicySet::Active)?;
    if stored.is_empty() {
        let (name, text) = DEFAULT;
        return Ok(vec![(name.to_owned(), text.to_owned())]);
    }
    Ok(stored)
}

/// The files of a stored set.
pub fn stored(rows: &[Row], set: PolicySet) -> Result<Files, Refused> {
    policy_files(rows, set).map_err(|why| {
        Refused::new(POLICIES_REFUSED, why, "apply the file that the policy came from again")
    })
}

/// Loads a stored set, or lists everything that is wrong with it. Names that have disappeared
/// since it was stored are not wrong.
pub fn load(files: &Files, catalog: &Catalog) -> Result<Policies, Refused> {
    Policies::load_stored(files, catalog).map_err(|errors| refused(&errors))
}

/// Loads a set that is to be stored. Without a catalog, names of tools are not checked: the
/// server that stores the set does it.
pub fn load_new(files: &Files, catalog: Option<&Catalog>) -> Result<Policies, Vec<PolicyError>> {
    match catalog {
        Some(catalog) => Policies::load_with(files, catalog),
        None => Policies::load(files),
    }
}

/// Loads a set that is to become active: some principal must be able to change it again.
/// `people` are existing principals.
pub fn load_for_force<'n>(
    files: &Files,
    catalog: Option<&Catalog>,
    people: impl IntoIterator<Item = &'n str>,
) -> Result<Policies, Vec<PolicyError>> {
    let set = load_new(files, catalog)?;
    set.can_be_changed(people, now_ms()).map_err(|error| vec![error])?;
    Ok(set)
}

/// The refusal of a set, with everything that is wrong with it.
pub fn refused(errors: &[PolicyError]) -> Refused {
    if let Some(error) = errors.iter().find(|error| error.machine) {
        return Refused::new(OUT_OF_RESOURCES, error.to_string(), RESOURCES_REMEDY);
    }
    let notes = errors.iter().map(ToString::to_string).collect();
    let remedy = "correct the policies; `sluice policies init` writes a set that works";
    Refused::new(POLICIES_REFUSED, "the policies cannot be used", remedy).with_notes(notes)
}

/// Principals that have a token.
fn people(rows: &[Row]) -> Vec<String> {
    let tokens = rows.iter().filter(|row| row.kind == Kind::Token);
    let read = tokens.filter_map(|row| serde_json::from_value::<Token>(row.body.clone()).ok());
    read.map(|token| token.principal).collect()
}

/// Refuses a change after which the policies would not be usable. `who` makes the change.
pub(crate) fn usable(
    before: &[Row],
    after: &[Row],
    catalog: Option<&Catalog>,
    who: &str,
) -> Result<(), Refused> {
    let (old, new) = (stored(before, PolicySet::Active)?, stored(after, PolicySet::Active)?);
    if new.is_empty() && !old.is_empty() {
        let message = "no active policy would be left";
        let remedy = "put other policies in their place; `sluice policies init` writes a set";
        return Err(Refused::new(POLICIES_REFUSED, message, remedy));
    }
    if new != old {
        let people = people(after);
        let people = std::iter::once(who).chain(people.iter().map(String::as_str));
        load_for_force(&new, catalog, people).map_err(|errors| refused(&errors))?;
    }
    let shadow = stored(after, PolicySet::Shadow)?;
    if !shadow.is_empty() && shadow != stored(before, PolicySet::Shadow)? {
        load_new(&shadow, catalog).map_err(|errors| refused(&errors))?;
    }
    Ok(())
}
