//! One field of a contract.

use super::url::is_url;
use crate::bounds::{Holds, Spelling, ValueBounds};
use crate::choices::choices;
use crate::outputs::schema::whole;
use crate::pattern::Pattern;
use crate::value::{Membership, member, type_name};
use crate::violation::{Contradiction, Reason, Violations, a, excerpt, listed};
use crate::wire;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

choices! {
    /// The type a contract field may declare.
    #[derive(Default)]
    pub enum ContractType, "a contract type" {
        /// Text.
        String = "string",
        /// Any number.
        Number = "number",
        /// A number without a fraction that fits 64 bits.
        Integer = "integer",
        /// True or false.
        Boolean = "boolean",
        /// An http or https URL.
        Url = "url",
        /// An object, an array or a text that is valid JSON.
        Json = "json",
        /// A list of values.
        Array = "array",
        /// Anything.
        #[default]
        Any = "any",
    }
}

impl ContractType {
    /// Whether `value` has this type, without conversion.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            ContractType::String => value.is_string(),
            ContractType::Number => value.is_number(),
            ContractType::Integer => value.as_number().is_some_and(|n| whole(n).is_some()),
            ContractType::Boolean => value.is_boolean(),
            ContractType::Url => value.as_str().is_some_and(is_url),
            ContractType::Json => match value {
                Value::Object(_) | Value::Array(_) => true,
                Value::String(text) => serde_json::from_str::<IgnoredAny>(text).is_ok(),
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
            },
            ContractType::Array => value.is_array(),
            ContractType::Any => true,
        }
    }

    fn mismatch(self, value: &Value) -> Option<String> {
        if self.fits(value) {
            return None;
        }
        Some(match (self, value) {
            (ContractType::Integer, Value::Number(number)) => {
                format!("is {number}, not a 64-bit integer")
            }
            (ContractType::Url, Value::String(_)) => {
                format!("is {}, not an http or https address", excerpt(value))
            }
            (ContractType::Json, Value::String(_)) => "is text that is not valid JSON".to_owned(),
            _ => format!("is {}, not {}", a(type_name(value)), a(self.as_str())),
        })
    }
}

/// What the value of one field must fulfil.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContractField {
    /// The type that a value must have.
    #[serde(rename = "type", skip_serializing_if = "is_any")]
    pub kind: ContractType,
    /// Whether it is required.
    #[serde(skip_serializing_if = "is_true")]
    pub required: bool,
    /// The smallest number of characters of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The largest number of characters of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// A pattern that a part of the text must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The smallest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Number>,
    /// The largest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Number>,
    /// The type of every item of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_type: Option<ContractType>,
    /// The allowed values (`enum`); empty means all.
    #[serde(
        rename = "enum",
        deserialize_with = "wire::values",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<Value>,
    /// Flow labels: where its data came from, besides the node's inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<String>,
    /// Flow labels: secrets that it contains, besides those of the node's inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Flow labels that it loses, because its values cannot carry a payload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endorse: Vec<String>,
}

fn is_any(kind: &ContractType) -> bool {
    *kind == ContractType::Any
}

fn is_true(flag: &bool) -> bool {
    *flag
}

impl Default for ContractField {
    fn default() -> ContractField {
        ContractField {
            kind: ContractType::Any,
            required: true,
            min_length: None,
            max_length: None,
            pattern: None,
            min: None,
            max: None,
            item_type: None,
            values: Vec::new(),
            origin: Vec::new(),
            sensitive: Vec::new(),
            endorse: Vec::new(),
        }
    }
}

/// Missing, null and the empty text are all absent.
pub fn absent(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || value == "")
}

impl ContractField {
    /// A required field of one type, without further rules.
    pub fn of(kind: ContractType) -> ContractField {
        ContractField { kind, ..ContractField::default() }
    }

    /// Whether the author listed or bounded all values that the field can have, so that it
    /// cannot carry a text.
    pub(crate) fn is_endorsable(&self) -> bool {
        let bounded = self.min.is_some() && self.max.is_some();
        !self.values.is_empty()
            || self.kind == ContractType::Boolean
            || self.kind == ContractType::Integer && bounded
    }

    /// Whether it declares a flow label.
    pub(crate) fn has_flow_labels(&self) -> bool {
        !(self.origin.is_empty() && self.sensitive.is_empty() && self.endorse.is_empty())
    }

    pub(crate) fn check(&self, name: &str, value: Option<&Value>, found: &mut Violations) {
        let Some(value) = value.filter(|value| !absent(Some(value))) else {
            if self.required {
                found.add(name, Reason::MissingRequired, "is required");
            }
            return;
        };
        if let Some(message) = self.kind.mismatch(value) {
            found.add(name, Reason::TypeMismatch, message);
            return;
        }
        self.check_enum(name, value, found);
        for (reason, message) in self.bounds().check(value) {
            found.add(name, reason, message);
        }
        if let (Some(item_type), Value::Array(items)) = (self.item_type, value) {
            for (index, item) in items.iter().enumerate() {
                if found.is_full() {
                    return;
                }
                if let Some(message) = item_type.mismatch(item) {
                    found.add(&format!("{name}[{index}]"), Reason::TypeMismatch, message);
                }
            }
        }
    }

    fn check_enum(&self, name: &str, value: &Value, found: &mut Violations) {
        if self.values.is_empty() || member(value, &self.values, Membership::Exact).is_some() {
            return;
        }
        let allowed = listed(&self.values);
        let message = format!("is {}, not one of {allowed}", excerpt(value));
        found.add(name, Reason::EnumMismatch, message);
    }

    fn bounds(&self) -> ValueBounds<'_> {
        ValueBounds {
            min: self.min.as_ref(),
            max: self.max.as_ref(),
            min_length: self.min_length,
            max_length: self.max_length,
            pattern: self.pattern.as_ref(),
        }
    }

    /// All contradictions in the field.
    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let spelling = Spelling { min: "min", max: "max" };
        let holds = match self.kind {
            ContractType::Number | ContractType::Integer => Holds::Numbers,
            ContractType::String | ContractType::Url => Holds::Texts,
            ContractType::Any => Holds::Anything,
            ContractType::Boolean | ContractType::Json | ContractType::Array => Holds::Neither,
        };
        let mut found = self.bounds().contradictions(holds, self.kind.as_str(), spelling);
        if self.item_type.is_some() && self.kind != ContractType::Array {
            found.push(Contradiction::new(&["itemType"], "`itemType` needs `type: array`"));
        }
        // A value is always a member of its own list, so only the other rules can
        // reject it.
        for (index, value) in self.values.iter().enumerate() {
            let mut unfit = Violations::default();
            self.check("", Some(value), &mut unfit);
            if let Some(first) = unfit.into_vec().into_iter().next() {
                let message = format!("allowed value {}", first.message);
                found.push(Contradiction::new(&["enum", &index.to_string()], message));
            }
        }
        found
    }
}
