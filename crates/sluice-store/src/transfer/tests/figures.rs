//! Duration of a transfer of some size.

use super::*;
use sluice_testing::conformance::wait_all;
use std::time::Instant;

const RUNS: u128 = 1000;
const FRAMES: u64 = 100;

#[test]
#[ignore = "a measurement: run it with --nocapture"]
fn a_hundred_thousand_frames() {
    let (dir, url) = (tempfile::tempdir().unwrap(), server().schema());
    let store = sqlite(dir.path());
    for round in 0..FRAMES {
        let next = |number| match round {
            0 => first(run(number)),
            round => plain(run(number), round),
        };
        let next = |number| {
            let append =
                Append { body: vec![b'x'; 700], entries: vec![entry("a")], ..next(number) };
            store.append(Arc::new(hashed(append)))
        };
        wait_all((0..RUNS).map(next).collect());
    }
    drop(store);
    let began = Instant::now();
    let mut transfer = Transfer::begin(dir.path(), &url, None, LATE_MS).unwrap();
    eprintln!("looked at after {:?}", began.elapsed());
    let mut copied = None;
    let mut on_progress = |progress: Progress| {
        if progress.doing == Doing::Comparing {
            copied.get_or_insert_with(|| began.elapsed());
        }
        ControlFlow::Continue(())
    };
    transfer.carry(&mut on_progress).unwrap();
    transfer.end().unwrap();
    let rows: u64 = transfer.carried().iter().map(|carried| carried.rows).sum();
    eprintln!("{rows} rows copied after {copied:?}, compared after {:?}", began.elapsed());
}
