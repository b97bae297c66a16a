//! Payloads of the end of a step, and of the values that it read.

use super::labels::{FieldLabelsForm, LabelsForm};
use crate::choice;
use crate::choices::choices;
use crate::contract::envelope::Envelope;
use crate::id::{ApprovalId, RunId};
use crate::journal::declare::form::{
    Always, Form, Maybe, Optional, Shared, Sparse, Text, Unless, Word,
};
use crate::journal::declare::{Keep, ObjectSchema, PayloadPart, Read, VisitKept, payload};
use crate::journal::wire::fields::Fields;
use crate::journal::wire::malformed;
use crate::journal::wire::object::PayloadWriter;
use crate::money::Money;
use crate::origin::{FieldLabels, Labels};
use crate::outputs::coerce::Coercion;
use crate::port::adapter::Usage;
use crate::status::Waiting;
use crate::value::known_type_name;
use crate::violation::Violation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

payload! {
    impl Usage {
        model: Option<String> = "model" as Optional, Word;
        input_tokens: u64 = "inputTokens" as Sparse, Whole;
        output_tokens: u64 = "outputTokens" as Sparse, Whole;
        thinking_tokens: u64 = "thinkingTokens" as Sparse, Whole;
        cached_tokens: u64 = "cachedTokens" as Sparse, Whole;
        cost: Money = "cost" as Unless<Dollars>, Whole;
        unknown: bool = "costUnknown" as Sparse, Whole;
    } else {
        unpriced = false;
    }
}

/// An amount in dollars, with all its digits: a float would lose the last ones.
struct Dollars;

impl Form<Money> for Dollars {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, cost: &Money) {
        // What `Display` shows is a JSON number.
        payload.raw(name, |out| out.extend_from_slice(cost.to_string().as_bytes()));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Money> {
        let Some(raw) = fields.raw(name) else { return Ok(Money::ZERO) };
        Money::from_usd_text(raw.get()).map_err(|bad| malformed(format_args!("{name}: {bad}")))
    }

    fn schema() -> Value {
        json!({"type": "number"})
    }
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepOutcome {
    /// Outputs, an object.
    pub outputs: Value,
    /// The text of the answer, unchanged.
    pub stdout: Option<String>,
    /// Output envelope of a lens node.
    #[serde(with = "crate::compact::envelope")]
    pub envelope: Option<Envelope>,
    /// Labels of these values together.
    pub labels: Labels,
    /// Named labels of outputs that differ from those of all together.
    pub field_labels: FieldLabels,
}

impl StepOutcome {
    /// The result of a lens node: its data by name, and its whole output as `output`.
    pub(crate) fn from_envelope(envelope: Envelope, labels: Labels) -> StepOutcome {
        let mut outputs = match &envelope.data {
            Some(Value::Object(data)) => data.clone(),
            _ => Map::new(),
        };
        if !outputs.contains_key("output") {
            outputs.insert("output".to_owned(), envelope.output.clone());
        }
        StepOutcome {
            outputs: Value::Object(outputs),
            stdout: envelope.output.as_str().map(str::to_owned),
            envelope: Some(envelope),
            labels,
            field_labels: FieldLabels::default(),
        }
    }
}

impl PayloadPart for StepOutcome {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        if let Some(envelope) = &self.envelope {
            payload.field("envelope", envelope);
        } else {
            payload.unless_default("outputs", &self.outputs);
            payload.option("stdout", self.stdout.as_ref());
        }
        <Unless<LabelsForm> as Form<Labels>>::write(payload, "labels", &self.labels);
        Unless::<FieldLabelsForm>::write(payload, "fieldLabels", &self.field_labels);
    }

    fn read(fields: &Fields<'_>) -> Read<StepOutcome> {
        let labels = <Unless<LabelsForm> as Form<Labels>>::read(fields, "labels")?;
        let field_labels = Unless::<FieldLabelsForm>::read(fields, "fieldLabels")?;
        Ok(match fields.option::<Fields<'_>>("envelope")? {
            Some(parts) => StepOutcome {
                field_labels,
                ..StepOutcome::from_envelope(read_envelope(&parts)?, labels)
            },
            None => StepOutcome {
                outputs: fields.or_default("outputs")?,
                stdout: fields.option("stdout")?,
                envelope: None,
                labels,
                field_labels,
            },
        })
    }

    fn kept(visit: VisitKept<'_>) {
        visit("labels", Keep::Whole);
        visit("fieldLabels", Keep::Whole);
    }

    fn schema(object: &mut ObjectSchema) {
        object.add("envelope", json!({"type": "object"}), false);
        object.add("outputs", json!({}), false);
        object.field::<Option<String>, Optional>("stdout");
        object.field::<Labels, Unless<LabelsForm>>("labels");
        object.field::<FieldLabels, Unless<FieldLabelsForm>>("fieldLabels");
    }
}

/// Reads an envelope as it was written: unlike in an agent's answer, a null stays a null.
fn read_envelope(parts: &Fields<'_>) -> Read<Envelope> {
    Ok(Envelope {
        kind: parts.option("kind")?,
        artifact_kind: parts.option("artifactKind")?,
        output: parts.or_default("output")?,
        data: parts.option("data")?,
        media: parts.option("media")?,
        metadata: parts.option("metadata")?,
    })
}

