//! The tree of a temporal condition.
//!
//! Its `Display` is the canonical text: two conditions with the same text have the same
//! meaning, so facts are stored under it.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// A value of an event, of the current request, or of an operand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number, in ten-thousandths.
    Number(i128),
    /// A text, or the id of an entity.
    Text(Arc<str>),
    /// True or false.
    Bool(bool),
}

/// Decimal digits after the point that numbers keep.
pub const UNIT: i128 = 10_000;

/// The length of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) ms: u64,
}

/// A variable, by its number. Each binder has a number of its own.
pub(crate) type Variable = usize;

/// A condition about events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Formula {
    And(Vec<Formula>),
    Not(Box<Formula>),
    /// The body held at an event within the window.
    Formerly(Span, Box<Formula>),
    /// The body held at the event before this one.
    Previous(Span, Box<Formula>),
    Since(Box<Since>),
    Event(EventPattern),
    Compare(Comparison, Operand, Operand),
    Exists(Variable, Box<Formula>),
    /// Binds a variable to the current event.
    Timepoint(Variable),
}

/// `left since within window right`: `right` held, and `left` has held ever since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Since {
    pub(crate) left: Formula,
    pub(crate) window: Span,
    pub(crate) right: Formula,
}

/// An event of one kind, with conditions on its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventPattern {
    /// The action, with its namespace: `Action::"use_tool"`.
    pub(crate) action: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) fields: Vec<(Arc<str>, Operand)>,
}

/// What is compared or matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Value(Value),
    /// An attribute of the current request: `context.input.amount`, `principal`.
    Request(Arc<str>),
    Variable(Variable),
    /// `_`: anything.
    Any,
    /// How many assignments of `over` satisfy the body.
    Count(Box<Aggregate>),
    /// The sum of a variable over them.
    Sum(Variable, Box<Aggregate>),
}

/// The assignments that an aggregate collects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aggregate {
    pub(crate) over: Vec<Variable>,
    pub(crate) body: Formula,
}

/// An operator of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
}

impl Comparison {
    pub(crate) fn holds(self, left: &Value, right: &Value) -> bool {
        let (left, right) = match (self, left, right) {
            (Comparison::Equal, left, right) => return left == right,
            (Comparison::Unequal, left, right) => return left != right,
            (_, Value::Number(left), Value::Number(right)) => (left, right),
            _ => return false,
        };
        match self {
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::More => left > right,
            Comparison::AtLeast => left >= right,
            Comparison::Equal | Comparison::Unequal => unreachable!("returned above"),
        }
    }

    /// The operator with its sides exchanged.
    pub(crate) const fn turned(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::More,
            Comparison::AtMost => Comparison::AtLeast,
            Comparison::More => Comparison::Less,
            Comparison::AtLeast => Comparison::AtMost,
            same @ (Comparison::Equal | Comparison::Unequal) => same,
        }
    }

    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::More => ">",
            Comparison::AtLeast => ">=",
            Comparison::Equal => "==",
            Comparison::Unequal => "!=",
        }
    }
}

impl Operand {
    /// Whether it is the same at every event and for every request.
    pub(crate) const fn is_constant(&self) -> bool {
        matches!(self, Operand::Value(_) | Operand::Any)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => {
                let (whole, rest) =
                    (number.unsigned_abs() / 10_000, number.unsigned_abs() % 10_000);
                let sign = if *number < 0 { "-" } else { "" };
                write!(f, "{sign}{whole}")?;
                if rest == 0 {
                    return Ok(());
                }
                let digits = format!("{rest:04}");
                write!(f, ".{}", digits.trim_end_matches('0'))
            }
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Bool(value) => write!(f, "{value}"),
        }
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m")];
        for (unit_ms, name) in UNITS {
            if self.ms.is_multiple_of(unit_ms) {
                return write!(f, "{}{name}", self.ms / unit_ms);
            }
        }
        write!(f, "{}s", self.ms / 1000)
    }
}

impl Display for Formula {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Formula::And(parts) => {
                f.write_str("(")?;
                for (at, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if at == 0 { "" } else { " && " })?;
                }
                f.write_str(")")
            }
            Formula::Not(inner) => write!(f, "!{inner}"),
            Formula::Formerly(window, body) => write!(f, "(formerly within {window} {body})"),
            Formula::Previous(window, body) => write!(f, "(previous within {window} {body})"),
            Formula::Since(since) => {
                write!(f, "({} since within {} {})", since.left, since.window, since.right)
            }
            Formula::Event(pattern) => write!(f, "{pattern}"),
            Formula::Compare(op, left, right) => write!(f, "({left} {} {right})", op.sign()),
            Formula::Exists(variable, body) => write!(f, "(exists v{variable}. {body})"),
            Formula::Timepoint(variable) => write!(f, "tp(v{variable})"),
        }
    }
}

impl Display for EventPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{} {{", self.action, self.kind)?;
        for (at, (name, operand)) in self.fields.iter().enumerate() {
            write!(f, "{} {name}: {operand}", if at == 0 { "" } else { "," })?;
        }
        f.write_str(" }")
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Value(value) => write!(f, "{value}"),
            Operand::Request(path) => f.write_str(path),
            Operand::Variable(variable) => write!(f, "v{variable}"),
            Operand::Any => f.write_str("_"),
            Operand::Count(aggregate) => write!(f, "(count{aggregate})"),
            Operand::Sum(of, aggregate) => write!(f, "(sum v{of}{aggregate})"),
        }
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(" for")?;
        for variable in &self.over {
            write!(f, " v{variable}")?;
        }
        write!(f, " where {}", self.body)
    }
}

/// How far back a condition looks, at most.
pub(crate) fn reach(formula: &Formula) -> u64 {
    match formula {
        Formula::And(parts) => parts.iter().map(reach).max().unwrap_or(0),
        Formula::Not(inner) | Formula::Exists(_, inner) => reach(inner),
        Formula::Formerly(window, inner) | Formula::Previous(window, inner) => {
            window.ms.saturating_add(reach(inner))
        }
        Formula::Since(since) => {
            since.window.ms.saturating_add(reach(&since.left).max(reach(&since.right)))
        }
        Formula::Compare(_, left, right) => reach_of(left).max(reach_of(right)),
        Formula::Event(_) | Formula::Timepoint(_) => 0,
    }
}

/// How far back the aggregate of an operand looks.
pub(crate) fn reach_of(operand: &Operand) -> u64 {
    match operand {
        Operand::Count(aggregate) | Operand::Sum(_, aggregate) => reach(&aggregate.body),
        _ => 0,
    }
}
