//! `sluice eval`: one expression, tried before it is written into a document.

use super::{tell_people, tell_unreadable};
use crate::Exit;
use crate::cli::{Eval, Reader};
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::{Line, Unreadable};
use serde::Serialize;
use serde_json::Value;
use sluice_core::code::{Code, Severity};
use sluice_core::diagnostic::{Diagnostic, Problem, Problems};
use sluice_core::expr::Expr;
use sluice_core::scope::names::Names;
use sluice_core::span::Span;
use sluice_core::value::Membership;
use sluice_core::yaml;
use sluice_server::service::document::Input;
use std::ffi::OsString;

/// What people read for the file name of the expression.
const EXPRESSION: &str = "expression";

pub(super) fn run(args: &Eval, out: &mut Out) -> anyhow::Result<Exit> {
    let reader = args.json.reader();
    match evaluate(args) {
        Ok(value) => {
            match reader {
                Reader::Person => out.json(Layout::Pretty, &value)?,
                Reader::Program => out.json(Layout::Line, &Answer::Value { ok: true, value })?,
            }
            Ok(Exit::Done)
        }
        Err(refusal) => {
            match reader {
                Reader::Person => refusal.tell(out)?,
                Reader::Program => out.json(Layout::Line, &refusal.answer())?,
            }
            Ok(refusal.exit())
        }
    }
}

/// Why there is no value.
enum Refusal {
    Unreadable(Unreadable),
    Problems(Input, Vec<Diagnostic>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Value { ok: bool, value: Value },
    Errors { ok: bool, errors: Vec<Line<'a>> },
}

impl Refusal {
    fn new(input: Input, text: &str, problem: Problem) -> Refusal {
        let mut problems = Problems::default();
        problems.add(problem);
        Refusal::Problems(input, problems.into_diagnostics(text))
    }

    fn tell(&self, out: &mut Out) -> anyhow::Result<()> {
        match self {
            Refusal::Unreadable(file) => tell_unreadable(file, Reader::Person, out),
            Refusal::Problems(input, diagnostics) => tell_people(input, diagnostics, out),
        }
    }

    fn answer(&self) -> Answer<'_> {
        let errors = match self {
            Refusal::Unreadable(file) => vec![Line::unreadable(file)],
            Refusal::Problems(_, diagnostics) => diagnostics.iter().map(Line::new).collect(),
        };
        Answer::Errors { ok: false, errors }
    }

    fn exit(&self) -> Exit {
        match self {
            Refusal::Problems(_, diagnostics)
                if diagnostics.iter().all(|d| d.code.severity() == Severity::Failure) =>
            {
                Exit::Failed
            }
            _ => Exit::Refused,
        }
    }
}

fn evaluate(args: &Eval) -> Result<Value, Refusal> {
    let source = args.expression.as_str();
    let input = || Input { name: EXPRESSION.to_owned(), bytes: source.as_bytes().to_vec() };
    let expression = Expr::parse(source).map_err(|fault| {
        let problem = Problem::from_fault(Code::BadExpression, fault.span, fault);
        Refusal::new(input(), source, problem)
    })?;
    let names = args.with.as_ref().map_or_else(|| Ok(Names::new()), names)?;
    // Tolerant, as conditions and success criteria are.
    expression.eval(&names, Membership::Tolerant).map_err(|error| {
        let whole = Span::new(0, source.len());
        let problem = Problem::new(Code::ConditionError, whole, error.to_string())
            .with_hint("let it read smaller values");
        Refusal::new(input(), source, problem)
    })
}

fn names(file: &OsString) -> Result<Names, Refusal> {
    let input = input::read(file).map_err(Refusal::Unreadable)?;
    let read = input.text().and_then(|text| {
        let mut problems = Problems::default();
        let root = yaml::parse(text, &mut problems);
        match root.filter(|_| !problems.has_errors()) {
            None => Err(problems.into_diagnostics(text)),
            Some(root) => Names::from_value(root.to_value()).map_err(|error| {
                problems.add(Problem::new(Code::WrongType, root.span, error.to_string()));
                problems.into_diagnostics(text)
            }),
        }
    });
    read.map_err(|diagnostics| Refusal::Problems(input, diagnostics))
}
