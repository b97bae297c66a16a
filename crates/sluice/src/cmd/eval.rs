//! `sluice eval`: evaluates one expression.

use super::{print_diagnostics, print_unreadable};
use crate::Exit;
use crate::cli::{Eval, OutputFormat};
use crate::input;
use crate::out::{Layout, Out};
use crate::problem::{ReportedProblem, Unreadable};
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

/// The file name in diagnostics of the expression.
const EXPRESSION: &str = "expression";

pub(super) fn run(args: &Eval, out: &mut Out) -> anyhow::Result<Exit> {
    let output = args.json.output();
    match evaluate(args) {
        Ok(value) => {
            match output {
                OutputFormat::Text => out.json(Layout::Pretty, &value)?,
                OutputFormat::Json => {
                    out.json(Layout::Line, &EvalAnswer::Value { ok: true, value })?;
                }
            }
            Ok(Exit::Done)
        }
        Err(refusal) => {
            match output {
                OutputFormat::Text => refusal.print(out)?,
                OutputFormat::Json => out.json(Layout::Line, &refusal.answer())?,
            }
            Ok(refusal.exit())
        }
    }
}

enum EvalRefusal {
    Unreadable(Unreadable),
    Problems(Input, Vec<Diagnostic>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum EvalAnswer<'a> {
    Value { ok: bool, value: Value },
    Errors { ok: bool, errors: Vec<ReportedProblem<'a>> },
}

impl EvalRefusal {
    fn new(input: Input, text: &str, problem: Problem) -> EvalRefusal {
        let mut problems = Problems::default();
        problems.add(problem);
        EvalRefusal::Problems(input, problems.into_diagnostics(text))
    }

    fn print(&self, out: &mut Out) -> anyhow::Result<()> {
        match self {
            EvalRefusal::Unreadable(file) => print_unreadable(file, OutputFormat::Text, out),
            EvalRefusal::Problems(input, diagnostics) => print_diagnostics(input, diagnostics, out),
        }
    }

    fn answer(&self) -> EvalAnswer<'_> {
        let errors = match self {
            EvalRefusal::Unreadable(file) => vec![ReportedProblem::unreadable(file)],
            EvalRefusal::Problems(_, diagnostics) => {
                diagnostics.iter().map(ReportedProblem::new).collect()
            }
        };
        EvalAnswer::Errors { ok: false, errors }
    }

    fn exit(&self) -> Exit {
        match self {
            EvalRefusal::Problems(_, diagnostics)
                if diagnostics.iter().all(|d| d.code.severity() == Severity::Failure) =>
            {
                Exit::Failed
            }
            _ => Exit::Refused,
        }
    }
}

fn evaluate(args: &Eval) -> Result<Value, EvalRefusal> {
    let source = args.expression.as_str();
    let input = || Input { name: EXPRESSION.to_owned(), bytes: source.as_bytes().to_vec() };
    let expression = Expr::parse(source).map_err(|fault| {
        let problem = Problem::from_fault(Code::BadExpression, fault.span, fault);
        EvalRefusal::new(input(), source, problem)
    })?;
    let names = args.with.as_ref().map_or_else(|| Ok(Names::new()), names)?;
    // Missing values are tolerated, as in conditions and success criteria.
    expression.eval(&names, Membership::Tolerant).map_err(|error| {
        let whole = Span::new(0, source.len());
        let problem = Problem::new(Code::ConditionError, whole, error.to_string())
            .with_hint("let it read smaller values");
        EvalRefusal::new(input(), source, problem)
    })
}

fn names(file: &OsString) -> Result<Names, EvalRefusal> {
    let input = input::read(file).map_err(EvalRefusal::Unreadable)?;
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
    read.map_err(|diagnostics| EvalRefusal::Problems(input, diagnostics))
}