payload! {
    /// The success of a step.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Completed {
        /// The result.
        outcome: Arc<StepOutcome>;
        /// Number of attempts.
        attempts: u32 = "attempts" as Always, Whole;
        /// Duration of the last attempt.
        duration_ms: u64 = "durationMs" as Always, Whole;
        /// Cost of the last attempt.
        usage: Usage;
        /// Values that were converted to fit the declared outputs.
        coercions: Vec<Coercion> = "coercions" as Unless<Coercions>, Gone;
        /// Session of the provider, to continue later.
        session: Option<String> = "session" as Optional, Gone;
        /// Messages of the conversation, for people.
        conversation: Vec<Value> = "conversation" as Sparse, Gone;
        /// Files that the step produced.
        artefacts: Vec<Value> = "artefacts" as Sparse, Gone;
        /// Run that the result was carried over from.
        carried: Option<RunId> = "carriedFrom" as Maybe<Text>, Whole;
    }
}

payload! {
    /// The failure of a step.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct Ending {
        /// Code of the failure.
        code: String = "errorCode" as Always, Word;
        /// What failed.
        message: String = "errorMessage" as Always, Blank;
        /// Values that violate the contract.
        violations: Arc<Vec<Violation>> = "errors" as Shared<Sparse>, Gone;
        /// Number of attempts.
        attempts: u32 = "attempts" as Always, Whole;
        /// Cost of the last attempt.
        usage: Usage;
        /// Answer of the last attempt. The journal has it; the fold drops it.
        answer: Option<Arc<Value>> = "answer" as Maybe<Shared<Always>>, Gone;
    }
}

payload! {
    /// Why a step was skipped.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Skip {
        /// Kind of the cause.
        cause: SkipCause;
        /// The cause, for people.
        reason: String = "reason" as Sparse, Gone;
        /// Code and message of the failure behind it, if there is one.
        error: Option<(String, String)>;
        /// Values that violate the contract, if that is the failure.
        violations: Arc<Vec<Violation>> = "errors" as Shared<Sparse>, Gone;
        /// Cost of the failed attempt.
        usage: Usage;
        /// Answer of the failed attempt. The journal has it; the fold drops it.
        answer: Option<Arc<Value>> = "answer" as Maybe<Shared<Always>>, Gone;
        /// Run that the skip was carried over from.
        carried: Option<RunId> = "carriedFrom" as Maybe<Text>, Whole;
        /// Whether an untrusted value decided that the step is skipped.
        control: bool = "control" as Sparse, Whole;
    }
}

impl Skip {
    /// A skip that cost nothing.
    pub fn new(cause: SkipCause, reason: impl Into<String>) -> Skip {
        Skip {
            cause,
            reason: reason.into(),
            error: None,
            violations: Arc::default(),
            usage: Usage::default(),
            answer: None,
            carried: None,
            control: false,
        }
    }
}

choices! {
    /// The kinds of skip.
    pub enum SkipCause, "a cause of a skip" {
        /// The condition of the step, or of every edge to it, is false.
        Condition = "condition_false",
        /// Every step that it depends on was skipped.
        Dependencies = "dependencies_skipped",
        /// A parent failed, and `on_parent_failure` is `skip`.
        ParentFailure = "parent_failure",
        /// The step failed, and `on_failure` is `skip`.
        Failure = "failure",
        /// A person decided so.
        Decision = "decision",
        /// The run is a dry run.
        Advisory = "advisory",
    }
}

impl PayloadPart for SkipCause {
    /// Public streams show a false condition as a waiting reason as well.
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        payload.field("cause", self);
        if *self == SkipCause::Condition {
            payload.field("waitingReason", &Waiting::ConditionFalse);
        }
    }

    fn read(fields: &Fields<'_>) -> Read<SkipCause> {
        <Word as Form<SkipCause>>::read(fields, "cause")
    }

    fn kept(visit: VisitKept<'_>) {
        visit("cause", Keep::Whole);
        visit("waitingReason", Keep::Whole);
    }

    fn schema(object: &mut ObjectSchema) {
        object.field::<SkipCause, Word>("cause");
        object.field::<Option<Waiting>, Maybe<Word>>("waitingReason");
    }
}

payload! {
    /// Where an input of a step was read from.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Provenance {
        /// Run that it was read from; none means this run.
        source_run: Option<RunId> = "sourceRunId" as Maybe<Text>, Whole;
        /// Step, as written in the document.
        source_node: String = "sourceNodeId" as Always, Whole;
        /// Path within the outputs of that step.
        source_output_path: String = "sourceOutputPath" as Always, Blank;
        /// Path within the inputs of this step.
        target_input_path: String = "targetInputPath" as Always, Blank;
        /// Transformation between the two.
        transform: Option<String> = "transform" as Optional, Gone;
    }
}

payload! {
    /// An endorsement: an output of the step loses origins.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Endorsed {
        /// Name of the output.
        output: String = "output" as Always, Blank;
        /// The origins that it loses.
        origins: Vec<String> = "origins" as Sparse, Whole;
        /// The approval that showed the value; none if the output declares the endorsement.
        approval: Option<ApprovalId> = "approvalId" as Maybe<Text>, Whole;
    }
}

/// Conversions of values, whose types are words.
struct Coercions;

impl Form<Vec<Coercion>> for Coercions {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, coercions: &Vec<Coercion>) {
        payload.field(name, coercions);
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Vec<Coercion>> {
        #[derive(Deserialize)]
        struct WrittenCoercion {
            field: String,
            from: String,
            to: String,
        }
        let coercion =
            |WrittenCoercion { field, from, to }| match (known_type_name(&from), choice::find(&to))
            {
                (Some(from), Some(to)) => Ok(Coercion { field, from, to }),
                _ => Err(malformed("coercions: unknown type")),
            };
        let written: Vec<WrittenCoercion> = fields.need(name)?;
        written.into_iter().map(coercion).collect()
    }

    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "object", "properties": {
            "field": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"},
        }, "required": ["field", "from", "to"]}})
    }
}
