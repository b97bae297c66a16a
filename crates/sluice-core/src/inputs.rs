//! Binds the typed inputs of a step.

use crate::code::Code;
use crate::failure::Failure;
use crate::merge::{self, Strategy, choose};
use crate::outputs::{Settled, settle};
use crate::plan::step::Input;
use crate::scope::{Found, Scope, resolve};
use crate::template::{Reason, Unresolved};
use crate::value::Membership;
use indexmap::IndexMap;
use serde_json::{Map, Value};

/// Binds every input of a step.
///
/// A skipped source has no value, and a missing one fails the step; a default replaces both.
/// Several sources are merged by `merge`.
pub fn bind(
    inputs: &IndexMap<String, Input>,
    merge: Option<Strategy>,
    scope: &dyn Scope,
) -> Result<Settled, Failure> {
    let mut bound = Map::new();
    for (name, input) in inputs {
        bound.insert(name.clone(), value(input, merge, scope)?);
    }
    let typed = inputs.iter().filter_map(|(name, input)| {
        // Skipped sources leave null, which has no type to check.
        let schema = input.schema.clone().filter(|_| !bound[name].is_null())?;
        Some((name.clone(), schema))
    });
    settle(&typed.collect(), bound, Membership::Exact).map_err(|violations| {
        Failure::of(Code::InputContractViolation, violations)
            .expect("settling fails only with violations")
    })
}

fn value(input: &Input, strategy: Option<Strategy>, scope: &dyn Scope) -> Result<Value, Failure> {
    let mut found = Vec::with_capacity(input.from.len());
    for path in &input.from {
        match resolve(path, scope) {
            Found::Value(value) => found.push((path.head(), value)),
            Found::Skipped => {}
            Found::Missing if input.default.is_some() => {}
            Found::Missing => {
                return Err(Unresolved { path: path.clone(), reason: Reason::Missing }.into());
            }
        }
    }
    let pairs: Vec<(&str, &Value)> = found.iter().map(|(head, value)| (*head, &**value)).collect();
    let value = merge::merge(choose(None, strategy), input.from.len(), &pairs);
    Ok(value.or_else(|| input.default.clone()).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outputs::schema::{FieldSchema, FieldType};
    use crate::path::Path;
    use crate::scope::names::Names;
    use serde_json::json;

    fn input(from: &[&str]) -> Input {
        let from = from.iter().map(|path| Path::parse(path).unwrap()).collect();
        Input { default: None, from, schema: None }
    }

    fn scope() -> Names {
        Names::new()
            .with_step("a", json!({"x": 1, "text": "7"}), Some("out"))
            .with_step("b", json!({"x": {"y": 2}}), None)
            .with_skipped_step("gone")
            .with_args(json!({"n": 5}))
    }

    fn one(input: Input, merge: Option<Strategy>) -> Result<Value, Failure> {
        let inputs = IndexMap::from([("in".to_owned(), input)]);
        bind(&inputs, merge, &scope()).map(|bound| bound.outputs["in"].clone())
    }

    #[test]
    fn an_input_has_the_value_its_source_names() {
        assert_eq!(one(input(&["a.x"]), None), Ok(json!(1)));
        assert_eq!(one(input(&["b.outputs.x.y"]), None), Ok(json!(2)));
        assert_eq!(one(input(&["$a.stdout"]), None), Ok(json!("out")));
        assert_eq!(one(input(&["args.n"]), None), Ok(json!(5)));
    }

    #[test]
    fn a_skipped_source_gives_null_and_a_missing_one_fails_unless_there_is_a_default() {
        assert_eq!(one(input(&["gone.x"]), None), Ok(Value::Null));
        let failure = one(input(&["a.nothing"]), None).unwrap_err();
        assert_eq!(failure.code, Code::UnresolvedVariable);
        assert_eq!(failure.message, "`a.nothing` has no value");
        for source in ["gone.x", "a.nothing"] {
            let with_default = Input { default: Some(json!("d")), ..input(&[source]) };
            assert_eq!(one(with_default, None), Ok(json!("d")));
        }
        let unneeded = Input { default: Some(json!("d")), ..input(&["a.x"]) };
        assert_eq!(one(unneeded, None), Ok(json!(1)));
    }

    #[test]
    fn several_sources_meet_by_the_strategy_in_the_order_written() {
        let both = || input(&["b.x.y", "a.x"]);
        assert_eq!(one(both(), None), Ok(json!(1)));
        assert_eq!(one(both(), Some(Strategy::Array)), Ok(json!([2, 1])));
        assert_eq!(one(both(), Some(Strategy::Concat)), Ok(json!("2\n\n1")));
        assert_eq!(one(both(), Some(Strategy::JsonObject)), Ok(json!({"b": 2, "a": 1})));
        assert_eq!(one(input(&["a.x"]), Some(Strategy::Array)), Ok(json!(1)));
        assert_eq!(one(input(&["a.x", "gone.x"]), Some(Strategy::Array)), Ok(json!([1])));
        assert_eq!(one(input(&["gone.x", "gone.y"]), Some(Strategy::Array)), Ok(Value::Null));
        let missing = Input { default: Some(json!(0)), ..input(&["a.nothing", "a.x"]) };
        assert_eq!(one(missing, Some(Strategy::Array)), Ok(json!([1])));
    }

    #[test]
    fn a_typed_input_is_coerced_and_checked() {
        let typed = |from: &str, kind| Input {
            schema: Some(FieldSchema { kind: Some(kind), ..FieldSchema::default() }),
            ..input(&[from])
        };
        assert_eq!(one(typed("a.text", FieldType::Integer), None), Ok(json!(7)));
        assert_eq!(one(typed("gone.x", FieldType::Integer), None), Ok(Value::Null));
        let failure = one(typed("$a.stdout", FieldType::Integer), None).unwrap_err();
        assert_eq!(failure.code, Code::InputContractViolation);
        assert_eq!(failure.violations[0].field, "in");
    }
}
