//! A directory with files in it, and commands run there.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The top of the source tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The examples, as paths from the top of the source tree.
pub(crate) fn examples() -> Vec<String> {
    let files = std::fs::read_dir(root().join("examples")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let documents = names.filter(|name| name.contains(".lobsterx.") || name.contains(".lens."));
    let mut documents: Vec<String> = documents.map(|name| format!("examples/{name}")).collect();
    documents.sort();
    assert!(documents.len() >= 15, "{documents:?}");
    documents
}

/// The binary under test, with an environment that does not depend on the tester's.
pub(crate) fn binary(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.current_dir(dir);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.env("TZ", "UTC");
    command
}

/// A directory of its own.
pub(crate) struct Session {
    dir: tempfile::TempDir,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Session {
        std::fs::write(self.path().join(name), content).unwrap();
        self
    }

    /// Runs a command and shows everything that came of it.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        shown(&self.output(args, b""))
    }

    /// The same with something on standard input.
    pub(crate) fn run_with(&self, args: &[&str], stdin: &str) -> String {
        shown(&self.output(args, stdin.as_bytes()))
    }

    pub(crate) fn output(&self, args: &[&str], stdin: &[u8]) -> Output {
        output(self.path(), args, stdin)
    }
}

/// Runs a command in `dir`.
pub(crate) fn output(dir: &Path, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = binary(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes it; that is its right.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn shown(output: &Output) -> String {
    let mut text = String::new();
    for (name, bytes) in [("stderr", &output.stderr), ("stdout", &output.stdout)] {
        let part = std::str::from_utf8(bytes).unwrap();
        if !part.is_empty() {
            // The snapshots' editor takes trailing blanks away.
            let part: Vec<&str> = part.lines().map(str::trim_end).collect();
            writeln!(text, "{name}:\n{}", part.join("\n").trim_end()).unwrap();
        }
    }
    writeln!(text, "exit {}", output.status.code().unwrap()).unwrap();
    text
}
