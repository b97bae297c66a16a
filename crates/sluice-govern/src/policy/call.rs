//! The values of an action, as Cedar sees them: the entity `Call`.
//!
//! INVARIANT: what is not known may be anything. A value whose origin the caller did not
//! look up may have been seen in every place that is not trusted.

use super::facts::PolicyFacts;
use super::number::DecimalNumber;
use super::request::{RequestError, text, texts};
use crate::choice::Choice as _;
use crate::facts::{ArgumentFacts, ArgumentRole, CallFacts, SeenIn};
use crate::limits::{CALL_VALUES_BYTES_MAX, POLICY_TEXT_BYTES_MAX, POLICY_TEXTS_MAX};
use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Where a value may have been seen if the caller of the gates does not know.
const ANYTHING: [SeenIn; 3] = [SeenIn::Private, SeenIn::Stranger, SeenIn::Nowhere];
/// What a text may repeat then.
const CARRIES_ANYTHING: [SeenIn; 2] = [SeenIn::Private, SeenIn::Stranger];

/// The values that are recorded for policies: long texts are cut, one character after
/// the last one that policies see, so that a reader knows that they were cut. `None` if
/// there are too many values.
pub(super) fn recorded(input: &Map<String, Value>) -> Option<Cow<'_, Map<String, Value>>> {
    let mut is_long = false;
    let measured =
        input.iter().map(|(name, value)| name.len() + measure(value, name.len(), &mut is_long));
    if measured.sum::<usize>() > CALL_VALUES_BYTES_MAX {
        return None;
    }
    if !is_long {
        return Some(Cow::Borrowed(input));
    }
    Some(Cow::Owned(input.iter().map(|(name, value)| (name.clone(), cut(value))).collect()))
}

/// The bytes of a value after long texts are cut, and of the paths to all its parts.
/// `above` is the length of the path to it.
fn measure(value: &Value, above: usize, is_long: &mut bool) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => {
            *is_long |= text.len() > POLICY_TEXT_BYTES_MAX;
            text.len().min(POLICY_TEXT_BYTES_MAX) + 2
        }
        Value::Array(items) => items.iter().map(|item| measure(item, above, is_long)).sum(),
        Value::Object(map) => {
            let part = |(name, item): (&String, &Value)| {
                let path = above + 1 + name.len();
                path + measure(item, path, is_long)
            };
            map.iter().map(part).sum()
        }
    }
}

fn cut(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > POLICY_TEXT_BYTES_MAX => {
            let shown = shown(text).0;
            let more = text[shown.len()..].chars().next();
            Value::String(shown.chars().chain(more).collect())
        }
        Value::Array(items) => items.iter().map(cut).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, item)| (name.clone(), cut(item))).collect())
        }
        other => other.clone(),
    }
}

/// The part of a text that policies see, and whether it is cut.
pub(super) fn shown(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(POLICY_TEXT_BYTES_MAX);
    (&text[..end], end < text.len())
}

/// The arguments of an action by path, with their facts and values.
pub(super) struct CallView<'f> {
    exposed: bool,
    arguments: BTreeMap<Cow<'f, str>, Argument<'f>>,
}

/// One argument.
struct Argument<'f> {
    facts: Cow<'f, ArgumentFacts>,
    role: Option<ArgumentRole>,
    values: Values<'f>,
}

/// The scalars of an argument.
#[derive(Clone, Default)]
struct Values<'f> {
    scalars: Vec<&'f Value>,
    /// Whether it is a list or an object, or two arguments have this path.
    is_compound: bool,
    /// Whether the values are unknown, too many or cut.
    truncated: bool,
}

