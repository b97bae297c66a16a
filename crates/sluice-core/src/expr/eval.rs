//! Evaluates the tree of an expression.

use super::{Comparison, EvalError, Expr, ExprNode, Search};
use crate::limits::EXPRESSION_FUEL;
use crate::path::Reference;
use crate::scope::{Located, Scope, locate};
use crate::value::{Membership, compare_numbers, is_token, numeric, same, truthy};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Bytes of text that one unit of fuel reads.
const BYTES_PER_UNIT: usize = 64;
/// The effort that doubles the cost of a match. Measured so that the worst pattern that
/// compiles spends the whole fuel within a fraction of a second.
const PLAIN_EFFORT: usize = 4;

pub(super) fn value(
    expr: &Expr,
    scope: &dyn Scope,
    membership: Membership,
) -> Result<Value, EvalError> {
    let mut evaluation = Evaluation::new(expr, scope, membership);
    let operand = evaluation.operand(&expr.0.root)?;
    evaluation.into_value(operand)
}

pub(super) fn holds(
    expr: &Expr,
    scope: &dyn Scope,
    membership: Membership,
) -> Result<bool, EvalError> {
    Evaluation::new(expr, scope, membership).truth(&expr.0.root)
}

/// A value that is borrowed if possible, not copied.
#[derive(Debug)]
enum Operand<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    /// A list or an object.
    Whole(&'a Value),
    /// A list in the expression whose items are not all literals.
    List(Vec<Operand<'a>>),
}

impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Operand<'a> {
        match value {
            Value::Null => Operand::Null,
            Value::Bool(flag) => Operand::Bool(*flag),
            Value::Number(number) => Operand::Number(number.clone()),
            Value::String(text) => Operand::Text(Cow::Borrowed(text)),
            Value::Array(_) | Value::Object(_) => Operand::Whole(value),
        }
    }
}

struct Evaluation<'a> {
    references: &'a [Reference],
    scope: &'a dyn Scope,
    membership: Membership,
    fuel: u32,
}

