//! Payloads of queueing, waiting and dispatching a step.

use super::call_record::{HistoryTaken, TakenList};
use super::labels::{FieldLabelsForm, LabelsForm};
use crate::choice::tagged;
use crate::id::RunId;
use crate::journal::declare::form::{Always, Form, Maybe, Optional, Sparse, Unless, Word};
use crate::journal::declare::{Keep, ObjectSchema, PayloadPart, Read, VisitKept, payload};
use crate::journal::wire::fields::{Fields, Pairs};
use crate::journal::wire::malformed;
use crate::journal::wire::object::{self, PayloadWriter};
use crate::layers::Layer;
use crate::money::Money;
use crate::origin::{FieldLabels, Labels};
use crate::port::adapter::Usage;
pub use crate::port::decision_record::Record;
use crate::status::Waiting;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Price;
use std::borrow::Cow;
use std::sync::Arc;

payload! {
    /// A person assigned a blocked step.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Assigned {
        /// Who executes the step.
        assignee: Assignee;
        /// The person who chose.
        by: Option<String> = "by" as Optional, Gone;
    }
}

/// Who executes a step that a person assigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignee {
    /// A member of the team.
    Member(String),
    /// An agent, which need not be a member of the team.
    Agent(String),
}

const MEMBER: &str = "assignedMember";
const AGENT: &str = "assignedAgent";

impl PayloadPart for Assignee {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        match self {
            Assignee::Member(name) => payload.field(MEMBER, name),
            Assignee::Agent(name) => payload.field(AGENT, name),
        }
    }

    fn read(fields: &Fields<'_>) -> Read<Assignee> {
        match fields.option(MEMBER)? {
            Some(name) => Ok(Assignee::Member(name)),
            None => fields.need(AGENT).map(Assignee::Agent),
        }
    }

    fn kept(visit: VisitKept<'_>) {
        visit(MEMBER, Keep::Whole);
        visit(AGENT, Keep::Whole);
    }

    fn schema(object: &mut ObjectSchema) {
        object.optional(|object| {
            object.field::<String, Always>(MEMBER);
            object.field::<String, Always>(AGENT);
        });
    }
}

/// Whether `node.queued` says that a person assigned the step.
pub(super) fn is_assigned(fields: &Fields<'_>) -> bool {
    fields.raw(MEMBER).is_some() || fields.raw(AGENT).is_some()
}

payload! {
    /// A wait of a step.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Wait {
        /// Why the step waits.
        reason: Waiting = "waitingReason" as Word, Whole;
        /// The attempt that comes after the wait.
        attempt: u32 = "attempt" as Sparse, Whole;
        /// What made the step wait.
        cause: Option<String> = "cause" as Optional, Word;
        /// Length of the wait.
        delay_ms: u64 = "delayMs" as Sparse, Whole;
        /// When the wait ends.
        until_ms: u64 = "until" as Sparse, Whole;
        /// Code of the gate.
        code: Option<String> = "code" as Optional, Word;
        /// What would end the wait.
        hint: Option<String> = "hint" as Optional, Gone;
    }
}

payload! {
    /// A dispatch of a step.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Dispatch {
        /// Number of the attempt in this generation, from 1.
        attempt: u32 = "attempt" as Always, Whole;
        /// Number of the dispatch of the step, from 1, never reset.
        dispatch_no: u32 = "dispatchNo" as Always, Whole;
        /// Wave of the step.
        wave: u32 = "wave" as Always, Whole;
        /// Agent that executes the step.
        agent: Option<String> = "agent" as Optional, Whole;
        /// Gateway that the step is sent to.
        gateway: String = "gateway" as Sparse, Whole;
        /// How the step is executed.
        path: Path;
        /// When the attempt times out.
        deadline_ms: Option<u64> = "deadline" as Optional, Whole;
        /// SHA-256 of the action that the gates allowed.
        digest: Option<String> = "actionDigest" as Optional, Word;
        /// What was reserved for the dispatch, and its constraints.
        terms: Arc<Terms>;
        /// Session of the provider that the dispatch continues.
        session: Option<String> = "session" as Optional, Gone;
        /// What is sent; none if it is what was sent before.
        prepared: Option<Arc<Prepared>>;
    }
}

tagged! {
    /// How a step is executed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Path {
        /// In the process of the engine.
        Edge = "edge",
        /// By a remote gateway that reports the result by callback.
        Bridge = "bridge",
        /// By a remote gateway that answers the request with the result.
        Sync = "bridge_sync",
        /// As a run of its own, with this id.
        Child(RunId) = "child",
        /// As its instances.
        FanOut = "fan_out",
    }
}

impl Path {
    const NAME: &'static str = "executionPath";
    const CHILD: &'static str = "childRunId";
}

