//! The labels of what a step returns, and the endorsements that lower them.
//!
//! INVARIANT: an output has every named label of what the step has read, except origins that an
//! endorsement removed, which is an event.

use crate::id::ApprovalId;
use crate::journal::event::{Endorsed, StepAt};
use crate::limits::ENDORSED_BYTES_MAX;
use crate::origin::{FieldLabels, FlowLabels, Labels, PassedLabels, SourceClass, is_trusted};
use crate::outputs::schema::FieldSchema;
use crate::plan::step::{Step, Work};
use crate::run::decide::draft::Draft;
use crate::visible;
use serde_json::{Map, Value};

/// What produced the outputs of a step.
#[derive(Clone, Copy)]
pub(super) enum Producer<'a> {
    /// An agent or a shell.
    Agent,
    /// A child run, with the labels of its result if it reports them.
    Child(Option<&'a PassedLabels>),
    /// A person, by this approval and with this comment.
    Person(ApprovalId, Option<&'a str>),
}

/// The labels of outputs, and the endorsements that they take into account.
pub(super) struct OutputLabels {
    /// The labels of all outputs together.
    pub(super) whole: Labels,
    /// The named labels of outputs that differ.
    pub(super) fields: FieldLabels,
    pub(super) endorsed: Vec<Endorsed>,
}

/// The labels of the outputs of a step.
pub(super) fn output_labels(
    draft: &Draft<'_>,
    at: StepAt,
    producer: Producer<'_>,
    outputs: &Map<String, Value>,
) -> OutputLabels {
    let whole = whole(draft, at, producer);
    let labels = match producer {
        Producer::Person(approval, comment) => {
            let mut typed = outputs.clone();
            typed.extend(comment.map(|text| ("comment".to_owned(), text.into())));
            approved(draft, at, approval, &typed, whole)
        }
        Producer::Child(Some(passed)) => {
            let guard = guard(draft, at);
            let fields = of_child(passed, outputs, &whole, &guard);
            OutputLabels { whole, fields, endorsed: Vec::new() }
        }
        Producer::Agent | Producer::Child(None) => {
            OutputLabels { whole, fields: FieldLabels::default(), endorsed: Vec::new() }
        }
    };
    declared(draft.run.step(at), outputs, labels)
}

/// An output is as old, as private and as untrusted as everything that the step has read, and
/// has the origins of what produced it. The result of a child run has the named labels that the
/// child reports: it knows which arguments became part of it.
fn whole(draft: &Draft<'_>, at: StepAt, producer: Producer<'_>) -> Labels {
    let now_ms = draft.given.now_ms;
    let mut read = draft.run.labels_read(at);
    let (class, flow) = match producer {
        Producer::Agent => (SourceClass::Agent, of_executor(draft, at)),
        Producer::Child(None) => (SourceClass::Agent, FlowLabels::unknown()),
        Producer::Person(..) => (SourceClass::Human, FlowLabels::default()),
        Producer::Child(Some(passed)) => {
            read.flow = guard(draft, at);
            read.join(&passed.labels);
            (SourceClass::Agent, FlowLabels::default())
        }
    };
    Labels::of_flow(class, now_ms, flow).with(&read)
}

/// What the gateway and the agent of a step add to everything that it has read.
fn of_executor(draft: &Draft<'_>, at: StepAt) -> FlowLabels {
    let (state, authority) = (draft.run.state(at), draft.given.authority);
    let gateway = state.gateway().and_then(|name| authority.gateway(name));
    let agent = state.agent().and_then(|name| authority.agent(name));
    let origins = [
        gateway.and_then(|row| row.origin.as_deref()),
        agent.and_then(|row| row.origin.as_deref()),
    ];
    let mut labels = match origins {
        [None, None] => FlowLabels::unknown(),
        _ => FlowLabels::default(),
    };
    for origin in origins.into_iter().flatten() {
        labels.join(&FlowLabels::declared(origin, &[]));
    }
    for sensitive in
        gateway.map(|row| &row.sensitive).into_iter().chain(agent.map(|row| &row.sensitive))
    {
        labels.join(&FlowLabels::declared(&[], sensitive));
    }
    labels
}

/// The labels that an output declares.
struct DeclaredLabels<'s> {
    name: &'s str,
    own: FlowLabels,
    /// Origins that it loses.
    endorse: &'s [String],
}

/// Adds the labels that outputs declare, and removes what they endorse: their values have been
/// validated. What is not one of the declared outputs has the labels of all of them.
fn declared(step: &Step, outputs: &Map<String, Value>, labels: OutputLabels) -> OutputLabels {
    if !declares_labels(step) {
        return labels;
    }
    let declared = declarations(step);
    let OutputLabels { mut whole, fields, mut endorsed } = labels;
    let before = whole.flow.clone();
    declared.iter().for_each(|one| whole.flow.join(&one.own));
    let mut all: Vec<(String, FlowLabels)> =
        fields.iter().map(|(name, own)| (name.clone(), own.clone())).collect();
    let of_outputs = declared.iter().filter(|one| outputs.contains_key(one.name));
    for DeclaredLabels { name, own, endorse } in of_outputs {
        let mut flow = fields.get(name).unwrap_or(&before).clone();
        flow.join(own);
        let origins = flow.endorse(|origin| endorse.iter().any(|one| one == origin));
        if !origins.is_empty() {
            let (output, approval) = ((*name).to_owned(), None);
            endorsed.push(Endorsed { output, origins, approval });
        }
        all.retain(|(other, _)| other != name);
        all.push(((*name).to_owned(), flow));
    }
    let fields = FieldLabels::new(all, &whole.flow);
    OutputLabels { whole, fields, endorsed }
}

