//! The programs of the installed PostgreSQL, and the user that runs them.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where Debian installs the versions of PostgreSQL.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user `nobody` and group `nogroup`, which run the server if this process is root.
const SERVER_USER: u32 = 65534;

/// Directory of the newest version's programs.
pub(super) fn programs() -> Result<PathBuf, String> {
    newest(Path::new(VERSIONS))
}

fn newest(versions: &Path) -> Result<PathBuf, String> {
    let versions = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .map(|entry| entry.path())
        .filter(|path| path.join("bin/postgres").exists())
        .max_by_key(|path| version(path));
    let newest = newest.ok_or("PostgreSQL is not installed: run `make postgres`")?;
    Ok(newest.join("bin"))
}

/// The owner of `/proc/self` is the user of this process.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A command that runs without root privileges.
pub(super) fn command(program: impl AsRef<Path>) -> Command {
    if !is_root() {
        return Command::new(program.as_ref());
    }
    let mut command = Command::new("setpriv");
    let user = SERVER_USER.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]);
    command.arg(program.as_ref());
    command
}

/// Runs a program to its end. The error is what it printed.
pub(super) fn run(command: &mut Command) -> Result<String, String> {
    let (name, output) = (name(command), command.output());
    answer(&name, output)
}

/// The same for a program that reads its input from a text.
pub(super) fn feed(command: &mut Command, text: &str) -> Result<String, String> {
    let name = name(command);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name} cannot be run: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A failing program does not read all of its input; its error is reported
        // below.
        let _ = input.write_all(text.as_bytes());
    }
    answer(&name, child.wait_with_output())
}

/// The name of the program: the first absolute path, since `setpriv` may come before
/// it.
fn name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let name = words.map(Path::new).find(|word| word.is_absolute());
    name.and_then(Path::file_name).unwrap_or_default().display().to_string()
}

fn answer(name: &str, output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|error| format!("{name} cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Creates a directory for the server's user only.
pub(super) fn directory() -> Result<PathBuf, String> {
    static DIRECTORIES: AtomicU32 = AtomicU32::new(0);
    let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("sluice-pg-{}-{number}", std::process::id()));
    let failed = |error| format!("{} cannot be made: {error}", dir.display());
    std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
    give_to_server(&dir).map_err(failed)?;
    Ok(dir)
}

/// Writes a file that only the server's user may read, because some hold keys.
pub(super) fn write(file: &Path, text: &str) -> Result<(), String> {
    let failed = |error| format!("{} cannot be written: {error}", file.display());
    let options = std::fs::OpenOptions::new().mode(0o600).write(true).create_new(true).open(file);
    options.map_err(failed)?.write_all(text.as_bytes()).map_err(failed)?;
    give_to_server(file).map_err(failed)
}

fn give_to_server(path: &Path) -> std::io::Result<()> {
    if is_root() { chown(path, Some(SERVER_USER), Some(SERVER_USER)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_taken_and_none_is_told_with_its_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let missing = newest(&dir.path().join("none")).unwrap_err();
        assert_eq!(missing, "PostgreSQL is not installed: run `make postgres`");
        for version in ["9", "15", "14"] {
            let bin = dir.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join("postgres"), "").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("16/bin")).unwrap();
        assert_eq!(newest(dir.path()).unwrap(), dir.path().join("15/bin"));
    }
}