impl PayloadPart for Path {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        payload.field(Path::NAME, self.as_str());
        if let Path::Child(run) = self {
            payload.field(Path::CHILD, &object::Text(run));
        }
    }

    fn read(fields: &Fields<'_>) -> Read<Path> {
        let child = <Maybe<crate::journal::declare::form::Text>>::read(fields, Path::CHILD)?;
        let paths = [Path::Edge, Path::Bridge, Path::Sync, Path::FanOut];
        let all = paths.into_iter().chain(child.map(Path::Child));
        fields.text(Path::NAME, |word| {
            let mut all = all;
            all.find(|path| path.as_str() == word)
                .ok_or_else(|| malformed(format_args!("{}: unknown word", Path::NAME)))
        })
    }

    fn kept(visit: VisitKept<'_>) {
        visit(Path::NAME, Keep::Whole);
        visit(Path::CHILD, Keep::Whole);
    }

    fn schema(object: &mut ObjectSchema) {
        object.add(Path::NAME, json!({"type": "string", "enum": Path::WORDS}), true);
        object.field::<Option<String>, Optional>(Path::CHILD);
    }
}

payload! {
    /// What is sent to execute a step, rendered. The prompt is written even if it is empty:
    /// where it is, something was prepared.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct Prepared if "prompt" {
        /// Bound inputs.
        inputs: Map<String, Value> = "inputs" as Sparse, Gone;
        /// The instruction.
        prompt: String = "prompt" as Always, Blank;
        /// Standard input.
        stdin: Option<String> = "stdin" as Optional, Gone;
        /// Environment variables of a shell step.
        env: Vec<(String, String)> = "env" as Unless<Environment>, Gone;
        /// Labels of the values that the step reads.
        labels: Labels = "labels" as Unless<LabelsForm>, Whole;
        /// Named labels of inputs and arguments that differ from those of all together.
        field_labels: FieldLabels = "fieldLabels" as Unless<FieldLabelsForm>, Whole;
        /// Layers of the prompt that are not in the plan; empty if there are only those of
        /// the engine, the step and the caller.
        layers: Vec<Layer> = "layers" as Unless<Layers>, Gone;
    }
}

payload! {
    /// What a dispatch has reserved, and what it must comply with. Amounts are whole
    /// micro-cents: the engine counts with them.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct Terms {
        /// Agent whose slot the dispatch holds.
        slot: Option<String> = "slot" as Optional, Whole;
        /// Amount that is reserved in each account.
        reserved: Money = "reserved" as Sparse, Whole;
        /// The accounts in which the amount is reserved.
        accounts: Vec<Account> = "accounts" as Unless<Accounts>, Whole;
        /// Constraints on the execution.
        #[serde(with = "crate::compact::json")]
        constraints: Constraints = "constraints" as Sparse, Whole;
        /// The model, if the agent's row names it.
        model: Option<String> = "termsModel" as Optional, Word;
        /// Longest answer that the reserved amount pays for.
        max_output_tokens: Option<u64> = "maxOutputTokens" as Optional, Whole;
        /// Price of the model when the amount was reserved.
        #[serde(with = "crate::compact::price")]
        price: Option<Price> = "price" as Maybe<PinnedPrice>, Whole;
        /// What the dispatch holds of counters about the history of its agent.
        history: Vec<HistoryTaken> = "historyTaken" as Unless<TakenList>, Whole;
    }
}

/// An account that an amount was reserved in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Name of the account.
    pub name: Arc<str>,
    /// Its cap when the amount was reserved.
    pub cap: Money,
}

payload! {
    /// A failed attempt that is followed by another one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Retried {
        /// The attempt that failed.
        attempt: u32 = "attempt" as Always, Whole;
        /// Why another attempt is made.
        cause: String = "cause" as Always, Word;
        /// What failed.
        message: String = "errorMessage" as Sparse, Gone;
        /// How long until the next attempt.
        delay_ms: u64 = "delayMs" as Always, Whole;
        /// Whether the next attempt is sent with the errors of this one.
        reask: bool = "reask" as Sparse, Whole;
        /// Cost of the attempt.
        usage: Usage;
        /// What the attempt answered, as [`Answer::into_record`] writes it.
        ///
        /// [`Answer::into_record`]: crate::port::adapter::Answer::into_record
        answer: Option<Arc<Value>> = "answer" as Maybe<crate::journal::declare::form::Shared<Always>>, Gone;
        /// Session of that answer, if the next attempt continues it.
        session: Option<String> = "session" as Optional, Gone;
    }
}

impl PayloadPart for Record {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        payload.fields_of(self.text());
    }

    /// Keeps the fields as they are written, without those of the envelope around them.
    fn read(fields: &Fields<'_>) -> Read<Record> {
        let kept = fields.0.iter().filter(|(name, _)| !matches!(&**name, "runId" | "nodeId"));
        let bytes: usize =
            fields.0.iter().map(|(name, raw)| name.len() + raw.get().len() + 4).sum();
        let mut text = String::with_capacity(2 + bytes);
        text.push('{');
        for (name, raw) in kept {
            if text.len() > 1 {
                text.push(',');
            }
            match name {
                // Borrowed from the frame, so there is nothing to escape.
                Cow::Borrowed(name) => text.extend(["\"", name, "\""]),
                Cow::Owned(name) => text.push_str(&Value::from(&**name).to_string()),
            }
            text.push(':');
            text.push_str(raw.get());
        }
        text.push('}');
        Ok(Record::new(text))
    }

    fn kept(visit: VisitKept<'_>) {
        for name in ["disposition", "policyHash", "factsDigest", "actionDigest"] {
            visit(name, Keep::Word);
        }
    }

    fn schema(object: &mut ObjectSchema) {
        object.add(
            "disposition",
            json!({"type": "string", "enum": ["allow", "hold", "block"]}),
            true,
        );
        object.open();
    }
}

