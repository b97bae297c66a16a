//! Expressions: conditions, success criteria, edge conditions, rules.
//!
//! A small total language with its own parser: no host code, no loops, no calls but five
//! functions. [`Expr::parse`] finds every error, with one exception: an evaluation may run out
//! of fuel.
//!
//! Precedence from lowest to highest: `or` `||`, `and` `&&`, `not` `!`, then one of `== != > >=
//! < <= in`, `not in`. Comparisons do not chain. Operands are literals, lists, paths (also as
//! `${path}`), calls and parentheses.
//!
//! INVARIANT: evaluation copies no value that it only reads, and fuel bounds its time whatever
//! the size of the values.

mod effort;
mod eval;
mod functions;
mod lexer;
mod parser;

use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_FUEL};
use crate::path::Reference;
use crate::pattern::Pattern;
use crate::scope::Scope;
use crate::span::Fault;
use crate::value::Membership;
use crate::wire;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A parsed expression. Two expressions are equal if their sources are. Clones share the parsed
/// tree.
#[derive(Debug, Clone)]
pub struct Expr(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    source: String,
    root: ExprNode,
    references: Vec<Reference>,
}

/// Why an evaluation failed. The language is otherwise total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The values are too large to be evaluated within the fuel.
    #[error("expression took more than {EXPRESSION_FUEL} units of work")]
    OutOfFuel,
}

/// One part of an expression. The expression stores paths in a list, so that the checker and
/// the evaluator see the same ones.
///
/// Chains of `and` and `or` are flat: the tree is never deeper than the parser allows, which
/// bounds the stack of every recursive function over it.
#[derive(Debug, Clone)]
enum ExprNode {
    Literal(Value),
    Path(usize),
    List(Vec<ExprNode>),
    Any(Vec<ExprNode>),
    All(Vec<ExprNode>),
    Not(Box<ExprNode>),
    Compare(Comparison, Box<[ExprNode; 2]>),
    In(Box<[ExprNode; 2]>),
    Contains(Box<[ExprNode; 2]>),
    StartsWith(Box<[ExprNode; 2]>),
    Matches(Box<ExprNode>, Box<Search>),
    Exists(usize),
    Lower(Box<ExprNode>),
}

/// A pattern and the effort of matching it.
#[derive(Debug, Clone)]
struct Search {
    pattern: Pattern,
    effort: usize,
}

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Greater,
    AtLeast,
    Less,
    AtMost,
}

/// How an expression requires that a value is not true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// False, null or missing: `not a`, `a != true`.
    NotTrue,
    /// Exactly false: `a == false`.
    False,
}

impl Expr {
    /// Parses an expression, or returns the first error.
    pub fn parse(source: &str) -> Result<Expr, Fault> {
        if source.len() > EXPRESSION_BYTES_MAX {
            return Err(Fault::new(
                0..source.len(),
                format!("expression is over {EXPRESSION_BYTES_MAX} bytes"),
            ));
        }
        let (root, references) = parser::parse(source)?;
        Ok(Expr(Arc::new(Parsed { source: source.to_owned(), root, references })))
    }

    /// The source text of the expression.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Every path in the expression, in source order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.references.iter()
    }

    /// The paths that must not be true for the expression to hold, alone or joined by
    /// `and`, and how the expression requires it.
    pub(crate) fn denials(&self) -> Vec<(&Reference, Denial)> {
        let mut found = Vec::new();
        self.deny(&self.0.root, &mut found);
        found
    }

    fn deny<'e>(&'e self, node: &'e ExprNode, found: &mut Vec<(&'e Reference, Denial)>) {
        let path = |at: &usize| &self.0.references[*at];
        match node {
            ExprNode::All(parts) => parts.iter().for_each(|part| self.deny(part, found)),
            ExprNode::Not(part) => {
                if let ExprNode::Path(at) = &**part {
                    found.push((path(at), Denial::NotTrue));
                }
            }
            ExprNode::Compare(comparison, sides) => {
                let ((ExprNode::Path(at), ExprNode::Literal(Value::Bool(value)))
                | (ExprNode::Literal(Value::Bool(value)), ExprNode::Path(at))) =
                    (&sides[0], &sides[1])
                else {
                    return;
                };
                match (comparison, value) {
                    (Comparison::Equal, false) => found.push((path(at), Denial::False)),
                    (Comparison::Unequal, true) => found.push((path(at), Denial::NotTrue)),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Evaluates the expression. `membership` sets how strict `in` is.
    pub fn eval(&self, scope: &dyn Scope, membership: Membership) -> Result<Value, EvalError> {
        eval::value(self, scope, membership)
    }

    /// Whether the value of the expression is truthy.
    pub fn holds(&self, scope: &dyn Scope, membership: Membership) -> Result<bool, EvalError> {
        eval::holds(self, scope, membership)
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Expr {}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.source)
    }
}

impl serde::Serialize for Expr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.source)
    }
}

impl<'de> serde::Deserialize<'de> for Expr {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Expr, D::Error> {
        wire::parsed(deserializer, "an expression", Expr::parse)
    }
}

#[cfg(test)]
mod tests;
