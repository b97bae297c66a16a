//! Readers of simple values: text, numbers, durations, expressions.

use crate::choice::find;
use crate::choices::OwnChoice;
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, PathPart, Read};
use crate::doc::schema::Defs;
use crate::duration;
use crate::expr::Expr;
use crate::money::Money;
use crate::node::{Entry, Kind, Node};
use crate::pattern::Pattern;
use crate::span::{Fault, Spanned};
use crate::template::Template;
use crate::template::tree::Tree;
use indexmap::IndexMap;
use serde_json::{Number, Value, json};
use std::marker::PhantomData;
use std::ops::RangeInclusive;

impl Read for String {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<String> {
        cx.text(node).map(str::to_owned)
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string" })
    }
}

impl Read for bool {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<bool> {
        match &node.kind {
            Kind::Bool(flag) => Some(*flag),
            _ => {
                cx.wrong_type(node, "`true` or `false`");
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "boolean" })
    }
}

impl Read for Value {
    fn read<'n>(node: &'n Node<'n>, _: &mut DocumentReader<'n, '_>) -> Option<Value> {
        Some(node.to_value())
    }

    fn schema(_: &mut Defs) -> Value {
        json!({})
    }
}

impl Read for Number {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Number> {
        match &node.kind {
            Kind::Number(number) => Some(number.clone()),
            _ => {
                cx.wrong_type(node, "a number");
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "number" })
    }
}

impl Read for i64 {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<i64> {
        let number = Number::read(node, cx)?;
        let whole = number.as_i64();
        if whole.is_none() {
            cx.add(Problem::new(
                Code::BadValue,
                node.span,
                format!("{number} is not a whole number"),
            ));
        }
        whole
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "integer" })
    }
}

/// A whole number between two bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WholeNumber<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Read for WholeNumber<MIN, MAX> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Self> {
        whole_number(node, cx, MIN..=MAX).map(WholeNumber)
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// Reads a whole number between two bounds.
pub(crate) fn whole_number<'n>(
    node: &'n Node<'n>,
    cx: &mut DocumentReader<'n, '_>,
    bounds: RangeInclusive<u64>,
) -> Option<u64> {
    let number = Number::read(node, cx)?;
    let whole = number.as_u64().filter(|whole| bounds.contains(whole));
    if whole.is_none() {
        let (min, max) = bounds.into_inner();
        let message = format!("{number} is not a whole number from {min} to {max}");
        cx.add(Problem::new(Code::BadValue, node.span, message));
    }
    whole
}

impl<const MIN: u64, const MAX: u64> WholeNumber<MIN, MAX> {
    /// The number as 32 bits, for fields whose bound fits.
    pub(crate) fn small(self) -> u32 {
        u32::try_from(self.0).expect("the field's bound fits 32 bits")
    }
}

/// A name that may also be written as a number, such as a version.
#[derive(Debug, Clone)]
pub(crate) struct NameOrNumber(pub(crate) String);

impl Read for NameOrNumber {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<NameOrNumber> {
        match &node.kind {
            Kind::Number(number) => Some(NameOrNumber(number.to_string())),
            _ => cx.text(node).map(|text| NameOrNumber(text.to_owned())),
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": ["string", "number"] })
    }
}

/// A duration, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Millis(pub(crate) u64);

impl Read for Millis {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Millis> {
        let parsed = match &node.kind {
            Kind::Text(text) => duration::parse(text),
            Kind::Number(number) => duration::parse(&number.to_string()),
            _ => {
                cx.wrong_type(node, "a duration such as `90s`, or a number of seconds");
                return None;
            }
        };
        match parsed {
            Ok(ms) => Some(Millis(ms)),
            Err(fault) => {
                cx.fault(Code::BadDuration, node, fault);
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": ["string", "number"], "examples": [90, "90s", "5m", "2h", "2d"] })
    }
}

impl Read for Money {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Money> {
        let number = Number::read(node, cx)?;
        match Money::from_cents(&number) {
            Ok(money) => Some(money),
            Err(bad) => {
                cx.fault(Code::BadValue, node, Fault::new(0..number.to_string().len(), bad.0));
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "number", "minimum": 0 })
    }
}

impl Read for Pattern {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Pattern> {
        match Pattern::new(cx.text(node)?) {
            Ok(pattern) => Some(pattern),
            Err(fault) => {
                cx.fault(Code::BadPattern, node, fault);
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string", "format": "regex" })
    }
}

impl Read for Expr {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Expr> {
        let parsed = match &node.kind {
            // `condition: true` needs no quotes.
            Kind::Bool(flag) => Expr::parse(if *flag { "true" } else { "false" }),
            _ => Expr::parse(cx.text(node)?),
        };
        match parsed {
            Ok(expr) => Some(expr),
            Err(fault) => {
                cx.fault(Code::BadExpression, node, fault);
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": ["string", "boolean"] })
    }
}

impl Read for Template {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Template> {
        match Template::parse(cx.text(node)?) {
            Ok(template) => Some(template),
            Err(faults) => {
                for fault in faults {
                    cx.fault(Code::BadTemplate, node, fault);
                }
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string" })
    }
}

impl<T: Read> Read for Tree<T> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Tree<T>> {
        Some(match &node.kind {
            Kind::Text(_) => Tree::Template(T::read(node, cx)?),
            Kind::List(items) => {
                let items = items.iter().enumerate();
                let read =
                    |(index, item)| cx.within(PathPart::Index(index), |cx| tree_part(item, cx));
                Tree::List(items.map(read).collect())
            }
            Kind::Map(entries) => {
                let read = |entry: &'n Entry<'n>| {
                    let tree =
                        cx.within(PathPart::Key(&entry.key), |cx| tree_part(&entry.value, cx));
                    (entry.key.clone().into_owned(), tree)
                };
                Tree::Map(entries.iter().map(read).collect())
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => Tree::Literal(node.to_value()),
        })
    }

