//! A PostgreSQL of one's own, for tests and measurements.
//!
//! It has its own data directory and its own socket, runs as an unprivileged
//! user, and writes to the disk as a real one does. A guard process starts it and
//! ends it: the guard reads from a pipe that only this process holds, so the
//! server goes and its directory with it however this process ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where Debian puts the versions of PostgreSQL.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Who runs the server where this process is run by root: `nobody`, `nogroup`.
const NOBODY: u32 = 65534;
/// How long a server may take to start, in milliseconds.
const START_MS_MAX: u64 = 60_000;

/// What the guard does: `start` and `kill` as it is told, and an end when it is
/// told nothing more.
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

/// A running server.
pub struct Server {
    bin: PathBuf,
    dir: PathBuf,
    /// The port, which also names the socket.
    port: String,
    guard: Child,
    /// None once it is being dropped.
    orders: Option<ChildStdin>,
    reports: BufReader<ChildStdout>,
    schemas: AtomicU32,
}

impl Server {
    /// Makes a data directory and starts a server on it, with settings of its own:
    /// `name=value`. It has a socket alone unless `listen_addresses` says more.
    pub fn start(settings: &[&str]) -> Result<Server, String> {
        let bin = installed(Path::new(VERSIONS))?;
        let dir = directory()?;
        initialise(&bin, &dir)?;
        let mut guard = command("sh");
        guard.args(["-c", GUARD, "guard", "-c", "listen_addresses=", "-c", "max_connections=200"]);
        for setting in settings {
            guard.args(["-c", setting]);
        }
        // In a group of its own: an interrupt of the tests is not for it.
        guard.env("BIN", &bin).env("DIR", &dir).process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(&dir);
        let mut guard = guard.spawn().map_err(|error| format!("sh cannot be run: {error}"))?;
        let orders = guard.stdin.take();
        let reports = BufReader::new(guard.stdout.take().expect("its output is piped"));
        let schemas = AtomicU32::new(0);
        let port = settings.iter().find_map(|setting| setting.strip_prefix("port="));
        let port = port.unwrap_or("5432").to_owned();
        let server = Server { bin, dir, port, guard, orders, reports, schemas };
        server.await_ready()?;
        Ok(server)
    }

    /// The URL of a new and empty schema.
    pub fn schema(&self) -> String {
        let name = format!("store_{}", self.schemas.fetch_add(1, Ordering::Relaxed));
        self.psql(&format!("CREATE SCHEMA {name}"));
        format!("{}&options=-c%20search_path%3D{name}", self.url())
    }

    /// The URL of the database.
    pub fn url(&self) -> String {
        format!("postgres:///postgres?user=sluice&port={}&host={}", self.port, self.dir.display())
    }

    /// Performs statements from outside, and answers what comes back, unadorned.
    pub fn psql(&self, sql: &str) -> String {
        let mut psql = command(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "sluice", "-h"]);
        psql.arg(&self.dir).args(["-p", &self.port, "-d", "postgres", "-c", sql]).current_dir("/");
        let output = psql.output().expect("psql is installed with the server");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Kills the server with -9.
    pub fn kill(&mut self) {
        self.order("kill");
    }

    /// Starts it again after it was killed.
    pub fn restart(&mut self) -> Result<(), String> {
        self.order("start");
        self.await_ready()
    }

    fn order(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("it is not dropped");
        writeln!(orders, "{order}").expect("the guard listens");
        let mut report = String::new();
        self.reports.read_line(&mut report).expect("the guard answers");
    }

    fn await_ready(&self) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(START_MS_MAX) {
            let mut ready = command(self.bin.join("pg_isready"));
            ready.args(["-q", "-p", &self.port, "-h"]).arg(&self.dir).current_dir("/");
            if ready.status().is_ok_and(|status| status.success()) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        Err(format!("PostgreSQL did not start:\n{log}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The guard ends the server when its input ends.
        self.orders = None;
        let _ = self.guard.wait();
    }
}

/// Where the programs of the newest version are.
fn installed(versions: &Path) -> Result<PathBuf, String> {
    let versions = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .map(|entry| entry.path())
        .filter(|path| path.join("bin/postgres").exists())
        .max_by_key(|path| version(path));
    let newest = newest.ok_or("PostgreSQL is not installed here: run `make postgres`")?;
    Ok(newest.join("bin"))
}

/// Who runs a process is who owns its entry there.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A program, run by somebody without privileges.
fn command(program: impl AsRef<Path>) -> Command {
    if !is_root() {
        return Command::new(program.as_ref());
    }
    let mut command = Command::new("setpriv");
    let nobody = NOBODY.to_string();
    command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups", "--"]);
    command.arg(program.as_ref());
    command
}

/// A directory that is the server's alone.
fn directory() -> Result<PathBuf, String> {
    static DIRECTORIES: AtomicU32 = AtomicU32::new(0);
    let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("sluice-pg-{}-{number}", std::process::id()));
    let failed = |error| format!("{} cannot be made: {error}", dir.display());
    std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
    if is_root() {
        chown(&dir, Some(NOBODY), Some(NOBODY)).map_err(failed)?;
    }
    Ok(dir)
}

fn initialise(bin: &Path, dir: &Path) -> Result<(), String> {
    let mut initdb = command(bin.join("initdb"));
    initdb.args(["-U", "sluice", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "-D"]);
    let output = initdb.arg(dir.join("data")).current_dir(dir).output();
    let output = output.map_err(|error| format!("initdb cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_taken_and_none_is_told_with_its_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let missing = installed(&dir.path().join("none")).unwrap_err();
        assert_eq!(missing, "PostgreSQL is not installed here: run `make postgres`");
        for version in ["9", "15", "14"] {
            let bin = dir.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join("postgres"), "").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("16/bin")).unwrap();
        assert_eq!(installed(dir.path()).unwrap(), dir.path().join("15/bin"));
    }
}
