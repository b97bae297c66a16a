//! Why a step failed, as the journal records it.
//!
//! The rules of values report violations, a path without a value, or spent fuel. A [`Failure`]
//! adds the error code.

use crate::code::Code;
use crate::expr::EvalError;
use crate::violation::Violation;
use serde::Serialize;

/// A failure with all violations found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind of failure.
    pub code: Code,
    /// A message for people: lower case, no full stop.
    pub message: String,
    /// The invalid values, if values are the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
}

impl Failure {
    /// A failure without violations.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), violations: Vec::new() }
    }

    /// A failure because of violations; `None` if there are none.
    pub fn of(code: Code, violations: Vec<Violation>) -> Option<Failure> {
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let message = texts.join("; ");
        (!violations.is_empty()).then_some(Failure { code, message, violations })
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Failure {
        Failure::new(Code::ConditionError, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;
    use crate::contract::envelope::Envelope;
    use crate::contract::field::ContractField;
    use crate::contract::{InputContract, check_output};
    use crate::expr::Expr;
    use crate::outputs::schema::FieldSchema;
    use crate::outputs::settle;
    use crate::scope::names::Names;
    use crate::template::Template;
    use crate::template::lens::LensTemplate;
    use crate::value::Membership;
    use crate::violation::Reason;
    use expect_test::expect;
    use indexmap::IndexMap;
    use serde_json::{Map, json};
    use std::collections::BTreeMap;

    /// What really happens when each thing goes wrong.
    fn causes() -> Vec<Failure> {
        let scope = Names::new().with_variable("long", json!("x".repeat(8_000_000)));
        let costly = vec!["contains(long, 'y')"; 100].join(" or ");
        let fuel = Expr::parse(&costly).unwrap().holds(&scope, Membership::Exact).unwrap_err();
        let variable = Template::parse("${absent}").unwrap().render(&scope).unwrap_err();
        let lens = LensTemplate::parse("[[topic]]").unwrap();
        let unbound = lens.render(&BTreeMap::new(), |_| false, |_| false).unwrap_err();
        let empty = Envelope::from_value(&json!({"output": ""})).unwrap();
        let contract = InputContract {
            fields: IndexMap::from([("topic".to_owned(), ContractField::default())]),
            ..InputContract::default()
        };
        let schema = IndexMap::from([("risk".to_owned(), FieldSchema::default())]);
        let outputs = settle(&schema, Map::new(), Membership::Exact).unwrap_err();
        let given = Map::from_iter([("no".to_owned(), json!(1))]);
        let args = args::check(&IndexMap::new(), &given).unwrap_err();
        vec![
            fuel.into(),
            variable.into(),
            unbound.into(),
            Failure::of(Code::OutputValidationFailed, outputs).unwrap(),
            Failure::of(Code::InputContractViolation, contract.check([])).unwrap(),
            Failure::of(Code::OutputContractViolation, check_output(None, &empty)).unwrap(),
            Failure::of(Code::InvalidArgs, args).unwrap(),
        ]
    }

    #[test]
    fn every_failure_says_its_code_and_what_is_wrong() {
        let shown: Vec<String> =
            causes().iter().map(|failure| format!("{}: {failure}\n", failure.code)).collect();
        expect![[r#"
            condition_error: expression took more than 100000 units of work
            unresolved_variable: `absent` has no value
            placeholder_unbound: `topic` has no value
            output_validation_failed: risk is required
            input_contract_violation: topic is required
            output_contract_violation: output is empty
            invalid_args: no is not an argument of this workflow
        "#]]
        .assert_eq(&shown.concat());
    }

    #[test]
    fn violations_are_told_together_and_none_is_no_failure() {
        let violation = |field: &str| Violation::new(field, Reason::MissingRequired, "is missing");
        let failure = Failure::of(Code::InvalidArgs, vec![violation("a"), violation("b")]).unwrap();
        assert_eq!(failure.to_string(), "a is missing; b is missing");
        assert_eq!(failure.violations.len(), 2);
        assert_eq!(Failure::of(Code::InvalidArgs, Vec::new()), None);
    }
}
