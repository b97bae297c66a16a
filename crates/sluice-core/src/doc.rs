//! Workflow documents: turns a text into a [`Plan`], or into diagnostics of every problem in
//! it.

mod fields;
mod flow_labels;
mod foreign;
mod leaf;
mod lens;
mod lobsterx;
mod names;
mod read;
mod registry;
mod schema;
pub mod setup;
mod shared;
pub(crate) mod team;
#[cfg(test)]
mod tests;

pub use lens::newest_version;
pub(crate) use read::camel_case;
pub use registry::Registry;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Problem, Problems};
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::node::Node;
use crate::plan::Plan;
use crate::span::Span;
use crate::yaml;
use read::{DocumentReader, Read, Spelling};
use schema::Defs;
use serde_json::Value;

/// The formats a workflow can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A list of steps that name each other.
    Lobsterx,
    /// A graph of nodes and edges.
    Lens,
}

impl Format {
    /// The format that a file's name implies.
    pub fn of_file(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".lobsterx", ".lobsterx.yaml", ".lobsterx.yml", ".lobsterx.json"]) {
            Some(Format::Lobsterx)
        } else if ends(&[".lens.json", ".lens.yaml", ".lens.yml"]) {
            Some(Format::Lens)
        } else {
            None
        }
    }

    /// The format that the fields of a document imply.
    fn of_document(root: &Node<'_>) -> Option<Format> {
        match (root.get("steps"), root.get("nodes")) {
            (Some(_), None) => Some(Format::Lobsterx),
            (None, Some(_)) => Some(Format::Lens),
            _ => None,
        }
    }

    fn spelling(self) -> Spelling {
        match self {
            Format::Lobsterx => Spelling::Strict,
            Format::Lens => Spelling::Either,
        }
    }

    /// The JSON Schema of the format, for editors.
    pub fn json_schema(self) -> Value {
        let mut defs = Defs::new(self.spelling());
        let (title, root) = match self {
            Format::Lobsterx => {
                lobsterx::written::Document::schema(&mut defs);
                (".lobsterX workflow", "Document")
            }
            Format::Lens => {
                lens::written::LensDocument::schema(&mut defs);
                ("lens workflow", "LensDocument")
            }
        };
        defs.into_schema(title, root)
    }
}

/// The result of checking a document.
#[derive(Debug)]
pub struct Checked {
    /// The plan, when there is no error.
    pub plan: Option<Plan>,
    /// Errors and warnings, in document order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// Whether a run can be started from the document.
    pub fn is_ok(&self) -> bool {
        self.plan.is_some()
    }
}

/// Checks a document and resolves it to a plan. `format` comes from the file's name; without
/// it, the fields of the document decide.
pub fn check(bytes: &[u8], format: Option<Format>, registry: &Registry) -> Checked {
    let mut problems = Problems::default();
    let Some(text) = decode(bytes, &mut problems) else {
        // The locations of these problems need only the readable part.
        let readable = String::from_utf8_lossy(&bytes[..bytes.len().min(DOCUMENT_BYTES_MAX)]);
        return Checked { plan: None, diagnostics: problems.into_diagnostics(&readable) };
    };
    let plan = resolve(text, format, registry, &mut problems);
    let plan = plan.filter(|_| !problems.has_errors());
    Checked { plan, diagnostics: problems.into_diagnostics(text) }
}

fn resolve(
    text: &str,
    format: Option<Format>,
    registry: &Registry,
    problems: &mut Problems,
) -> Option<Plan> {
    let root = yaml::parse(text, problems)?;
    let Some(format) = format.or_else(|| Format::of_document(&root)) else {
        let problem =
            Problem::new(Code::UnknownFormat, root.span, "this is not a workflow document")
                .with_hint(
                    "a `.lobsterX` document has `steps`, a lens document has `nodes` and `edges`",
                );
        problems.add(problem);
        return None;
    };
    let mut cx = DocumentReader::new(text, format.spelling(), problems);
    let plan = match format {
        Format::Lobsterx => lobsterx::resolve(&root, registry, &mut cx),
        Format::Lens => lens::resolve(&root, registry, &mut cx),
    };
    flow_labels::check(&mut cx);
    plan
}

/// The text of a document, if it is UTF-8 and not too long.
fn decode<'b>(bytes: &'b [u8], problems: &mut Problems) -> Option<&'b str> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let message = format!("the document is longer than {DOCUMENT_BYTES_MAX} bytes");
        problems.add(Problem::new(Code::DocumentTooLarge, Span::default(), message));
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let at = error.valid_up_to();
            let message = format!("byte {at} is not UTF-8");
            let problem = Problem::new(Code::InvalidEncoding, Span::new(at, at + 1), message);
            problems.add(problem.with_hint("save the file as UTF-8"));
            None
        }
    }
}
