//! The process that starts and stops a server.
//!
//! It reads from a pipe that only this process holds, so it stops the server and
//! removes its directory however this process ends.

use super::install::command;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Handles `start` and `kill`, and stops the server at the end of its input.
const GUARD: &str = r#"
start() { "$BIN/postgres" -D "$DIR/data" -k "$DIR" "$@" </dev/null >>"$DIR/log" 2>&1 & pid=$!; }
end() { kill "-$1" "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; }
start "$@"
while read -r line; do
    case "$line" in
        kill) end KILL; echo gone ;;
        start) start "$@"; echo started ;;
    esac
done
end QUIT
rm -rf "$DIR"
"#;

pub(super) struct Guard {
    process: Child,
    /// `None` once the guard is being dropped.
    orders: Option<ChildStdin>,
    reports: BufReader<ChildStdout>,
}

impl Guard {
    /// Starts a server on a directory, with settings.
    pub(super) fn start(bin: &Path, dir: &Path, settings: &[String]) -> Result<Guard, String> {
        let mut guard = command("sh");
        guard.args(["-c", GUARD, "guard"]);
        for setting in settings {
            guard.args(["-c", setting]);
        }
        // In its own process group, so that an interrupt of the tests does not reach
        // it.
        guard.env("BIN", bin).env("DIR", dir).process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(dir);
        let mut process = guard.spawn().map_err(|error| format!("sh cannot be run: {error}"))?;
        let orders = process.stdin.take();
        let reports = BufReader::new(process.stdout.take().expect("its output is piped"));
        Ok(Guard { process, orders, reports })
    }

    /// Sends an order, and waits until it is done.
    pub(super) fn order(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("it is not dropped");
        writeln!(orders, "{order}").expect("the guard listens");
        let mut report = String::new();
        self.reports.read_line(&mut report).expect("the guard answers");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The guard stops the server at the end of its input.
        self.orders = None;
        let _ = self.process.wait();
    }
}
