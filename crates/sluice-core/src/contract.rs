//! Contracts of lens versions: their inputs and their output.
//!
//! Unlike the output schema of a step, a contract never converts a value: people connect
//! lenses, and a wire with the wrong type is a mistake to report. Absent means missing, null or
//! the empty text.

pub mod envelope;
pub mod field;

#[cfg(test)]
mod tests;
pub(crate) mod url;

use crate::label::label;
use crate::violation::{Contradiction, Reason, Violation, Violations};
use envelope::Envelope;
use field::{ContractField, absent};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The contract of a lens version's inputs.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InputContract {
    /// The kind of input, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The inputs by label, as the author wrote the labels.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub fields: IndexMap<String, ContractField>,
    /// Groups of labels; of each group, at least one must be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require_any_of: Vec<Vec<String>>,
    /// Whether undeclared inputs are rejected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strict: bool,
}

/// The contract of a lens version's output.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputContract {
    /// The envelope's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The envelope's artifact kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_kind: Option<String>,
    /// The fields of the envelope's `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<IndexMap<String, ContractField>>,
    /// Flow labels: where the data of the whole output came from, besides the node's inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<String>,
    /// Flow labels: secrets that the whole output contains, besides those of the node's
    /// inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl InputContract {
    /// All violations in `inputs`, up to the limit.
    pub fn check<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Vec<Violation> {
        let given: BTreeMap<String, &Value> =
            inputs.into_iter().map(|(name, value)| (label(name), value)).collect();
        let mut found = Violations::default();
        for (name, field) in &self.fields {
            field.check(name, given.get(&label(name)).copied(), &mut found);
        }
        let is_given = |name: &String| !absent(given.get(&label(name)).copied());
        for group in &self.require_any_of {
            if !group.iter().any(is_given) {
                let message = "needs at least one of these inputs";
                found.add(&group.join("|"), Reason::MissingRequired, message);
            }
        }
        if self.strict {
            let grouped = self.require_any_of.iter().flatten();
            let known: BTreeSet<String> =
                self.fields.keys().chain(grouped).map(|name| label(name)).collect();
            for name in given.keys().filter(|name| !known.contains(*name)) {
                found.add(name, Reason::UnknownField, "is not an input of this lens");
            }
        }
        found.into_vec()
    }

    /// All contradictions in the contract.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = in_fields("fields", &self.fields);
        let mut seen = BTreeSet::new();
        for name in self.fields.keys() {
            if !seen.insert(label(name)) {
                let message = format!("`{name}` is declared twice: labels ignore case and blanks");
                found.push(Contradiction::new(&["fields", name], message));
            }
        }
        for (name, _) in self.fields.iter().filter(|(_, field)| field.has_flow_labels()) {
            let message = "an input has the labels of its sources: declare them on the output";
            found.push(Contradiction::new(&["fields", name], message));
        }
        for (index, group) in self.require_any_of.iter().enumerate() {
            if group.is_empty() {
                let path = ["requireAnyOf", &index.to_string()];
                found.push(Contradiction::new(&path, "an empty group can never be given"));
            }
        }
        found
    }
}

impl OutputContract {
    /// All violations in `envelope`, including an empty output, up to the limit.
    pub fn check(&self, envelope: &Envelope) -> Vec<Violation> {
        let mut found = Violations::default();
        let kinds = [
            ("kind", &self.kind, &envelope.kind),
            ("artifactKind", &self.artifact_kind, &envelope.artifact_kind),
        ];
        for (name, expected, actual) in kinds {
            if let Some(message) = other_kind(expected.as_deref(), actual.as_deref()) {
                found.add(name, Reason::InvalidEnvelope, message);
            }
        }
        if let Some(empty) = envelope.emptiness() {
            found.add(&empty.field, empty.reason, empty.message);
        }
        match (&self.schema, &envelope.data) {
            (None, _) => {}
            (Some(schema), Some(Value::Object(data))) => {
                for (name, field) in schema {
                    field.check(name, data.get(name), &mut found);
                }
            }
            (Some(_), None | Some(_)) => {
                let message = "must be an object, since the contract has a schema";
                found.add("data", Reason::SchemaViolation, message);
            }
        }
        found.into_vec()
    }

    /// All contradictions in the contract.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let schema = self.schema.iter();
        schema.flat_map(|fields| in_fields("schema", fields)).collect()
    }
}

/// The violations of an output, with or without a contract.
pub(crate) fn check_output(
    contract: Option<&OutputContract>,
    envelope: &Envelope,
) -> Vec<Violation> {
    match contract {
        Some(contract) => contract.check(envelope),
        None => envelope.emptiness().into_iter().collect(),
    }
}

fn other_kind(expected: Option<&str>, actual: Option<&str>) -> Option<String> {
    let expected = expected?;
    match actual {
        Some(actual) if actual == expected => None,
        Some(actual) => Some(format!("is `{actual}`, not `{expected}`")),
        None => Some(format!("is absent, not `{expected}`")),
    }
}

fn in_fields(key: &str, fields: &IndexMap<String, ContractField>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for (name, field) in fields {
        let inner = field.contradictions().into_iter();
        found.extend(inner.map(|one| one.within(&[key, name])));
    }
    found
}