fn declares_labels(step: &Step) -> bool {
    let lens = match &step.work {
        Work::Lens(work) => work.output_contract.as_ref(),
        _ => None,
    };
    step.outputs.values().any(FieldSchema::has_flow_labels)
        || lens.is_some_and(|contract| {
            let fields = contract.schema.iter().flatten();
            !contract.origin.is_empty()
                || !contract.sensitive.is_empty()
                || fields.into_iter().any(|(_, field)| field.has_flow_labels())
        })
}

/// What a step declares about the labels of its outputs. What a lens declares about its whole
/// output is a declaration of no field.
fn declarations(step: &Step) -> Vec<DeclaredLabels<'_>> {
    let outputs = step.outputs.iter().map(|(name, schema)| DeclaredLabels {
        name,
        own: FlowLabels::declared(&schema.origin, &schema.sensitive),
        endorse: if schema.is_endorsable() { &schema.endorse } else { &[] },
    });
    let contract = match &step.work {
        Work::Lens(work) => work.output_contract.as_ref(),
        _ => None,
    };
    let all = contract.map(|contract| FlowLabels::declared(&contract.origin, &contract.sensitive));
    let all = all.unwrap_or_default();
    let schema = contract.and_then(|contract| contract.schema.as_ref()).into_iter().flatten();
    let fields = schema.map(|(name, field)| {
        let mut own = FlowLabels::declared(&field.origin, &field.sensitive);
        own.join(&all);
        let endorse: &[String] = if field.is_endorsable() { &field.endorse } else { &[] };
        DeclaredLabels { name, own, endorse }
    });
    let whole = DeclaredLabels { name: "", own: all.clone(), endorse: &[] };
    outputs.chain(fields).chain([whole]).collect()
}

/// The named labels of the outputs of a child run. What decided that the child ran decides its
/// outputs too.
fn of_child(
    passed: &PassedLabels,
    outputs: &Map<String, Value>,
    whole: &Labels,
    guard: &FlowLabels,
) -> FieldLabels {
    let own = |name: &String| {
        let mut own = passed.field_labels.get(name).unwrap_or(&passed.labels.flow).clone();
        own.join(guard);
        (name.clone(), own)
    };
    FieldLabels::new(outputs.keys().map(own), &whole.flow)
}

/// The labels of the outputs of an approval step. The person has typed these values, or has
/// seen exactly these inputs: each loses its untrusted origins, but not its secrecy, nor the
/// label of what decided that the approval was requested.
fn approved(
    draft: &Draft<'_>,
    at: StepAt,
    approval: ApprovalId,
    outputs: &Map<String, Value>,
    whole: Labels,
) -> OutputLabels {
    let declared = &draft.run.step(at).outputs;
    let prepared = draft.run.state(at).prepared.as_deref();
    let mut endorsed = Vec::new();
    let mut fields = Vec::new();
    for (name, value) in outputs {
        let input = prepared.filter(|one| one.inputs.get(name) == Some(value));
        let input = input.filter(|_| !declared.contains_key(name));
        let own = input.map(|one| one.field_labels.get(name).unwrap_or(&one.labels.flow));
        let mut own = own.unwrap_or(&whole.flow).clone();
        if can_be_checked(value) {
            let origins = own.endorse(|origin| !is_trusted(origin));
            if !origins.is_empty() {
                let approval = Some(approval);
                endorsed.push(Endorsed { output: name.clone(), origins, approval });
            }
        }
        fields.push((name.clone(), own));
    }
    // What the engine adds comes from no input.
    let added = ADDED.iter().filter(|name| !outputs.contains_key(**name));
    fields.extend(added.map(|name| ((*name).to_owned(), guard(draft, at))));
    let fields = FieldLabels::new(fields, &whole.flow);
    OutputLabels { whole, fields, endorsed }
}

/// What the engine adds to the outputs of an approval step, apart from the comment.
const ADDED: [&str; 3] = ["approved", "by", "at"];

/// The label of what decided that the step runs.
fn guard(draft: &Draft<'_>, at: StepAt) -> FlowLabels {
    match draft.run.is_guarded(at.step) {
        true => FlowLabels::controlled(),
        false => FlowLabels::default(),
    }
}

/// Whether a person can see a value exactly: it is short, and all of it is visible.
fn can_be_checked(value: &Value) -> bool {
    let is_visible = |text: &str| text.chars().all(|c| c == '\n' || visible::substitute(c) == c);
    let text = value.to_string();
    text.len() <= ENDORSED_BYTES_MAX && all_texts(value, &is_visible)
}

/// Whether every text in a value, keys included, is as `test` demands.
fn all_texts(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => test(text),
        Value::Array(items) => items.iter().all(|item| all_texts(item, test)),
        Value::Object(map) => map.iter().all(|(key, item)| test(key) && all_texts(item, test)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_person_can_check_what_is_short_and_visible() {
        assert!(can_be_checked(&json!({"to": ["bob"], "text": "two\nlines", "n": 1})));
        for hidden in [json!("pay\u{200b}ee"), json!({"a\u{202e}b": 1}), json!(["\u{1b}[2K"])] {
            assert!(!can_be_checked(&hidden), "{hidden}");
        }
        assert!(!can_be_checked(&json!("x".repeat(ENDORSED_BYTES_MAX))));
    }
}
