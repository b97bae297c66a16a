//! A process that is killed during a transfer.

use super::*;
use sluice_testing::postgres::Server;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

const DIR: &str = "SLUICE_STORE_TEST_DIR";
const URL: &str = "SLUICE_STORE_TEST_URL";

/// The process to be killed: prints each batch once it is durable.
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

#[test]
fn a_database_that_goes_away_is_an_error_and_gone_on_with_when_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    furnish(&sqlite(dir.path()));
    let mut own = Server::start(&[]).unwrap_or_else(|why| panic!("{why}"));
    let url = own.schema();
    for batches in [2, 5, 11] {
        let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
        transfer.bytes_max = 1;
        let mut seen = 0;
        let carried = transfer.carry(&mut |_| {
            seen += 1;
            if seen == batches {
                own.kill();
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(carried, Err(TransferError::Write(_))), "{carried:?}");
        drop(transfer);
        own.restart().unwrap();
    }
    transfer(dir.path(), &url);
    assert_eq!(answers(&postgres(&url).unwrap()), answers(&sqlite(dir.path())));
}
