//! Processes the outputs of a step before they are journalled.
//!
//! Agents answer in nearly the right shape. [`settle`] coerces the outputs to the declared
//! types and validates them; [`complete::complete`] then checks the success criteria and
//! finally adds the inputs that pass through.
//!
//! INVARIANT: `validate` accepts the result of `settle` unchanged. A replayed journal therefore
//! never disagrees with the live run.

pub mod coerce;
pub mod complete;
pub mod schema;
pub mod validate;

mod path;
#[cfg(test)]
pub(crate) mod tests;

use crate::value::Membership;
use crate::violation::Violation;
use coerce::Coercion;
use indexmap::IndexMap;
use schema::FieldSchema;
use serde_json::{Map, Value};

/// Outputs that fit their schema, with the coercions made.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The outputs: coerced, with enum values in their canonical spelling.
    pub outputs: Map<String, Value>,
    /// Every coercion, for the event.
    pub coercions: Vec<Coercion>,
}

/// Coerces, then validates, and returns all violations.
///
/// Outputs that the schema does not name are kept unchanged.
pub fn settle(
    schema: &IndexMap<String, FieldSchema>,
    outputs: Map<String, Value>,
    membership: Membership,
) -> Result<Settled, Vec<Violation>> {
    let (mut outputs, coercions) = coerce::coerce(schema, outputs);
    let violations = validate::validate(schema, &mut outputs, membership);
    if violations.is_empty() { Ok(Settled { outputs, coercions }) } else { Err(violations) }
}

/// Sets every input that is not a declared output back to its upstream value, whatever the
/// agent returned under that name.
pub(crate) fn passthrough<'a>(
    inputs: impl IntoIterator<Item = (&'a str, &'a Value)>,
    declared: &IndexMap<String, FieldSchema>,
    outputs: &mut Map<String, Value>,
) {
    for (name, value) in inputs {
        if !declared.contains_key(name) {
            outputs.insert(name.to_owned(), value.clone());
        }
    }
}
