//! A process that is killed while it carries a store.

use super::*;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

const DIR: &str = "SLUICE_STORE_TEST_DIR";
const URL: &str = "SLUICE_STORE_TEST_URL";

/// The process that is killed: says each batch once it is durable.
#[test]
#[ignore = "started by the test below"]
fn a_process_to_kill() {
    let (Ok(dir), Ok(url)) = (std::env::var(DIR), std::env::var(URL)) else { return };
    let mut transfer = Transfer::begin(Path::new(&dir), &url, None, LATE_MS).unwrap();
    transfer.bytes_max = 2000;
    let mut say = |progress: Progress| {
        println!("{:?} {} of {}", progress.doing, progress.rows, progress.table);
        ControlFlow::Continue(())
    };
    transfer.carry(&mut say).unwrap();
}

#[test]
fn a_process_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    let store = sqlite(dir.path());
    furnish(&store);
    for after in 2..300 {
        append(&store, hashed(plain(run(1), after)));
    }
    drop(store);
    for batches in [1, 3, 9, 20] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "transfer::tests::kill::a_process_to_kill",
            ])
            .env(DIR, dir.path())
            .env(URL, &url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut copied = lines.filter(|line| line.starts_with("Copying"));
        assert!(copied.nth(batches - 1).is_some(), "it ended before it was killed");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(postgres(&url), Err(OpenError::Unfinished)));
    }
    transfer(dir.path(), &url);
    assert_eq!(answers(&postgres(&url).unwrap()), answers(&sqlite(dir.path())));
}
