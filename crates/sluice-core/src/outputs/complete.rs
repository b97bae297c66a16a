//! Completes a step's outputs: all checks, in their fixed order.

use super::schema::FieldSchema;
use super::{Settled, passthrough, settle};
use crate::code::Code;
use crate::expr::Expr;
use crate::failure::Failure;
use crate::scope::Scope;
use crate::scope::with::With;
use crate::value::Membership;
use indexmap::IndexMap;
use serde_json::{Map, Value};

/// What a step declares about its outputs.
#[derive(Debug, Clone, Copy)]
pub struct OutputRules<'a> {
    pub(crate) outputs: &'a IndexMap<String, FieldSchema>,
    pub(crate) success_criteria: &'a [Expr],
}

/// Coerces and validates a step's outputs, checks the success criteria, then adds the inputs
/// that pass through.
///
/// Criteria see the agent's outputs without the inputs passed through, because they judge the
/// agent's work. `scope` resolves every other name.
pub fn complete(
    rules: OutputRules<'_>,
    inputs: &Map<String, Value>,
    answer: Map<String, Value>,
    scope: &dyn Scope,
) -> Result<Settled, Failure> {
    let mut settled =
        settle(rules.outputs, answer, Membership::Tolerant).map_err(|violations| {
            Failure::of(Code::OutputValidationFailed, violations)
                .expect("settling fails only with violations")
        })?;
    let outputs = Value::Object(std::mem::take(&mut settled.outputs));
    let judged = With::new(scope, "outputs", &outputs);
    let mut unmet = Vec::new();
    for criterion in rules.success_criteria {
        if !criterion.holds(&judged, Membership::Tolerant)? {
            unmet.push(format!("`{criterion}` does not hold"));
        }
    }
    if !unmet.is_empty() {
        return Err(Failure::new(Code::SuccessCriteriaFailed, unmet.join("; ")));
    }
    if let Value::Object(outputs) = outputs {
        settled.outputs = outputs;
    }
    let inputs = inputs.iter().map(|(name, value)| (name.as_str(), value));
    passthrough(inputs, rules.outputs, &mut settled.outputs);
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::{self, Format, Registry};
    use crate::scope::names::Names;
    use serde_json::json;

    const STEP: &str = "
name: demo
args: {limit: integer}
steps:
  - id: before
    command: x
    outputs: {verified: boolean}
  - id: rate
    command: Rate it
    inputs: {verified: before.verified}
    outputs:
      risk: integer
      verdict: {type: string, enum: [ok, bad]}
    success_criteria:
      - outputs.risk >= 1
      - outputs.risk <= args.limit
      - outputs.verdict in ['ok']
";

    fn answer(answer: &Value) -> Result<Settled, Failure> {
        let checked = doc::check(STEP.as_bytes(), Some(Format::Lobsterx), &Registry::default());
        let plan = checked.plan.unwrap();
        let inputs = json!({"verified": true}).as_object().unwrap().clone();
        let scope = Names::new().with_args(json!({"limit": 9}));
        let answer = answer.as_object().unwrap().clone();
        let step = plan.step("rate").unwrap();
        complete(step.output_rules(), &inputs, answer, &scope)
    }

    #[test]
    fn an_answer_is_coerced_validated_judged_and_completed_with_what_passes_through() {
        let given =
            json!({"risk": "3", "verdict": "ok -- nothing found", "verified": false, "extra": 1});
        let settled = answer(&given).unwrap();
        let outputs = json!({"risk": 3, "verdict": "ok", "verified": true, "extra": 1});
        assert_eq!(Value::Object(settled.outputs), outputs);
        assert_eq!(settled.coercions.len(), 1);
    }

    #[test]
    fn violations_come_before_criteria() {
        let failure = answer(&json!({"risk": 0})).unwrap_err();
        assert_eq!(failure.code, Code::OutputValidationFailed);
        assert_eq!(failure.violations.len(), 1);
        assert_eq!(failure.violations[0].field, "verdict");
    }

    #[test]
    fn every_criterion_that_does_not_hold_is_named() {
        let failure = answer(&json!({"risk": 0, "verdict": "bad"})).unwrap_err();
        assert_eq!(failure.code, Code::SuccessCriteriaFailed);
        let message =
            "`outputs.risk >= 1` does not hold; `outputs.verdict in ['ok']` does not hold";
        assert_eq!(failure.message, message);
        assert!(answer(&json!({"risk": 10, "verdict": "ok"})).is_err(), "criteria see args");
    }
}