impl<'a> Evaluation<'a> {
    fn new(expr: &'a Expr, scope: &'a dyn Scope, membership: Membership) -> Evaluation<'a> {
        Evaluation { references: &expr.0.references, scope, membership, fuel: EXPRESSION_FUEL }
    }

    fn spend(&mut self, units: usize) -> Result<(), EvalError> {
        let units = u32::try_from(units).map_err(|_| EvalError::OutOfFuel)?;
        self.fuel = self.fuel.checked_sub(units).ok_or(EvalError::OutOfFuel)?;
        Ok(())
    }

    fn spend_text(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.spend(bytes / BYTES_PER_UNIT)
    }

    fn operand(&mut self, node: &'a ExprNode) -> Result<Operand<'a>, EvalError> {
        self.spend(1)?;
        Ok(match node {
            ExprNode::Literal(value) => value.into(),
            ExprNode::Path(index) => return self.path(*index),
            ExprNode::List(items) => {
                let items = items.iter().map(|item| self.operand(item));
                Operand::List(items.collect::<Result<_, _>>()?)
            }
            ExprNode::Lower(inner) => match self.operand(inner)? {
                Operand::Text(text) => {
                    self.spend_text(text.len())?;
                    Operand::Text(Cow::Owned(text.to_lowercase()))
                }
                other => other,
            },
            _ => Operand::Bool(self.truth(node)?),
        })
    }

    fn truth(&mut self, node: &'a ExprNode) -> Result<bool, EvalError> {
        self.spend(1)?;
        match node {
            ExprNode::Any(nodes) => find(nodes, |node| self.truth(node)),
            ExprNode::All(nodes) => Ok(!find(nodes, |node| Ok(!self.truth(node)?))?),
            ExprNode::Not(inner) => Ok(!self.truth(inner)?),
            ExprNode::Compare(comparison, sides) => {
                let [left, right] = self.both(sides)?;
                self.compare(*comparison, &left, &right)
            }
            ExprNode::In(sides) => {
                let [answer, list] = self.both(sides)?;
                self.is_in(&answer, &list)
            }
            ExprNode::Contains(sides) => {
                let [whole, part] = self.both(sides)?;
                self.contains(&whole, &part)
            }
            ExprNode::StartsWith(sides) => {
                let [whole, part] = self.both(sides)?;
                self.starts_with(&whole, &part)
            }
            ExprNode::Matches(text, search) => {
                let text = self.operand(text)?;
                self.matches(&text, search)
            }
            ExprNode::Exists(index) => Ok(!matches!(self.path(*index)?, Operand::Null)),
            ExprNode::Literal(_) | ExprNode::Path(_) | ExprNode::List(_) | ExprNode::Lower(_) => {
                Ok(match self.operand(node)? {
                    Operand::Null => false,
                    Operand::Bool(flag) => flag,
                    Operand::Number(number) => truthy(&Value::Number(number)),
                    Operand::Text(text) => !text.is_empty(),
                    Operand::Whole(_) | Operand::List(_) => true,
                })
            }
        }
    }

    fn both(&mut self, sides: &'a [ExprNode; 2]) -> Result<[Operand<'a>; 2], EvalError> {
        Ok([self.operand(&sides[0])?, self.operand(&sides[1])?])
    }

    fn path(&mut self, index: usize) -> Result<Operand<'a>, EvalError> {
        Ok(match locate(&self.references[index].path, self.scope) {
            Located::Value(value) => value.into(),
            Located::Text(text) => Operand::Text(Cow::Borrowed(text)),
            Located::Length { count, bytes } => {
                self.spend_text(bytes)?;
                Operand::Number(count.into())
            }
            Located::Skipped | Located::Missing => Operand::Null,
        })
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Operand<'_>,
        right: &Operand<'_>,
    ) -> Result<bool, EvalError> {
        let ordering = match comparison {
            Comparison::Equal => return self.equal(left, right),
            Comparison::Unequal => return Ok(!self.equal(left, right)?),
            _ => self.order(left, right)?,
        };
        Ok(match comparison {
            Comparison::Greater => ordering == Some(Ordering::Greater),
            Comparison::Less => ordering == Some(Ordering::Less),
            Comparison::AtLeast => ordering.is_some_and(Ordering::is_ge),
            _ => ordering.is_some_and(Ordering::is_le),
        })
    }

    /// Numbers have an order, and texts have one; a numeric text compared with a number is
    /// read as a number. Other values have no order.
    fn order(
        &mut self,
        left: &Operand<'_>,
        right: &Operand<'_>,
    ) -> Result<Option<Ordering>, EvalError> {
        Ok(match (left, right) {
            (Operand::Number(left), Operand::Number(right)) => Some(compare_numbers(left, right)),
            (Operand::Text(left), Operand::Text(right)) => {
                self.spend_text(left.len().min(right.len()))?;
                Some(left.cmp(right))
            }
            (Operand::Number(left), Operand::Text(right)) => {
                self.number(right)?.map(|right| compare_numbers(left, &right))
            }
            (Operand::Text(left), Operand::Number(right)) => {
                self.number(left)?.map(|left| compare_numbers(&left, right))
            }
            _ => None,
        })
    }

    fn equal(&mut self, left: &Operand<'_>, right: &Operand<'_>) -> Result<bool, EvalError> {
        Ok(match (left, right) {
            (Operand::Null, Operand::Null) => true,
            (Operand::Bool(left), Operand::Bool(right)) => left == right,
            (Operand::Text(left), Operand::Text(right)) => {
                // Texts of different lengths differ, without reading them.
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.spend_text(left.len())?;
                left == right
            }
            (Operand::Number(_) | Operand::Text(_), Operand::Number(_) | Operand::Text(_)) => {
                self.order(left, right)? == Some(Ordering::Equal)
            }
            (Operand::Whole(left), Operand::Whole(right)) => self.same(left, right)?,
            (Operand::List(left), Operand::List(right)) => {
                let left = self.copy_list(left)?;
                let right = self.copy_list(right)?;
                self.same(&left, &right)?
            }
            (Operand::List(list), Operand::Whole(whole))
            | (Operand::Whole(whole), Operand::List(list)) => {
                let list = self.copy_list(list)?;
                self.same(&list, whole)?
            }
            _ => false,
        })
    }

    /// Deep equality, charged by the size of the left side: the right side is read no
    /// further than the left one.
    fn same(&mut self, left: &Value, right: &Value) -> Result<bool, EvalError> {
        let alike = match (left, right) {
            (Value::Array(left), Value::Array(right)) => left.len() == right.len(),
            (Value::Object(left), Value::Object(right)) => left.len() == right.len(),
            _ => false,
        };
        if !alike {
            return Ok(false);
        }
        self.weigh(left)?;
        Ok(same(left, right))
    }

    /// Spends a unit for every value in `value`, and for the text in it.
    fn weigh(&mut self, value: &Value) -> Result<(), EvalError> {
        self.spend(1)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => self.spend_text(text.len()),
            Value::Array(list) => list.iter().try_for_each(|item| self.weigh(item)),
            Value::Object(map) => map.iter().try_for_each(|(key, item)| {
                self.spend_text(key.len())?;
                self.weigh(item)
            }),
        }
    }

    fn number(&mut self, text: &str) -> Result<Option<Number>, EvalError> {
        self.spend_text(text.len())?;
        Ok(numeric(text))
    }

    fn is_in(&mut self, answer: &Operand<'_>, list: &Operand<'_>) -> Result<bool, EvalError> {
        if self.has_item(list, answer)? {
            return Ok(true);
        }
        let (Membership::Tolerant, Operand::Text(answer)) = (self.membership, answer) else {
            return Ok(false);
        };
        // Trimmed once, so that leading blanks are not read again for every token.
        let answer = answer.trim_start();
        let begins_with = |token: &str| {
            self.spend_text(token.len())?;
            Ok(!token.is_empty() && is_token(answer, token))
        };
        match list {
            Operand::Whole(Value::Array(items)) => {
                find(items.iter().filter_map(Value::as_str), begins_with)
            }
            Operand::List(items) => {
                let texts = items.iter().filter_map(|item| match item {
                    Operand::Text(token) => Some(token.as_ref()),
                    _ => None,
                });
                find(texts, begins_with)
            }
            _ => Ok(false),
        }
    }

    /// Whether `list` is a list with an item that equals `wanted`.
    fn has_item(&mut self, list: &Operand<'_>, wanted: &Operand<'_>) -> Result<bool, EvalError> {
        match list {
            Operand::Whole(Value::Array(items)) => find(items, |item| {
                self.spend(1)?;
                self.equal(&item.into(), wanted)
            }),
            Operand::List(items) => find(items, |item| {
                self.spend(1)?;
                self.equal(item, wanted)
            }),
            _ => Ok(false),
        }
    }

    fn contains(&mut self, whole: &Operand<'_>, part: &Operand<'_>) -> Result<bool, EvalError> {
        match (whole, part) {
            (Operand::Text(whole), Operand::Text(part)) => {
                self.spend_text(whole.len().saturating_add(part.len()))?;
                Ok(whole.contains(part.as_ref()))
            }
            (Operand::Whole(Value::Object(map)), Operand::Text(key)) => {
                self.spend_text(key.len())?;
                Ok(map.contains_key(key.as_ref()))
            }
            _ => self.has_item(whole, part),
        }
    }

    fn starts_with(&mut self, whole: &Operand<'_>, part: &Operand<'_>) -> Result<bool, EvalError> {
        let (Operand::Text(whole), Operand::Text(part)) = (whole, part) else {
            return Ok(false);
        };
        self.spend_text(part.len().min(whole.len()))?;
        Ok(whole.starts_with(part.as_ref()))
    }

    fn matches(&mut self, text: &Operand<'_>, search: &Search) -> Result<bool, EvalError> {
        let Operand::Text(text) = text else {
            return Ok(false);
        };
        // The simplest pattern is as fast as a text search; others cost more.
        let bytes = text.len().saturating_mul(PLAIN_EFFORT + search.effort) / PLAIN_EFFORT;
        self.spend_text(bytes)?;
        Ok(search.pattern.is_match(text))
    }

    fn copy_list(&mut self, items: &[Operand<'_>]) -> Result<Value, EvalError> {
        let values = items.iter().map(|item| self.copy(item));
        Ok(Value::Array(values.collect::<Result<_, _>>()?))
    }

    /// A charged copy: a list may contain the same large value many times.
    fn copy(&mut self, operand: &Operand<'_>) -> Result<Value, EvalError> {
        self.spend(1)?;
        Ok(match operand {
            Operand::Null => Value::Null,
            Operand::Bool(flag) => (*flag).into(),
            Operand::Number(number) => Value::Number(number.clone()),
            Operand::Text(text) => {
                self.spend_text(text.len())?;
                text.as_ref().into()
            }
            Operand::Whole(value) => {
                self.weigh(value)?;
                (*value).clone()
            }
            Operand::List(items) => return self.copy_list(items),
        })
    }

    fn into_value(mut self, operand: Operand<'_>) -> Result<Value, EvalError> {
        match operand {
            Operand::Text(text) => Ok(Value::String(text.into_owned())),
            Operand::Whole(value) => Ok(value.clone()),
            other => self.copy(&other),
        }
    }
}

fn find<T>(
    items: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, EvalError>,
) -> Result<bool, EvalError> {
    for item in items {
        if holds(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
