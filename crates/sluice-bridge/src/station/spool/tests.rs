use super::kept::State;
use super::*;
use crate::desk;
use crate::protocol::callback::{CallbackBody, Worked};
use crate::protocol::dispatch::{DispatchBody, Return};
use sluice_core::port::adapter::Answer;

fn accepted(step: &str) -> Kept {
    let back = Return { dispatch_token: Some("sld_x".to_owned()), ..Return::default() };
    Kept::accepted(&DispatchBody::new(&desk::request(step, "do it"), "mock", back), 5)
}

fn result(kept: &Kept) -> CallbackBody {
    let worked = Worked {
        run: kept.run(),
        step: &kept.step,
        dispatch_no: kept.dispatch_no,
        from_ms: 5,
        to_ms: 6,
    };
    CallbackBody::new(worked, Answer { text: Some("done".to_owned()), ..Answer::default() })
}

#[tokio::test]
async fn what_was_written_is_there_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (spool, found) = Spool::open(dir.path()).unwrap();
    assert!(found.kept.is_empty());
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
    let mut states: Vec<_> = found.kept.iter().map(|(_, kept)| (&*kept.step, kept.state)).collect();
    states.sort_by_key(|(step, _)| *step);
    assert_eq!(states, [("one", State::Accepted), ("two", State::Finished)]);
    let read = spool.read(two.key()).await.unwrap().unwrap();
    assert_eq!(read, done);
    assert_eq!(read.now(State::Delivered, 10).dispatch_token, None);
}

/// Opens again, when the writer before has let go.
async fn reopen(dir: &Path) -> (Spool, Found) {
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
async fn what_cannot_be_read_is_set_aside_and_the_rest_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let good = accepted("good");
    let name = |step: &str| accepted(step).key().to_string();
    let torn = accepted("torn").bytes();
    let mut flipped = accepted("flipped").bytes();
    *flipped.last_mut().unwrap() ^= 1;
    let files = [
        (good.key().to_string(), good.bytes()),
        (name("torn"), torn[..torn.len() / 2].to_vec()),
        (name("flipped"), flipped),
        (name("empty"), Vec::new()),
        // Under the name of another.
        (name("other"), accepted("another").bytes()),
        ("README".to_owned(), b"not mine".to_vec()),
    ];
    for (name, bytes) in &files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    fs::write(dir.path().join("half.tmp"), b"half").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    let (_spool, found) = Spool::open(dir.path()).unwrap();
    assert_eq!(found.aside, 6);
    assert_eq!(found.kept.len(), 1);
    assert_eq!(found.kept[0].1.step, "good");
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
