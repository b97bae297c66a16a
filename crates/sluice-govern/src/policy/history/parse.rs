//! Parses a temporal condition.
//!
//! INVARIANT: the parser never backtracks over a nested condition, and nests no deeper
//! than a limit, so its time is linear and its stack is bounded.

use super::formula::{
    Aggregate, Comparison, EventPattern, Formula, Operand, Since, Span, Value, Variable,
};
use super::lexer::{SyntaxError, Token, TokenKind, tokens};
use crate::limits::{HISTORY_DEPTH_MAX, HISTORY_TOKENS_MAX};
use std::sync::Arc;

/// Words that begin an aggregate.
const AGGREGATES: [&str; 5] =
    ["count", "sum", "count_within", "sum_within", "count_distinct_within"];

/// Parses the text between the braces of a `temporal` clause.
pub(crate) fn parse(text: &str) -> Result<Formula, SyntaxError> {
    let tokens = tokens(text)?;
    if tokens.len() > HISTORY_TOKENS_MAX {
        return Err((0, format!("the condition has more than {HISTORY_TOKENS_MAX} tokens")));
    }
    let end = text.len();
    let mut parser = Parser { tokens, at: 0, end, depth: 0, scope: Vec::new(), variables: 0 };
    let formula = parser.condition()?;
    match parser.peek() {
        None => Ok(formula),
        Some(_) => Err(parser.fault("expected `&&` or the end of the condition")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// Length of the text.
    end: usize,
    depth: usize,
    /// Names of the variables in scope, innermost last.
    scope: Vec<(Arc<str>, Variable)>,
    variables: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl Parser {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn is_sign(&self, offset: usize, sign: &str) -> bool {
        let token = self.tokens.get(self.at + offset);
        matches!(token, Some(Token { kind: TokenKind::Sign(found), .. }) if *found == sign)
    }

    fn is_word(&self, offset: usize, word: &str) -> bool {
        let token = self.tokens.get(self.at + offset);
        matches!(token, Some(Token { kind: TokenKind::Word(found), .. }) if **found == *word)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_sign(0, sign);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        self.at += usize::from(found);
        found
    }

    fn fault(&self, message: impl Into<String>) -> SyntaxError {
        let at = self.tokens.get(self.at).map_or(self.end, |token| token.at);
        (at, message.into())
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.fault(format!("expected `{sign}`"))) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.fault(format!("expected `{word}`"))) }
    }

    fn word(&mut self, what: &str) -> Parsed<Arc<str>> {
        match self.peek() {
            Some(TokenKind::Word(word)) => {
                let word = Arc::clone(word);
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.fault(format!("expected {what}"))),
        }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= HISTORY_DEPTH_MAX {
            return Err(self.fault(format!("nested more than {HISTORY_DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// `a && b`, with `since` binding tighter.
    fn condition(&mut self) -> Parsed<Formula> {
        self.nested(|parser| {
            let mut parts = vec![parser.since()?];
            while parser.eat("&&") {
                parts.push(parser.since()?);
            }
            if parser.is_sign(0, "||") {
                let hint = "there is no `||` between conditions about history: write two policies";
                return Err(parser.fault(hint));
            }
            let only = if parts.len() == 1 { parts.pop() } else { None };
            Ok(only.unwrap_or(Formula::And(parts)))
        })
    }

    fn since(&mut self) -> Parsed<Formula> {
        let left = self.negated()?;
        if !self.eat_word("since") {
            return Ok(left);
        }
        let window = self.within()?;
        let right = self.atom()?;
        Ok(Formula::Since(Box::new(Since { left, window, right })))
    }

    fn negated(&mut self) -> Parsed<Formula> {
        let mut negations = 0;
        while self.eat("!") {
            negations += 1;
        }
        let inner = self.conjunct()?;
        Ok(if negations % 2 == 0 { inner } else { Formula::Not(Box::new(inner)) })
    }

    fn conjunct(&mut self) -> Parsed<Formula> {
        if self.begins_aggregate() {
            return self.comparison();
        }
        if self.is_sign(0, "(") {
            return self.parenthesized();
        }
        if self.eat_word("formerly") {
            let window = self.within()?;
            return Ok(Formula::Formerly(window, Box::new(self.atom()?)));
        }
        if self.eat_word("previous") {
            let window = self.within()?;
            return Ok(Formula::Previous(window, Box::new(self.atom()?)));
        }
        if self.is_word(0, "exists") {
            return self.exists();
        }
        if self.is_word(0, "bind") && self.is_sign(1, "(") {
            return self.bind();
        }
        self.atom()
    }

    /// Whether an aggregate comes next, behind any number of brackets.
    fn begins_aggregate(&self) -> bool {
        let mut offset = 0;
        while self.is_sign(offset, "(") {
            offset += 1;
        }
        self.is_aggregate(offset) && (offset == 0 || self.closes_before_comparison(offset))
    }

    /// Whether the token is the word of an aggregate, and not a variable of that name.
    fn is_aggregate(&self, offset: usize) -> bool {
        let begins = |word: &&str| match *word {
            "count" => self.is_word(offset + 1, "for"),
            "sum" => self.is_word(offset + 2, "for"),
            _ => self.is_sign(offset + 1, "("),
        };
        AGGREGATES.iter().any(|word| self.is_word(offset, word) && begins(word))
    }

    fn is_comparison(&self, offset: usize) -> bool {
        ["<=", ">=", "==", "!=", "<", ">"].iter().any(|sign| self.is_sign(offset, sign))
    }

    /// Whether `(`, which is followed by an aggregate, encloses an operand and not a
    /// condition: a comparison follows its bracket.
    fn closes_before_comparison(&self, brackets: usize) -> bool {
        let mut depth = 0_usize;
        for offset in 0.. {
            if self.at + offset >= self.tokens.len() {
                return false;
            }
            if self.is_sign(offset, "(") {
                depth += 1;
            } else if self.is_sign(offset, ")") {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return self.is_comparison(offset + 1);
                }
            }
            if offset > brackets && depth == 0 {
                return false;
            }
        }
        false
    }

    fn parenthesized(&mut self) -> Parsed<Formula> {
        self.expect("(")?;
        let inner = self.condition()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn exists(&mut self) -> Parsed<Formula> {
        self.expect_word("exists")?;
        let (name, variable) = self.binder()?;
        self.expect(".")?;
        self.scope.push((name, variable));
        let body = self.condition();
        self.scope.pop();
        Ok(Formula::Exists(variable, Box::new(body?)))
    }

    /// `bind(n, aggregate, condition)`.
    fn bind(&mut self) -> Parsed<Formula> {
        self.at += 2;
        let name = self.word("the name of a variable")?;
        self.expect(",")?;
        let aggregate = self.operand()?;
        self.expect(",")?;
        let variable = self.fresh();
        self.scope.push((name, variable));
        let body = self.condition();
        self.scope.pop();
        self.expect(")")?;
        let equal = Formula::Compare(Comparison::Equal, aggregate, Operand::Variable(variable));
        Ok(Formula::Exists(variable, Box::new(Formula::And(vec![equal, body?]))))
    }

    /// What a temporal operator is applied to.
    fn atom(&mut self) -> Parsed<Formula> {
        if self.begins_aggregate() {
            return self.comparison();
        }
        if self.is_sign(0, "(") {
            return self.parenthesized();
        }
        if self.is_word(0, "tp") && self.is_sign(1, "(") {
            self.at += 2;
            let name = self.word("the name of a variable")?;
            let variable = self.variable(&name)?;
            self.expect(")")?;
            return Ok(Formula::Timepoint(variable));
        }
        if self.is_event() {
            return self.event();
        }
        self.comparison()
    }

    /// Whether a name with a string and a kind comes next: `Action::"x"::response`.
    fn is_event(&self) -> bool {
        let mut offset = 0;
        while let Some(Token { kind: TokenKind::Word(_), .. }) = self.tokens.get(self.at + offset) {
            if !self.is_sign(offset + 1, "::") {
                return false;
            }
            offset += 2;
        }
        let text = self.tokens.get(self.at + offset);
        offset > 0
            && matches!(text, Some(Token { kind: TokenKind::Text(_), .. }))
            && self.is_sign(offset + 1, "::")
    }

    fn event(&mut self) -> Parsed<Formula> {
        let action = self.entity()?;
        self.expect("::")?;
        let kind = self.word("the kind of the event")?;
        let mut pattern = EventPattern { action, kind, fields: Vec::new() };
        self.expect("{")?;
        self.fields(&mut pattern)?;
        // Further conditions may be appended.
        while self.eat("{") {
            self.fields(&mut pattern)?;
        }
        Ok(Formula::Event(pattern))
    }

    fn fields(&mut self, pattern: &mut EventPattern) -> Parsed<()> {
        while !self.eat("}") {
            let path = self.path()?;
            self.expect(":")?;
            let operand = self.operand()?;
            if matches!(operand, Operand::Count(_) | Operand::Sum(..)) {
                return Err(self.fault("a count or a sum can only be compared"));
            }
            pattern.fields.push((path, operand));
            if !self.is_sign(0, "}") {
                self.expect(",")?;
            }
        }
        Ok(())
    }

    fn path(&mut self) -> Parsed<Arc<str>> {
        let mut path = self.word("the name of a field")?.to_string();
        while self.eat(".") {
            path.push('.');
            path.push_str(&self.word("the name of a field")?);
        }
        Ok(path.into())
    }

    fn comparison(&mut self) -> Parsed<Formula> {
        let left = self.operand()?;
        let op = match self.peek() {
            Some(TokenKind::Sign("<")) => Comparison::Less,
            Some(TokenKind::Sign("<=")) => Comparison::AtMost,
            Some(TokenKind::Sign(">")) => Comparison::More,
            Some(TokenKind::Sign(">=")) => Comparison::AtLeast,
            Some(TokenKind::Sign("==")) => Comparison::Equal,
            Some(TokenKind::Sign("!=")) => Comparison::Unequal,
            Some(TokenKind::Sign("+" | "-" | "*")) => {
                return Err(self.fault("conditions about history do not calculate"));
            }
            _ => return Err(self.fault("expected a comparison, such as `>= 3`")),
        };
        self.at += 1;
        let right = self.operand()?;
        Ok(Formula::Compare(op, left, right))
    }

    fn operand(&mut self) -> Parsed<Operand> {
        self.nested(Parser::plain_operand)
    }

    fn plain_operand(&mut self) -> Parsed<Operand> {
        let negative = self.eat("-");
        match self.peek().cloned() {
            Some(TokenKind::Number(number, unit)) if unit.is_empty() => {
                self.at += 1;
                Ok(Operand::Value(Value::Number(if negative { -number } else { number })))
            }
            _ if negative => Err(self.fault("expected a number")),
            Some(TokenKind::Text(text)) => {
                self.at += 1;
                Ok(Operand::Value(Value::Text(text)))
            }
            Some(TokenKind::Sign("*")) => {
                self.at += 1;
                Ok(Operand::Any)
            }
            Some(TokenKind::Sign("(")) => {
                self.at += 1;
                let inner = self.operand()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(TokenKind::Sign("[")) => Err(self.fault("lists cannot be compared")),
            Some(TokenKind::Word(word)) => self.named(&word),
            _ => Err(self.fault("expected a value")),
        }
    }

    fn named(&mut self, word: &Arc<str>) -> Parsed<Operand> {
        if self.is_aggregate(0) {
            return self.aggregate();
        }
        if self.is_sign(1, "::") {
            return Ok(Operand::Value(Value::Text(self.entity()?)));
        }
        match &**word {
            "true" | "false" => {
                self.at += 1;
                Ok(Operand::Value(Value::Bool(&**word == "true")))
            }
            "_" => {
                self.at += 1;
                Ok(Operand::Any)
            }
            "decimal" if self.is_sign(1, "(") => self.decimal(),
            "context" | "principal" | "resource" => Ok(Operand::Request(self.path()?)),
            name => {
                let variable = self.variable(name)?;
                self.at += 1;
                Ok(Operand::Variable(variable))
            }
        }
    }

    fn decimal(&mut self) -> Parsed<Operand> {
        self.at += 2;
        let Some(TokenKind::Text(text)) = self.peek().cloned() else {
            return Err(self.fault("expected a decimal number in quotes"));
        };
        let (sign, digits) = text.strip_prefix('-').map_or((1, &*text), |digits| (-1, digits));
        let parts = digits.split_once('.');
        let number = parts.and_then(|(whole, digits)| super::lexer::decimal(whole, digits));
        let Some(number) = number else {
            return Err(self.fault(format!("{text:?} is not a decimal number: expected \"1.5\"")));
        };
        self.at += 1;
        self.expect(")")?;
        Ok(Operand::Value(Value::Number(sign * number)))
    }

    /// `Namespace::Type::"id"`.
    fn entity(&mut self) -> Parsed<Arc<str>> {
        let mut name = self.word("the name of a type")?.to_string();
        loop {
            self.expect("::")?;
            name.push_str("::");
            match self.peek().cloned() {
                Some(TokenKind::Text(id)) => {
                    self.at += 1;
                    name.push_str(&format!("{id:?}"));
                    return Ok(name.into());
                }
                _ => name.push_str(&self.word("a name or a string")?),
            }
        }
    }

    fn aggregate(&mut self) -> Parsed<Operand> {
        let word = self.word("an aggregate")?;
        match &*word {
            "count" => {
                let (depth, over) = self.over()?;
                let body = self.body(depth)?;
                Ok(Operand::Count(Box::new(Aggregate { over, body })))
            }
            "sum" => {
                let of = self.word("the variable to sum")?;
                let (depth, over) = self.over()?;
                let of = self.variable(&of)?;
                let body = self.body(depth)?;
                Ok(Operand::Sum(of, Box::new(Aggregate { over, body })))
            }
            _ => self.aggregate_within(&word),
        }
    }

    /// The body of an aggregate, after its binders.
    fn body(&mut self, depth: usize) -> Parsed<Formula> {
        self.expect_word("where")?;
        let body = self.condition();
        self.scope.truncate(depth);
        body
    }

    /// `count_within(1d, condition)`, `sum_within(a, 1d, condition)` and
    /// `count_distinct_within(k, 1d, condition)`.
    fn aggregate_within(&mut self, word: &str) -> Parsed<Operand> {
        self.expect("(")?;
        let depth = self.scope.len();
        let mut over = Vec::new();
        if word != "count_within" {
            let name = self.word("the name of a variable")?;
            over.push(self.fresh());
            self.scope.push((name, over[0]));
            self.expect(",")?;
        }
        let window = self.span()?;
        self.expect(",")?;
        let body = self.condition();
        self.scope.truncate(depth);
        let body = body?;
        self.expect(")")?;
        let of = over.first().copied();
        let body = if word == "count_distinct_within" {
            body
        } else {
            over.push(self.fresh());
            Formula::And(vec![body, Formula::Timepoint(over[over.len() - 1])])
        };
        let body = Formula::Formerly(window, Box::new(body));
        let aggregate = Box::new(Aggregate { over, body });
        Ok(match of {
            Some(of) if word == "sum_within" => Operand::Sum(of, aggregate),
            _ => Operand::Count(aggregate),
        })
    }

    /// `for (a: Long), (t: Timepoint).`; the variables are in scope until the caller
    /// restores the returned depth.
    fn over(&mut self) -> Parsed<(usize, Vec<Variable>)> {
        self.expect_word("for")?;
        let depth = self.scope.len();
        let mut over = Vec::new();
        loop {
            let (name, variable) = self.binder()?;
            self.scope.push((name, variable));
            over.push(variable);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(".")?;
        Ok((depth, over))
    }

    /// `(a: Long)`.
    fn binder(&mut self) -> Parsed<(Arc<str>, Variable)> {
        self.expect("(")?;
        let name = self.word("the name of a variable")?;
        self.expect(":")?;
        self.word("the type of the variable")?;
        while self.eat("::") {
            self.word("the type of the variable")?;
        }
        self.expect(")")?;
        Ok((name, self.fresh()))
    }

    fn fresh(&mut self) -> Variable {
        self.variables += 1;
        self.variables - 1
    }

    fn variable(&self, name: &str) -> Parsed<Variable> {
        let known = self.scope.iter().rev().find(|(known, _)| **known == *name);
        known.map(|(_, variable)| *variable).ok_or_else(|| {
            self.fault(format!("unknown variable `{name}`: declare it with exists ({name}: Long)."))
        })
    }

    fn within(&mut self) -> Parsed<Span> {
        if !self.eat_word("within") {
            return Err(self.fault("a window is missing: add `within 1h` before the condition"));
        }
        self.span()
    }

    fn span(&mut self) -> Parsed<Span> {
        let hint = "expected a window such as 30s, 10m, 1h or 7d";
        let Some(TokenKind::Number(number, unit)) = self.peek().cloned() else {
            return Err(self.fault(hint));
        };
        let unit = match (&*unit, self.tokens.get(self.at + 1).map(|token| &token.kind)) {
            // The unit may stand apart.
            ("", Some(TokenKind::Word(word))) => {
                let word = Arc::clone(word);
                self.at += 1;
                word
            }
            _ => unit,
        };
        let unit_ms = match &*unit {
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(self.fault(hint)),
        };
        let count = number / super::formula::UNIT;
        let ms = u64::try_from(count).ok().and_then(|count| count.checked_mul(unit_ms));
        let Some(ms) = ms.filter(|_| number % super::formula::UNIT == 0) else {
            return Err(self.fault(hint));
        };
        self.at += 1;
        Ok(Span { ms })
    }
}