impl<'f> CallView<'f> {
    /// `None` if nothing is known about the values of the action.
    pub(super) fn new(facts: &'f PolicyFacts<'_>) -> Option<CallView<'f>> {
        let (call, input) = (facts.call.as_ref(), facts.input.as_deref());
        if call.is_none() && input.is_none() {
            return None;
        }
        let mut values: BTreeMap<Cow<'f, str>, Values<'f>> = BTreeMap::new();
        for (name, value) in input.into_iter().flatten() {
            collect(&mut values, &mut vec![Cow::Borrowed(name.as_str())], value, false);
        }
        let mut view =
            CallView { exposed: call.is_none_or(|call| call.exposed), arguments: BTreeMap::new() };
        for (path, values) in values {
            let facts = facts_of(call, &path, &values);
            view.arguments.insert(path, Argument { facts, role: None, values });
        }
        for (path, facts) in call.into_iter().flat_map(|call| &call.arguments) {
            let unknown = || Argument {
                facts: Cow::Borrowed(facts),
                role: None,
                values: Values { truncated: true, ..Values::default() },
            };
            view.arguments.entry(Cow::Borrowed(path)).or_insert_with(unknown);
        }
        for (path, role) in facts.tool.iter().flat_map(|tool| &tool.roles) {
            if let Some(argument) = view.arguments.get_mut(path.as_str()) {
                argument.role = Some(*role);
            }
        }
        Some(view)
    }

    /// The attributes of the entity.
    pub(super) fn attributes(&self) -> Result<Vec<(String, RestrictedExpression)>, RequestError> {
        let paths: Vec<&str> = self.arguments.keys().map(AsRef::as_ref).collect();
        let mut attributes = vec![
            ("arguments".to_owned(), texts(&paths)),
            ("exposed".to_owned(), RestrictedExpression::new_bool(self.exposed)),
            ("all".to_owned(), self.union(None)?),
        ];
        for (name, role) in ArgumentRole::WORDS {
            attributes.push(((*name).to_owned(), self.union(Some(*role))?));
        }
        Ok(attributes)
    }

    /// The tags of the entity: one for each argument.
    pub(super) fn tags(&self) -> Result<Vec<(String, RestrictedExpression)>, RequestError> {
        let tag = |(path, argument): (&Cow<'_, str>, &Argument<'_>)| {
            let mut part = Part::default();
            part.join(path, argument);
            Ok((path.clone().into_owned(), part.record(argument.role)?))
        };
        self.arguments.iter().map(tag).collect()
    }

    /// The arguments with a role, or all of them, as one.
    fn union(&self, role: Option<ArgumentRole>) -> Result<RestrictedExpression, RequestError> {
        let mut part = Part::default();
        for (path, argument) in &self.arguments {
            if role.is_none() || argument.role == role {
                part.join(path, argument);
            }
        }
        part.record(role)
    }
}

/// What is known about an argument. Without the facts of the call it may be anything.
fn facts_of<'f>(
    call: Option<&'f CallFacts>,
    path: &str,
    values: &Values<'_>,
) -> Cow<'f, ArgumentFacts> {
    match call {
        Some(call) => match call.arguments.get(path) {
            Some(facts) => Cow::Borrowed(facts),
            // A boolean or an empty list is seen nowhere and has no items.
            None => Cow::Owned(ArgumentFacts::default()),
        },
        None if values.scalars.iter().all(|value| value.is_boolean()) && !values.truncated => {
            Cow::Owned(ArgumentFacts::default())
        }
        None => Cow::Owned(ArgumentFacts {
            seen: ANYTHING.into(),
            mentions: ANYTHING.into(),
            carries: CARRIES_ANYTHING.into(),
            ..ArgumentFacts::default()
        }),
    }
}

/// Gives the scalars of a value to every argument in which they are. `paths` are those
/// arguments, the innermost last.
fn collect<'f>(
    values: &mut BTreeMap<Cow<'f, str>, Values<'f>>,
    paths: &mut Vec<Cow<'f, str>>,
    value: &'f Value,
    in_list: bool,
) {
    let innermost = paths.last().expect("a value has a path").clone();
    if !value.is_null() {
        let argument = values.entry(innermost.clone()).or_default();
        // A second value of the same path cannot be told apart.
        argument.is_compound |=
            in_list || value.is_array() || value.is_object() || !argument.scalars.is_empty();
    }
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for item in items {
                collect(values, paths, item, true);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                paths.push(Cow::Owned(format!("{innermost}.{key}")));
                collect(values, paths, item, in_list);
                paths.pop();
            }
        }
        scalar => {
            for path in paths {
                let argument = values.entry(path.clone()).or_default();
                if argument.scalars.len() < POLICY_TEXTS_MAX {
                    argument.scalars.push(scalar);
                } else {
                    argument.truncated = true;
                }
            }
        }
    }
}

