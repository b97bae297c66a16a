//! Tests of documents: a document in, a transcript out.
//!
//! [`Script::transcript`] is the only caller of the API. A transcript has one line for each
//! problem, `line:column code path: message (hint)`, with `~` before a warning. For an accepted
//! document it has `ok` and then the facts that the script requests.

mod flow_labels;
mod lens_bindings;
mod lens_conditions;
mod lens_config;
mod lens_contracts;
mod lens_graph;
mod lens_hash;
mod lens_versions;
mod lobsterx_bounds;
mod lobsterx_defaults;
mod lobsterx_expressions;
mod lobsterx_fields;
mod lobsterx_forms;
mod lobsterx_graph;
mod lobsterx_hash;
mod lobsterx_library;
mod lobsterx_names;
mod lobsterx_places;
mod lobsterx_plan;
mod lobsterx_references;
mod lobsterx_schemas;
mod lobsterx_warnings;
mod plan_json;
mod registry;
mod schemas;
mod teams;

use crate::code::Severity;
use crate::diagnostic::Diagnostic;
use crate::doc::{Checked, Format, Registry};
use crate::plan::Plan;
use expect_test::Expect;
use serde_json::Value;
use std::fmt::Write as _;

/// A document, its registry, and the facts to show of its plan.
struct Script {
    format: Option<Format>,
    text: String,
    registry: Registry,
    facts: Vec<Fact>,
}

enum Fact {
    /// The value at a path of the plan's JSON: `steps.0.timeout_ms`.
    Value(&'static str),
    /// The dependencies and the waves.
    Order,
}

impl Script {
    fn new(format: Option<Format>, text: &str) -> Script {
        Script { format, text: dedent(text), registry: Registry::default(), facts: Vec::new() }
    }

    fn lobsterx(text: &str) -> Script {
        Script::new(Some(Format::Lobsterx), text)
    }

    fn lens(text: &str) -> Script {
        Script::new(Some(Format::Lens), text)
    }

    /// Sets the registry file.
    fn registry(mut self, text: &str) -> Script {
        let (registry, diagnostics) = Registry::parse(&dedent(text));
        self.registry = registry.unwrap_or_else(|| panic!("a sound registry: {diagnostics:#?}"));
        self
    }

    /// Shows the value at a path of the plan's JSON, `-` if it is absent.
    fn show(mut self, path: &'static str) -> Script {
        self.facts.push(Fact::Value(path));
        self
    }

    /// Shows each step's dependencies and the waves.
    fn order(mut self) -> Script {
        self.facts.push(Fact::Order);
        self
    }

    /// The transcript. Every plan of every test is also read back from its JSON.
    fn checked(&self) -> Checked {
        let checked = super::check(self.text.as_bytes(), self.format, &self.registry);
        checked.plan.iter().for_each(plan_json::assert_reads_back);
        checked
    }

    /// The plan of a document without errors.
    fn plan(&self) -> Plan {
        let checked = self.checked();
        checked.plan.unwrap_or_else(|| panic!("refused: {:#?}", checked.diagnostics))
    }

    fn transcript(&self) -> String {
        let checked = self.checked();
        let refused = checked.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(checked.plan.is_none(), refused, "a plan is answered when there is no error");
        let mut out = String::new();
        for diagnostic in &checked.diagnostics {
            tell(diagnostic, &mut out);
        }
        if let Some(plan) = &checked.plan {
            out.push_str("ok\n");
            let json = serde_json::to_value(plan).expect("a plan is JSON");
            for fact in &self.facts {
                match fact {
                    Fact::Value(path) => writeln!(out, "{path} = {}", look_up(&json, path)),
                    Fact::Order => write!(out, "{}", order(plan)),
                }
                .expect("a string takes everything");
            }
        }
        out
    }

    #[expect(clippy::needless_pass_by_value, reason = "what is expected is written in place")]
    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.transcript());
    }
}

/// Checks one document many times, each time with another line in the place of `@`, and shows
/// each transcript. The line keeps the indentation of its place.
#[expect(clippy::needless_pass_by_value, reason = "what is expected is written in place")]
fn check_each(text: &str, shown: &[&'static str], lines: &[&str], expected: Expect) {
    let mut out = String::new();
    for line in lines {
        let script = Script::lobsterx(&text.replace('@', line));
        let script = shown.iter().fold(script, |script, path| script.show(path));
        let transcript = script.transcript();
        let told = transcript.trim_end().replace('\n', " | ");
        writeln!(out, "{line} => {told}").expect("a string takes everything");
    }
    expected.assert_eq(&out);
}

/// [`check_each`] for lines of a step.
fn check_step(shown: &[&'static str], lines: &[&str], expected: Expect) {
    let text = "
        name: tiny
        steps:
          - id: one
            command: go
            @
        ";
    check_each(text, shown, lines, expected);
}

/// [`check_each`] for lines at the top of the document.
fn check_top(shown: &[&'static str], lines: &[&str], expected: Expect) {
    let text = "
        name: tiny
        @
        steps:
          - id: one
            command: go
        ";
    check_each(text, shown, lines, expected);
}

pub(super) fn tell(diagnostic: &Diagnostic, out: &mut String) {
    let Diagnostic { code, message, path, line, column, hint, .. } = diagnostic;
    let mark = if code.severity() == Severity::Warning { "~" } else { "" };
    let path = if path.is_empty() { String::new() } else { format!(" {path}") };
    let hint = hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
    writeln!(out, "{mark}{line}:{column} {code}{path}: {message}{hint}")
        .expect("a string takes everything");
}

fn look_up(json: &Value, path: &str) -> String {
    let pointer = format!("/{}", path.replace('.', "/"));
    json.pointer(&pointer).map_or("-".to_owned(), Value::to_string)
}

fn order(plan: &Plan) -> String {
    let mut out = String::new();
    for step in &plan.steps {
        writeln!(out, "{} <- {}", step.id, step.depends_on.join(" "))
            .expect("a string takes everything");
    }
    for layer in plan.graph.layers() {
        let ids: Vec<&str> = layer.iter().map(|at| plan.steps[*at as usize].id.as_str()).collect();
        writeln!(out, "wave: {}", ids.join(" ")).expect("a string takes everything");
    }
    out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A text without the blank first line and the indentation of the test's source.
pub(super) fn dedent(text: &str) -> String {
    let Some(text) = text.strip_prefix('\n') else { return text.to_owned() };
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let common = lines.map(indent).min().unwrap_or(0);
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(line.get(common..).unwrap_or_default());
        out.push('\n');
    }
    // The last line of the source has only the closing quote.
    out.trim_end().to_owned() + "\n"
}
