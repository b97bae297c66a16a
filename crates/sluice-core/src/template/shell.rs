//! Templates as shell commands: values arrive through the environment.
//!
//! A reference becomes a reference to an environment variable that holds the
//! value: `"$SLUICE_V1"` in plain text, `${SLUICE_V1}` inside double quotes and
//! here-documents. The shell expands both to exactly the value, as data.
//!
//! INVARIANT: where the shell would read an expanded variable as anything but
//! data, or where [`context`] cannot tell, the reference is refused. What the
//! command itself does with its data (`eval`, `sh -c`) is its author's affair, and
//! worth a warning ([`Template::shell_code`]).

mod code;
mod context;

use super::{Reason, Template, TemplatePart, Unresolved, refuse, text_at};
use crate::path::Path;
use crate::scope::Scope;
use crate::span::Fault;
use context::{Context, ReferenceQuoting};

/// A command for `sh -c`, and the variables it reads.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ShellCommand {
    /// The script: the same whatever the values are.
    pub script: String,
    /// Each environment variable with the path of its value.
    pub variables: Vec<(String, Path)>,
}

impl ShellCommand {
    /// The environment that hands the values of `scope` to the script.
    pub fn render_env(&self, scope: &dyn Scope) -> Result<Vec<(String, String)>, Unresolved> {
        let pairs = self.variables.iter().map(|(name, path)| {
            let value = text_at(path, scope)?;
            if value.contains('\0') {
                return Err(refuse(path, Reason::Nul));
            }
            Ok((name.clone(), value.into_owned()))
        });
        pairs.collect()
    }

    /// The name of the variable that holds `path`: one per path, however often it is read.
    fn variable(&mut self, path: &Path) -> String {
        if let Some((name, _)) = self.variables.iter().find(|(_, known)| known == path) {
            return name.clone();
        }
        let name = format!("SLUICE_V{}", self.variables.len() + 1);
        self.variables.push((name.clone(), path.clone()));
        name
    }
}

impl Template {
    /// The template as a shell command, or every reference that cannot be made safe.
    pub fn shell(&self) -> Result<ShellCommand, Vec<Fault>> {
        let mut command = ShellCommand { script: String::new(), variables: Vec::new() };
        let mut context = Context::new();
        let mut faults = Vec::new();
        for part in &self.parts {
            let reference = match part {
                TemplatePart::Text(text) => {
                    context.read(text);
                    command.script.push_str(text);
                    continue;
                }
                TemplatePart::Reference(reference) => reference,
            };
            let name = command.variable(&reference.path);
            match context.reference() {
                ReferenceQuoting::Plain => command.script.push_str(&format!("\"${name}\"")),
                ReferenceQuoting::Quoted => command.script.push_str(&format!("${{{name}}}")),
                ReferenceQuoting::Refused(why) => {
                    let message = format!("`${{{}}}` cannot stand {}", reference.path, why.place);
                    let fault = Fault::new(reference.span.range(), message);
                    faults.push(fault.with_hint(why.hint));
                }
            }
        }
        match faults.is_empty() {
            true => Ok(command),
            false => Err(faults),
        }
    }
}

impl Template {
    /// References of a command that the program it calls reads as code.
    pub fn shell_code(&self) -> Vec<Fault> {
        let (mut script, mut references) = (String::new(), Vec::new());
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => script.push_str(&text.replace(code::MARK, " ")),
                TemplatePart::Reference(reference) => {
                    script.push(code::MARK);
                    references.push((reference.path.to_string(), reference.span));
                }
            }
        }
        code::find(&script, &references)
    }
}

#[cfg(test)]
mod tests;
