//! Templates as shell commands: values are passed through the environment.
//!
//! A reference becomes an environment variable that holds the value: `"$SLUICE_V1"` in plain
//! text, `${SLUICE_V1}` inside double quotes and here-documents. The shell expands both to
//! exactly the value, as data.
//!
//! INVARIANT: a reference is rejected if the shell would not read the expanded variable as
//! data, or if [`context`] cannot tell. The author is responsible for what the command does
//! with its data (`eval`, `sh -c`); [`Template::shell_code`] warns about it.

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
    /// The script, which does not depend on the values.
    pub script: String,
    /// Each environment variable, with the path of its value.
    pub variables: Vec<(String, Path)>,
}

impl ShellCommand {
    /// The environment variables with the values of `scope`.
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

    /// The name of the variable for `path`: one for each path.
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
    /// The template as a shell command, or an error for every reference that cannot be made
    /// safe.
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
                    let message = format!("`${{{}}}` cannot be used {}", reference.path, why.place);
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
    /// References that a program called by the command would execute as code.
    pub(crate) fn shell_code(&self) -> Vec<Fault> {
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