impl PayloadPart for super::BudgetFigures {
    fn write(&self, payload: &mut PayloadWriter<'_>) {
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "runId") {
            payload.entry(name, value);
        }
    }

    fn read(fields: &Fields<'_>) -> Read<super::BudgetFigures> {
        let kept = fields.0.iter().filter(|(name, _)| *name != "runId");
        let entry = |(name, raw): &(Cow<'_, str>, &RawValue)| {
            let value = serde_json::from_str(raw.get())
                .map_err(|error| malformed(format_args!("{name}: {error}")))?;
            Ok((name.to_string(), value))
        };
        kept.map(entry).collect::<Read<_>>().map(super::BudgetFigures)
    }

    fn kept(visit: VisitKept<'_>) {
        visit("kind", Keep::Word);
        visit("account", Keep::Word);
        for name in ["percent", "spent", "cap", "reserved"] {
            visit(name, Keep::Whole);
        }
    }

    fn schema(object: &mut ObjectSchema) {
        object.optional(|object| {
            object.field::<String, Always>("kind");
            object.field::<String, Always>("account");
            for name in ["percent", "spent", "cap", "reserved"] {
                object.add(name, json!({"type": "number"}), false);
            }
        });
        object.open();
    }
}

/// Variables in their order, as an object.
struct Environment;

impl Form<Vec<(String, String)>> for Environment {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, value: &Vec<(String, String)>) {
        payload.field(name, &object::Pairs(value));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Vec<(String, String)>> {
        let pairs: Pairs<'_, String> = fields.need(name)?;
        Ok(pairs.0.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": {"type": "string"}})
    }
}

/// Layers of a prompt, each with its name for people.
struct Layers;

impl Form<Vec<Layer>> for Layers {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, layers: &Vec<Layer>) {
        let layer = |one: &Layer| {
            let Layer { number, source, text } = one;
            json!({"layer": number, "name": one.name(), "source": source, "text": text})
        };
        payload.field(name, &layers.iter().map(layer).collect::<Vec<Value>>());
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Vec<Layer>> {
        #[derive(Deserialize)]
        struct WrittenLayer {
            layer: u8,
            source: String,
            text: String,
        }
        let written: Vec<WrittenLayer> = fields.need(name)?;
        let layer = |WrittenLayer { layer, source, text }| Layer { number: layer, source, text };
        Ok(written.into_iter().map(layer).collect())
    }

    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "object", "properties": {
            "layer": {"type": "integer"}, "name": {"type": "string"},
            "source": {"type": "string"}, "text": {"type": "string"},
        }, "required": ["layer", "name", "source", "text"]}})
    }
}

/// Accounts, each with its cap in micro-cents.
struct Accounts;

impl Form<Vec<Account>> for Accounts {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, accounts: &Vec<Account>) {
        payload.list(name, accounts.iter().map(|one| (&*one.name, one.cap.micro_cents())));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Vec<Account>> {
        let written: Vec<(String, u64)> = fields.need(name)?;
        let account = |(name, cap): (String, u64)| Account {
            name: name.into(),
            cap: Money::from_micro_cents(cap),
        };
        Ok(written.into_iter().map(account).collect())
    }

    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "array", "prefixItems": [
            {"type": "string"}, {"type": "integer"},
        ]}})
    }
}

/// Input, output and cached input price for a million tokens, in micro-cents.
struct PinnedPrice;

impl Form<Price> for PinnedPrice {
    fn write(payload: &mut PayloadWriter<'_>, name: &'static str, price: &Price) {
        let input = price.input_cents_per_mtok.micro_cents();
        let output = price.output_cents_per_mtok.micro_cents();
        let cached = price.cached_input_cents_per_mtok.map(Money::micro_cents);
        payload.field(name, &(input, output, cached));
    }

    fn read(fields: &Fields<'_>, name: &'static str) -> Read<Price> {
        let (input, output, cached): (u64, u64, Option<u64>) = fields.need(name)?;
        Ok(Price {
            input_cents_per_mtok: Money::from_micro_cents(input),
            output_cents_per_mtok: Money::from_micro_cents(output),
            cached_input_cents_per_mtok: cached.map(Money::from_micro_cents),
            max_output_tokens: None,
        })
    }

    fn schema() -> Value {
        json!({"type": "array", "prefixItems": [
            {"type": "integer"}, {"type": "integer"}, {"type": ["integer", "null"]},
        ]})
    }
}
