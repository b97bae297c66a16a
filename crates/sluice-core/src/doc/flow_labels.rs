//! Flow labels in documents and setups: `origin`, `sensitive` and `endorse`.

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, Read};
use crate::doc::schema::Defs;
use crate::limits::FLOW_LABELS_MAX;
use crate::node::Node;
use crate::span::{Span, Spanned};
use crate::suggest::misspelt;
use serde_json::{Value, json};
use sluice_govern::flow_label::{self, CHARS_MAX, NAMES_MAX};
use std::collections::BTreeMap;

/// Names of flow labels.
#[derive(Debug, Clone)]
pub(crate) struct FlowLabels(Vec<String>);

impl FlowLabels {
    /// The names of an optional field.
    pub(crate) fn names(labels: Option<FlowLabels>) -> Vec<String> {
        labels.map(|labels| labels.0).unwrap_or_default()
    }
}

impl Read for FlowLabels {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<FlowLabels> {
        let labels = Vec::<Spanned<String>>::read(node, cx)?;
        for (index, label) in labels.iter().enumerate() {
            cx.within(PathPart::Index(index), |cx| {
                names::flow_label(&label.value, label.span, cx);
                if flow_label::is_name(&label.value) {
                    cx.used_flow_label(label);
                }
            });
        }
        names::unique("label", labels.iter(), cx);
        if labels.len() > NAMES_MAX {
            let message = format!("there are {} labels; the limit is {NAMES_MAX}", labels.len());
            cx.add(Problem::new(Code::BadValue, node.span, message));
        }
        Some(FlowLabels(labels.into_iter().map(|label| label.value).collect()))
    }

    fn schema(_: &mut Defs) -> Value {
        let name =
            json!({ "type": "string", "pattern": flow_label::PATTERN, "maxLength": CHARS_MAX });
        json!({ "type": "array", "items": name, "maxItems": NAMES_MAX, "uniqueItems": true })
    }
}

/// The flow labels that a document uses.
#[derive(Debug, Default)]
pub(crate) struct UsedFlowLabels(BTreeMap<String, FirstUse>);

/// How often a label is used, and where first.
#[derive(Debug)]
struct FirstUse {
    count: usize,
    span: Span,
    path: String,
}

impl UsedFlowLabels {
    pub(crate) fn add(&mut self, label: &Spanned<String>, path: impl FnOnce() -> String) {
        match self.0.get_mut(&label.value) {
            Some(first) => first.count += 1,
            None => {
                let first = FirstUse { count: 1, span: label.span, path: path() };
                self.0.insert(label.value.clone(), first);
            }
        }
    }
}

/// Warns about labels that look like a misspelt other one, and limits their number.
pub(crate) fn check(cx: &mut DocumentReader<'_, '_>) {
    let used = cx.take_flow_labels().0;
    if used.len() > FLOW_LABELS_MAX {
        let first = used.values().map(|first| first.span).max_by_key(|span| span.range().start);
        let message =
            format!("the document uses {} labels; the limit is {FLOW_LABELS_MAX}", used.len());
        cx.add(Problem::new(Code::BadValue, first.unwrap_or_default(), message));
        return;
    }
    let place = |first: &FirstUse| (std::cmp::Reverse(first.count), first.span.range().start);
    for (label, first) in &used {
        // The name that is used more often is right; of two that are used as often, the first.
        let better = used.iter().filter(|(_, other)| place(other) < place(first));
        if let Some(likely) = misspelt(label, better.map(|(name, _)| name.as_str())) {
            let message = format!("the label `{label}` looks like `{likely}`");
            let problem = Problem::new(Code::SimilarLabel, first.span, message)
                .with_hint(format!("write `{likely}`, or choose a name that differs more"));
            cx.add_at(problem, first.path.clone());
        }
    }
}