    fn schema(_: &mut Defs) -> Value {
        json!({})
    }
}

/// Reads a part of a tree. A part that cannot be read is reported and replaced by a
/// placeholder, so that the positions of the other parts stay correct.
fn tree_part<'n, T: Read>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Tree<T> {
    Tree::read(node, cx).unwrap_or(Tree::Literal(Value::Null))
}

impl<T: OwnChoice> Read for T {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<T> {
        let word = cx.text(node)?;
        if let Some(choice) = find(word) {
            return Some(choice);
        }
        if let Some((_, new)) = T::OLD.iter().find(|(old, _)| *old == word) {
            let message = format!("`{word}` is an old name of `{new}`");
            let problem = Problem::new(Code::DeprecatedValue, node.span, message);
            cx.add(problem.with_hint(format!("write `{new}`")));
            return find(new);
        }
        unknown_word(node, word, T::WHAT, T::NAMES, cx);
        None
    }

    fn schema(_: &mut Defs) -> Value {
        let old = T::OLD.iter().map(|(word, _)| *word);
        json!({ "enum": T::NAMES.iter().copied().chain(old).collect::<Vec<_>>() })
    }
}

/// Reports a word that an enum does not have.
pub(crate) fn unknown_word(
    node: &Node<'_>,
    word: &str,
    what: &str,
    words: &[&str],
    cx: &mut DocumentReader<'_, '_>,
) {
    let message = format!("`{}` is not {what}", crate::visible::shorten(word));
    let hint = match cx.suggest(word, words.iter().copied()) {
        Some(likely) => format!("did you mean `{likely}`?"),
        None => format!("use one of: {}", words.join(", ")),
    };
    cx.add(Problem::new(Code::BadValue, node.span, message).with_hint(hint));
}

impl<T: Read> Read for Spanned<T> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Spanned<T>> {
        T::read(node, cx).map(|value| Spanned::new(value, cx.reported_span(node.span)))
    }

    fn schema(defs: &mut Defs) -> Value {
        T::schema(defs)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Vec<T>> {
        let items = cx.list(node)?.iter().enumerate();
        let read =
            items.map(|(index, item)| cx.within(PathPart::Index(index), |cx| T::read(item, cx)));
        // Items that could not be read are reported; the others can still be checked.
        Some(read.flatten().collect())
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "type": "array", "items": T::schema(defs) })
    }
}

/// A map from names that the author chooses, in document order, then the names whose values
/// could not be read. Those are declared too, so that one mistake in a declaration is not
/// reported again at every use.
#[derive(Debug, Clone)]
pub(crate) struct Table<T>(pub(crate) Vec<(Spanned<String>, T)>, Vec<String>);

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(Vec::new(), Vec::new())
    }
}

impl<T> Table<T> {
    /// All declared names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        let read = self.0.iter().map(|(name, _)| name.value.as_str());
        read.chain(self.1.iter().map(String::as_str))
    }

    /// An ordered map of the values, each converted by `turn`.
    pub(crate) fn into_map<U>(self, turn: impl Fn(T) -> U) -> IndexMap<String, U> {
        self.0.into_iter().map(|(name, value)| (name.value, turn(value))).collect()
    }
}

impl<T: Read> Read for Table<T> {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<Table<T>> {
        let mut table = Table::default();
        for entry in cx.map(node)? {
            let read = cx.within(PathPart::Key(&entry.key), |cx| T::read(&entry.value, cx));
            let name = entry.key.clone().into_owned();
            match read {
                Some(value) => {
                    table.0.push((Spanned::new(name, cx.reported_span(entry.key_span)), value));
                }
                None => table.1.push(name),
            }
        }
        Some(table)
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(defs) })
    }
}

/// A field that is read later, when the values it depends on are known; its schema is that of
/// `T`.
#[derive(Debug, Clone)]
pub(crate) struct Later<T>(PhantomData<T>);

impl<T: Read> Read for Later<T> {
    fn read<'n>(_: &'n Node<'n>, _: &mut DocumentReader<'n, '_>) -> Option<Later<T>> {
        Some(Later(PhantomData))
    }

    fn schema(defs: &mut Defs) -> Value {
        T::schema(defs)
    }
}
