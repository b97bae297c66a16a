use super::record::SpoolState;
use super::*;
use crate::fake_call;
use crate::protocol::callback::{CallbackBody, ExecutedDispatch};
use crate::protocol::dispatch::{DispatchBody, ReturnAddress};
use sluice_core::port::adapter::Answer;

fn accepted(step: &str) -> SpoolRecord {
    let back =
        ReturnAddress { dispatch_token: Some("sld_x".to_owned()), ..ReturnAddress::default() };
    SpoolRecord::accepted(&DispatchBody::new(&fake_call::request(step, "do it"), "mock", back), 5)
}

fn result(kept: &SpoolRecord) -> CallbackBody {
    let worked = ExecutedDispatch {
        run: kept.run(),
        step: &kept.step,
        dispatch_no: kept.dispatch_no,
        from_ms: 5,
        to_ms: 6,
    };
    CallbackBody::new(worked, Answer { text: Some("done".to_owned()), ..Answer::default() })
}

#[tokio::test]
async fn records_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (spool, found) = Spool::open(dir.path()).unwrap();
    assert!(found.records.is_empty());
    let (one, two, three) = (accepted("one"), accepted("two"), accepted("three"));
    for kept in [&one, &two, &three] {
        spool.write(kept.key(), kept).await.unwrap();
    }
    let done = two.clone().finished(result(&two), Vec::new(), 9);
    spool.write(two.key(), &done).await.unwrap();
    spool.remove(three.key()).await.unwrap();
    spool.remove(three.key()).await.unwrap();
    assert_eq!(spool.read(two.key()).await.unwrap(), Some(done.clone()));
    assert_eq!(spool.read(three.key()).await.unwrap(), None);
    let busy = Spool::open(dir.path()).unwrap_err();
    assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
    drop(spool);
    let (spool, found) = reopen(dir.path()).await;
    assert_eq!(found.aside, 0);
    let mut states: Vec<_> =
        found.records.iter().map(|(_, kept)| (&*kept.step, kept.state)).collect();
    states.sort_by_key(|(step, _)| *step);
    assert_eq!(states, [("one", SpoolState::Accepted), ("two", SpoolState::Finished)]);
    let read = spool.read(two.key()).await.unwrap().unwrap();
    assert_eq!(read, done);
    assert_eq!(read.with_state(SpoolState::Delivered, 10).dispatch_token, None);
}

/// Opens the spool again once the previous writer has released the lock.
async fn reopen(dir: &Path) -> (Spool, SpoolContents) {
    for _ in 0..500 {
        match Spool::open(dir) {
            Ok(open) => return open,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the spool is never let go");
}

#[tokio::test]
async fn unreadable_files_are_moved_aside_and_the_rest_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let good = accepted("good");
    let name = |step: &str| accepted(step).key().to_string();
    let torn = accepted("torn").encode();
    let mut flipped = accepted("flipped").encode();
    *flipped.last_mut().unwrap() ^= 1;
    let files = [
        (good.key().to_string(), good.encode()),
        (name("torn"), torn[..torn.len() / 2].to_vec()),
        (name("flipped"), flipped),
        (name("empty"), Vec::new()),
        // A record under the name of another dispatch.
        (name("other"), accepted("another").encode()),
        ("README".to_owned(), b"not mine".to_vec()),
    ];
    for (name, bytes) in &files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    fs::write(dir.path().join("half.tmp"), b"half").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    let (_spool, found) = Spool::open(dir.path()).unwrap();
    assert_eq!(found.aside, 6);
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.records[0].1.step, "good");
    assert_eq!(fs::read_dir(dir.path().join(ASIDE)).unwrap().count(), 6);
    assert!(!dir.path().join("half.tmp").exists());
}

#[test]
fn a_spool_keeps_itself_out_of_repositories() {
    let dir = tempfile::tempdir().unwrap();
    let (_spool, found) = Spool::open(dir.path()).unwrap();
    assert_eq!(found.aside, 0);
    assert_eq!(fs::read_to_string(dir.path().join(gitignore::FILE)).unwrap(), "*\n");
}
