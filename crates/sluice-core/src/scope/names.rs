//! A scope that owns its values, for `sluice eval`, simple callers and tests.

use super::{Scope, StepView};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Names and their values in maps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    steps: BTreeMap<String, Step>,
    locals: BTreeMap<String, Value>,
    variables: BTreeMap<String, Value>,
    args: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    #[cfg(test)]
    Pending,
    Skipped,
    Done {
        outputs: Value,
        stdout: Option<String>,
    },
}

/// A value that is not a valid scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadNames(String);

/// The keys of [`Names::from_value`] that become locals.
const LOCALS: [&str; 4] = ["outputs", "item", "index", "value"];

impl Names {
    /// An empty scope.
    pub fn new() -> Names {
        Names::default()
    }

    /// Reads an object: `steps` (id to `{outputs, stdout, skipped}`), `args`, `variables`,
    /// the locals `outputs`, `item`, `index` and `value`; every other key is a variable.
    pub fn from_value(value: Value) -> Result<Names, BadNames> {
        let mut names = Names::new();
        for (key, value) in object("the scope", value)? {
            match key.as_str() {
                "steps" => {
                    for (id, step) in object("`steps`", value)? {
                        let step = read_step(&id, step)?;
                        names.steps.insert(id, step);
                    }
                }
                "args" => names.args = Some(Value::Object(object("`args`", value)?)),
                "variables" => names.variables.extend(object("`variables`", value)?),
                local if LOCALS.contains(&local) => {
                    names.locals.insert(key, value);
                }
                _ => {
                    names.variables.insert(key, value);
                }
            }
        }
        Ok(names)
    }

    /// Adds a completed step.
    #[must_use]
    pub fn with_step(mut self, id: &str, outputs: Value, stdout: Option<&str>) -> Names {
        let stdout = stdout.map(str::to_owned);
        self.steps.insert(id.to_owned(), Step::Done { outputs, stdout });
        self
    }

    /// Adds a skipped step.
    #[must_use]
    pub fn with_skipped_step(mut self, id: &str) -> Names {
        self.steps.insert(id.to_owned(), Step::Skipped);
        self
    }

    /// Adds a step without a result.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn with_pending_step(mut self, id: &str) -> Names {
        self.steps.insert(id.to_owned(), Step::Pending);
        self
    }

    #[cfg(test)]
    #[must_use]
    pub(crate) fn with_local(mut self, name: &str, value: Value) -> Names {
        self.locals.insert(name.to_owned(), value);
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: Value) -> Names {
        self.variables.insert(name.to_owned(), value);
        self
    }

    /// Sets the arguments, an object.
    #[must_use]
    pub fn with_args(mut self, args: Value) -> Names {
        self.args = Some(args);
        self
    }
}

impl Scope for Names {
    fn step(&self, id: &str) -> Option<StepView<'_>> {
        Some(match self.steps.get(id)? {
            #[cfg(test)]
            Step::Pending => StepView::Pending,
            Step::Skipped => StepView::Skipped,
            Step::Done { outputs, stdout } => StepView::Done { outputs, stdout: stdout.as_deref() },
        })
    }

    fn local(&self, name: &str) -> Option<&Value> {
        self.locals.get(name)
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn args(&self) -> Option<&Value> {
        self.args.as_ref()
    }
}

fn object(what: &str, value: Value) -> Result<Map<String, Value>, BadNames> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(BadNames(format!(
            "{what} must be an object, not {}",
            crate::value::type_name(&other)
        ))),
    }
}

fn read_step(id: &str, value: Value) -> Result<Step, BadNames> {
    let mut outputs = Value::Object(Map::new());
    let mut stdout = None;
    let mut skipped = false;
    for (key, value) in object(&format!("step `{id}`"), value)? {
        match (key.as_str(), value) {
            ("outputs", value @ (Value::Object(_) | Value::Array(_))) => outputs = value,
            ("stdout", Value::String(text)) => stdout = Some(text),
            ("skipped", Value::Bool(flag)) => skipped = flag,
            ("outputs" | "stdout" | "skipped", value) => {
                return Err(BadNames(format!(
                    "`{key}` of step `{id}` cannot be {}",
                    crate::value::type_name(&value)
                )));
            }
            _ => {
                return Err(BadNames(format!(
                    "step `{id}` takes `outputs`, `stdout` and `skipped`, not `{key}`"
                )));
            }
        }
    }
    Ok(match skipped {
        true => Step::Skipped,
        false => Step::Done { outputs, stdout },
    })
}
