//! What happens to the outputs of a step between the agent's answer and the journal.
//!
//! Agents answer in nearly the right shape. [`settle`] coerces the answer to
//! the declared types and validates it; [`complete::complete`] then holds it
//! against the success criteria and last of all puts back the inputs that the
//! step does not declare as outputs.
//!
//! INVARIANT: what `settle` accepts, `validate` accepts again unchanged. A
//! journal that is replayed therefore never disagrees with the live run.

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

/// Outputs that fit their schema, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The outputs: coerced, enums in their canonical spelling.
    pub outputs: Map<String, Value>,
    /// Every coercion made, for the event.
    pub coercions: Vec<Coercion>,
}

/// Coerces, then validates; all violations are answered, not the first only.
///
/// Outputs that the schema does not name are kept as they are.
pub fn settle(
    schema: &IndexMap<String, FieldSchema>,
    outputs: Map<String, Value>,
    membership: Membership,
) -> Result<Settled, Vec<Violation>> {
    let (mut outputs, coercions) = coerce::coerce(schema, outputs);
    let violations = validate::validate(schema, &mut outputs, membership);
    if violations.is_empty() { Ok(Settled { outputs, coercions }) } else { Err(violations) }
}

/// Puts back the upstream value of every input that is not a declared output,
/// whatever the agent returned under that name.
pub fn passthrough<'a>(
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