/// One or several arguments together.
#[derive(Default)]
struct Part<'f> {
    arguments: Vec<&'f str>,
    seen: BTreeSet<SeenIn>,
    mentions: BTreeSet<SeenIn>,
    carries: BTreeSet<SeenIn>,
    origins: BTreeSet<&'f str>,
    secrecy: BTreeSet<&'f str>,
    texts: BTreeSet<&'f str>,
    /// The only scalar, if it is one text or boolean.
    text: Option<&'f str>,
    number: Option<DecimalNumber>,
    not_one_number: bool,
    truncated: bool,
}

impl<'f> Part<'f> {
    fn join(&mut self, path: &'f str, argument: &'f Argument<'_>) {
        let Argument { facts, values, .. } = argument;
        self.seen.extend(&facts.seen);
        self.mentions.extend(&facts.mentions);
        self.carries.extend(&facts.carries);
        self.origins.extend(facts.origins.iter().map(AsRef::as_ref));
        self.secrecy.extend(facts.secrecy.iter().map(AsRef::as_ref));
        self.truncated |= facts.truncated || values.truncated;
        for value in &values.scalars {
            if let Some(whole) = scalar_text(value) {
                let (shown, is_cut) = shown(whole);
                self.truncated |= is_cut;
                if self.texts.len() < POLICY_TEXTS_MAX {
                    self.texts.insert(shown);
                } else {
                    self.truncated = true;
                }
            }
        }
        let only = match values.scalars.as_slice() {
            [one] if !values.is_compound && !values.truncated => Some(*one),
            _ => None,
        };
        let is_first = self.arguments.is_empty();
        self.text = only.filter(|_| is_first).and_then(scalar_text).map(|text| shown(text).0);
        match only.and_then(DecimalNumber::from_value) {
            Some(number) => self.number = self.number.max(Some(number)),
            None => self.not_one_number = true,
        }
        self.arguments.push(path);
    }

    fn record(&self, role: Option<ArgumentRole>) -> Result<RestrictedExpression, RequestError> {
        let words = |all: &BTreeSet<SeenIn>| {
            texts(&all.iter().map(|seen| seen.as_str()).collect::<Vec<_>>())
        };
        let names = |all: &BTreeSet<&str>| texts(&all.iter().copied().collect::<Vec<_>>());
        let mut fields = vec![
            ("arguments", texts(&self.arguments)),
            ("seen", words(&self.seen)),
            ("mentions", words(&self.mentions)),
            ("carries", words(&self.carries)),
            ("origins", names(&self.origins)),
            ("secrecy", names(&self.secrecy)),
            ("truncated", RestrictedExpression::new_bool(self.truncated)),
        ];
        if let Some(one) = self.text {
            fields.push(("text", text(one)));
        }
        if !self.truncated {
            fields.push(("texts", names(&self.texts)));
        }
        if let Some(number) = self.number.filter(|_| !self.not_one_number) {
            fields.push(("number", number.cedar()));
        }
        if let Some(role) = role {
            fields.push(("role", text(role.as_str())));
        }
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        RestrictedExpression::new_record(fields).map_err(|error| error.to_string())
    }
}

/// The text of a scalar; a number has none.
fn scalar_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(true) => Some("true"),
        Value::Bool(false) => Some("false"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    #[test]
    fn short_values_are_recorded_as_they_are_and_long_texts_are_cut() {
        let short = map(json!({"a": ["x", {"b": 1}], "c": null}));
        assert!(matches!(recorded(&short), Some(Cow::Borrowed(_))));
        let long = "é".repeat(POLICY_TEXT_BYTES_MAX);
        let input = map(json!({"a": [long], "b": {"c": long}, "d": "x"}));
        let kept = recorded(&input).unwrap().into_owned();
        for text in [&kept["a"][0], &kept["b"]["c"]] {
            let text = text.as_str().unwrap();
            assert_eq!(text.len(), POLICY_TEXT_BYTES_MAX + 2);
            assert_eq!(shown(text), (&long[..POLICY_TEXT_BYTES_MAX], true));
        }
        assert_eq!(kept["d"], "x");
        // What was recorded is recorded again in the same way.
        assert_eq!(recorded(&kept).unwrap().as_ref(), &kept);
    }

    #[test]
    fn too_many_values_are_not_recorded() {
        let items = vec!["x".repeat(4000); CALL_VALUES_BYTES_MAX / 4000 + 1];
        assert_eq!(recorded(&map(json!({"a": items}))), None);
    }
}
