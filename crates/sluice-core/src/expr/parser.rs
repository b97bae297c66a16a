//! Parses tokens into a tree by precedence climbing.

use super::lexer::{Lexeme, Token, lex};
use super::{Comparison, ExprNode, functions};
use crate::limits::EXPRESSION_DEPTH_MAX;
use crate::path::{Path, Reference};
use crate::span::{Fault, Span};
use serde_json::Value;
use std::ops::Range;

/// The tree of `source` and its paths, in source order.
pub(super) fn parse(source: &str) -> Result<(ExprNode, Vec<Reference>), Fault> {
    let mut parser =
        Parser { source, lexemes: lex(source)?, at: 0, depth: 0, references: Vec::new() };
    if *parser.peek() == Token::End {
        return Err(Fault::new(0..source.len(), "expression is empty"));
    }
    let root = parser.any()?;
    if *parser.peek() != Token::End {
        return Err(parser.unexpected("an operator or the end"));
    }
    Ok((root, parser.references))
}

pub(super) struct Parser<'a> {
    pub(super) source: &'a str,
    lexemes: Vec<Lexeme>,
    at: usize,
    depth: usize,
    references: Vec<Reference>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.lexemes[self.at].token
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.lexemes[self.at].range.clone()
    }

    /// Returns the next token. The end token repeats, so there is always one more.
    fn next(&mut self) -> Token {
        let token = self.lexemes[self.at].token.clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn accept(&mut self, token: &Token) -> Option<Range<usize>> {
        let range = self.range();
        (self.peek() == token).then(|| {
            self.next();
            range
        })
    }

    /// Runs `inner` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == EXPRESSION_DEPTH_MAX {
            return Err(Fault::new(
                self.range(),
                format!("expression is nested over {EXPRESSION_DEPTH_MAX} deep"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn any(&mut self) -> Result<ExprNode, Fault> {
        let first = self.all()?;
        if *self.peek() != Token::Or {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.accept(&Token::Or).is_some() {
            nodes.push(self.all()?);
        }
        Ok(ExprNode::Any(nodes))
    }

    fn all(&mut self) -> Result<ExprNode, Fault> {
        let first = self.negated()?;
        if *self.peek() != Token::And {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.accept(&Token::And).is_some() {
            nodes.push(self.negated()?);
        }
        Ok(ExprNode::All(nodes))
    }

    fn negated(&mut self) -> Result<ExprNode, Fault> {
        if self.accept(&Token::Not).is_some() {
            let inner = self.nested(Parser::negated)?;
            return Ok(ExprNode::Not(Box::new(inner)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<ExprNode, Fault> {
        let left = self.operand()?;
        let Some(operator) = self.operator()? else {
            return Ok(left);
        };
        let right_range = self.range();
        let right = self.operand()?;
        let node = match operator {
            Operator::Compare(comparison) => ExprNode::Compare(comparison, Box::new([left, right])),
            Operator::In | Operator::NotIn => {
                check_list(&right, right_range)?;
                let node = ExprNode::In(Box::new([left, right]));
                match operator {
                    Operator::NotIn => ExprNode::Not(Box::new(node)),
                    _ => node,
                }
            }
        };
        let after = self.range();
        if self.operator()?.is_some() {
            return Err(Fault::new(after, "comparisons do not chain")
                .with_hint("write `a < b and b < c`, or use parentheses"));
        }
        Ok(node)
    }

    fn operator(&mut self) -> Result<Option<Operator>, Fault> {
        Ok(Some(match self.peek() {
            Token::Compare(comparison) => {
                let comparison = *comparison;
                self.next();
                Operator::Compare(comparison)
            }
            Token::In => {
                self.next();
                Operator::In
            }
            Token::Not => {
                self.next();
                if self.accept(&Token::In).is_none() {
                    return Err(self.unexpected("`in` after `not`"));
                }
                Operator::NotIn
            }
            _ => return Ok(None),
        }))
    }

    fn operand(&mut self) -> Result<ExprNode, Fault> {
        let range = self.range();
        match self.peek() {
            Token::Path(..) => return self.path_or_call(),
            Token::Open => {
                self.next();
                let inner = self.nested(Parser::any)?;
                self.close(&range)?;
                return Ok(inner);
            }
            Token::ListOpen => {
                self.next();
                let items = self.nested(|parser| parser.items(&Token::ListClose, &range))?;
                return Ok(list(items));
            }
            Token::Text(_) | Token::Number(_) | Token::True | Token::False | Token::Null => {}
            _ => return Err(self.unexpected("a value")),
        }
        Ok(ExprNode::Literal(match self.next() {
            Token::Text(text) => text.into(),
            Token::Number(number) => Value::Number(number),
            Token::True => true.into(),
            Token::False => false.into(),
            _ => Value::Null,
        }))
    }

    fn path_or_call(&mut self) -> Result<ExprNode, Fault> {
        let whole = self.range();
        let Token::Path(path, range) = self.next() else {
            return Err(self.unexpected("a path"));
        };
        if *self.peek() != Token::Open {
            return Ok(self.reference(path, range));
        }
        let open = self.range();
        self.next();
        functions::check_name(&path, whole.clone())?;
        let arguments = self.nested(|parser| parser.items(&Token::Close, &open))?;
        let call = whole.start..self.lexemes[self.at - 1].range.end;
        functions::call(path.as_str(), arguments, call)
    }

    fn reference(&mut self, path: Path, range: Range<usize>) -> ExprNode {
        self.references.push(Reference { path, span: Span::new(range.start, range.end) });
        ExprNode::Path(self.references.len() - 1)
    }

    /// Expressions between commas, up to `close`; a trailing comma is allowed.
    fn items(
        &mut self,
        close: &Token,
        open: &Range<usize>,
    ) -> Result<Vec<(ExprNode, Range<usize>)>, Fault> {
        let mut items = Vec::new();
        loop {
            if self.accept(close).is_some() {
                return Ok(items);
            }
            let start = self.range().start;
            let item = self.any()?;
            let end = self.lexemes[self.at - 1].range.end;
            items.push((item, start..end));
            if self.accept(&Token::Comma).is_none() && self.peek() != close {
                return Err(self.unclosed(open, "`,`"));
            }
        }
    }

    fn close(&mut self, open: &Range<usize>) -> Result<(), Fault> {
        match self.accept(&Token::Close) {
            Some(_) => Ok(()),
            None => Err(self.unclosed(open, "an operator")),
        }
    }

    fn unclosed(&self, open: &Range<usize>, expected: &str) -> Fault {
        let opening = &self.source[open.clone()];
        if *self.peek() == Token::End {
            return Fault::new(open.clone(), format!("unclosed `{opening}`"));
        }
        let closing = if opening == "[" { "]" } else { ")" };
        self.unexpected(&format!("{expected} or `{closing}`"))
    }

    /// The error for an unexpected token.
    fn unexpected(&self, expected: &str) -> Fault {
        let range = self.range();
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", &self.source[range.clone()]),
        };
        let fault = Fault::new(range.clone(), format!("expected {expected}, found {found}"));
        match (self.peek(), &self.source[range]) {
            (Token::Not, _) => fault.with_hint("put the negation in parentheses"),
            (Token::Number(_), text) if text.starts_with('-') => {
                fault.with_hint("expressions have no arithmetic")
            }
            (_, "AND" | "OR" | "NOT" | "IN") => fault.with_hint("operators are in lower case"),
            (_, "is") => fault.with_hint("use `==`"),
            _ => fault,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Compare(Comparison),
    In,
    NotIn,
}

/// A list of literals becomes a literal, so that evaluation can borrow it.
fn list(items: Vec<(ExprNode, Range<usize>)>) -> ExprNode {
    let constant = items.iter().all(|(item, _)| matches!(item, ExprNode::Literal(_)));
    if !constant {
        return ExprNode::List(items.into_iter().map(|(item, _)| item).collect());
    }
    let values = items.into_iter().filter_map(|(item, _)| match item {
        ExprNode::Literal(value) => Some(value),
        _ => None,
    });
    ExprNode::Literal(Value::Array(values.collect()))
}

fn check_list(right: &ExprNode, range: Range<usize>) -> Result<(), Fault> {
    match right {
        ExprNode::Literal(Value::Array(_)) => Ok(()),
        ExprNode::Literal(other) => Err(Fault::new(
            range,
            format!("`in` needs a list on its right, found {}", crate::value::type_name(other)),
        )
        .with_hint("to search a text use `contains(text, part)`")),
        _ => Ok(()),
    }
}
