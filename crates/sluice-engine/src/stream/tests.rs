//! Parts are joined, rate-limited, bounded, and taken in order.

use super::*;
use futures_util::FutureExt as _;

const AT: StepAt = StepAt { step: 0, item: None };

fn config() -> Config {
    Config { delta_ms: 50, deltas_per_second: 100, ..Config::default() }
}

fn parts(inputs: &[TurnInput]) -> Vec<(u32, DeltaPart)> {
    let part = |input: &TurnInput| match &input.command {
        Command::Stream { dispatch_no, part, .. } => (*dispatch_no, part.clone()),
        other => panic!("{other:?} is not a part"),
    };
    inputs.iter().map(part).collect()
}

fn text(text: &str) -> DeltaPart {
    DeltaPart::Text(text.to_owned())
}

fn media(url: &str) -> DeltaPart {
    DeltaPart::Media { url: url.to_owned(), mime: "image/png".to_owned() }
}

fn due(streams: &mut Streams) -> Vec<DeltaPart> {
    let mut inputs = Vec::new();
    streams.take_due(&config(), &mut inputs);
    parts(&inputs).into_iter().map(|(_, part)| part).collect()
}

async fn pass(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn small_chunks_become_few_parts() {
    let budget = StreamBudget::default();
    let mut streams = Streams::new(&budget);
    let stream = streams.open(AT, 1);
    assert_eq!(streams.due(&config()), None);
    pass(1).await;
    let (mut handed, mut sent) = (Vec::new(), String::new());
    for chunk in 0..1000 {
        let text = format!("{chunk} ");
        stream.text(&text).now_or_never().expect("there is room").unwrap();
        sent.push_str(&text);
        pass(1).await;
        handed.extend(due(&mut streams));
    }
    assert_eq!(handed.len(), 20, "twenty a second");
    let mut rest = Vec::new();
    streams.end(AT, 1, &mut rest);
    handed.extend(parts(&rest).into_iter().map(|(_, part)| part));
    let texts = handed.iter().map(|part| match part {
        DeltaPart::Text(text) => text.as_str(),
        other => panic!("{other:?} is not text"),
    });
    let texts: Vec<&str> = texts.collect();
    assert_eq!(texts.concat(), sent);
    assert_eq!(budget.live(), 1, "the adapter still has its end");
    assert_eq!(stream.text("late").await, Err(Closed));
    drop(stream);
    assert_eq!(budget.live(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_more_streams_there_are_the_slower_is_each() {
    let mut streams = Streams::new(&StreamBudget::default());
    let steps = (0..20).map(|step| StepAt { step, item: None });
    let open: Vec<_> = steps.map(|at| streams.open(at, 1)).collect();
    let mut handed = 0;
    for _ in 0..1000 {
        for stream in &open {
            stream.text("x").await.unwrap();
        }
        pass(1).await;
        handed += due(&mut streams).len();
    }
    // A hundred a second for all of them: each one every 200 ms.
    assert!((80..=120).contains(&handed), "{handed}");
}

#[tokio::test(start_paused = true)]
async fn streams_of_a_run_are_flushed_on_the_same_ticks() {
    let mut streams = Streams::new(&StreamBudget::default());
    let (one, other) = (streams.open(AT, 1), streams.open(StepAt { step: 1, item: None }, 1));
    pass(3).await;
    one.text("a").await.unwrap();
    pass(30).await;
    other.text("b").await.unwrap();
    let at = streams.due(&config()).unwrap();
    assert_eq!((at - streams.start).as_millis(), 50);
    assert_eq!(due(&mut streams), []);
    pass(17).await;
    assert_eq!(due(&mut streams).len(), 2);
    assert_eq!(streams.due(&config()), None);
}

#[tokio::test(start_paused = true)]
async fn the_first_part_wakes_the_run_once() {
    let mut streams = Streams::new(&StreamBudget::default());
    let stream = streams.open(AT, 1);
    assert!(streams.data_arrived().now_or_never().is_none());
    stream.text("a").await.unwrap();
    stream.text("b").await.unwrap();
    assert!(streams.data_arrived().now_or_never().is_some());
    assert!(streams.data_arrived().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_media_part_keeps_its_position_between_texts() {
    let mut streams = Streams::new(&StreamBudget::default());
    let stream = streams.open(AT, 3);
    for chunk in ["a", "b"] {
        stream.text(chunk).await.unwrap();
    }
    stream.media("one".to_owned(), "image/png".to_owned()).await.unwrap();
    stream.media("two".to_owned(), "image/png".to_owned()).await.unwrap();
    stream.text("c").await.unwrap();
    pass(50).await;
    // One at a time, so that media parts do not bypass the rate limit.
    assert_eq!(due(&mut streams), [text("ab")]);
    assert_eq!(due(&mut streams), []);
    pass(50).await;
    assert_eq!(due(&mut streams), [media("one")]);
    // The attempt ends: the rest is taken at once.
    let mut inputs = Vec::new();
    streams.end(AT, 3, &mut inputs);
    assert_eq!(parts(&inputs), [(3, media("two")), (3, text("c"))]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_waits_for_room_and_loses_nothing() {
    let mut streams = Streams::new(&StreamBudget::default());
    let stream = streams.open(AT, 1);
    // Characters of three bytes do not fit evenly.
    let flood = "€".repeat(BUFFER_BYTES_MAX);
    let sent = flood.clone();
    let writer = tokio::spawn(async move { stream.text(&sent).await });
    let mut all = String::new();
    while all.len() < flood.len() {
        tokio::task::yield_now().await;
        pass(50).await;
        for part in due(&mut streams) {
            let DeltaPart::Text(text) = part else { panic!("{part:?} is not text") };
            assert!(text.len() <= BUFFER_BYTES_MAX);
            all.push_str(&text);
        }
    }
    assert_eq!(writer.await.unwrap(), Ok(()));
    assert!(all == flood);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_adapter_is_released_when_its_stream_closes() {
    let mut streams = Streams::new(&StreamBudget::default());
    let stream = streams.open(AT, 1);
    let flood = "x".repeat(2 * BUFFER_BYTES_MAX);
    let writer = tokio::spawn(async move { stream.text(&flood).await });
    tokio::task::yield_now().await;
    // The step is dispatched again: parts of the earlier call are rejected.
    let later = streams.open(AT, 2);
    assert_eq!(writer.await.unwrap(), Err(Closed));
    later.text("new").await.unwrap();
    let mut inputs = Vec::new();
    streams.end(AT, 1, &mut inputs);
    assert_eq!(inputs.len(), 0);
    streams.take_all(&mut inputs);
    assert_eq!(parts(&inputs), [(2, text("new"))]);
}

#[test]
fn the_buffer_of_a_stream_shrinks_with_their_number_to_a_minimum() {
    let budget = StreamBudget::default();
    let rooms = [1, 256, 512, 1_000_000].map(|live| {
        budget.0.store(live, Ordering::Relaxed);
        budget.room()
    });
    assert_eq!(rooms, [BUFFER_BYTES_MAX, BUFFER_BYTES_MAX, BUFFER_BYTES_MAX / 2, BUFFER_BYTES_MIN]);
}
