use super::*;

fn event(name: &str, data: &str) -> SseEvent {
    SseEvent { name: name.to_owned(), data: data.to_owned() }
}

fn read(parts: &[&[u8]]) -> Vec<SseEvent> {
    let mut reader = SseReader::new();
    parts.iter().flat_map(|part| reader.push(part).expect("the stream is short")).collect()
}

/// Parses a stream as a whole, split into two and three chunks, and byte by byte.
fn check(stream: &[u8], events: &[SseEvent]) {
    assert_eq!(read(&[stream]), events, "whole");
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read(&bytes), events, "byte by byte");
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let parts = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(read(&parts), events, "cut at {first} and {second}");
        }
    }
}

#[test]
fn every_line_ending_works_for_any_chunking() {
    let events = [event("", "a"), event("x", "b\nc"), event("", "")];
    for end in ["\n", "\r\n", "\r"] {
        let stream = "data: a\n\nevent: x\ndata:b\ndata: c\n\ndata\n\n".replace('\n', end);
        // A final carriage return does not wait for a line feed.
        check(stream.as_bytes(), &events);
    }
    check(
        b"data: a\r\n\r\ndata: b\n\r\ndata: c\r\r",
        &[event("", "a"), event("", "b"), event("", "c")],
    );
}

#[test]
fn a_byte_order_mark_comments_and_unknown_fields_are_ignored() {
    let stream = "\u{FEFF}data: a\n: ping\nid: 7\nretry: 10\nwhat: ever\nnothing\n\n";
    check(stream.as_bytes(), &[event("", "a")]);
    check("data: \u{FEFF}a\n\n\u{FEFF}data: b\n\n".as_bytes(), &[event("", "\u{FEFF}a")]);
}

#[test]
fn an_event_without_data_or_end_is_dropped() {
    check(b"event: x\n\n: only a comment\n\n\n\n", &[]);
    check(b"data: a\n", &[]);
    check(b"data: a\n\ndata: b", &[event("", "a")]);
    // A name does not carry over to the next event.
    check(b"event: x\n\ndata: a\n\n", &[event("", "a")]);
}

#[test]
fn only_one_space_after_the_colon_is_removed() {
    check(b"data:  a \ndata: \ndata::b\n\n", &[event("", " a \n\n:b")]);
}

#[test]
fn characters_may_be_split_and_invalid_ones_are_replaced() {
    check("data: größe 🦞\n\n".as_bytes(), &[event("", "größe 🦞")]);
    check(b"data: a\xFFb\xF0\x9F\n\n", &[event("", "a\u{FFFD}b\u{FFFD}")]);
}

#[test]
fn a_line_or_an_event_without_end_is_refused() {
    let reader = || SseReader::within(StreamLimits { line: 16, event: 24 });
    assert_eq!(reader().push(b"data: 0123456789\n\n").expect("it fits").len(), 1);
    assert_eq!(reader().push(b"data: 0123456789a"), Err(BadStream::Line));
    let mut slow = reader();
    let trouble = (0..17).find_map(|_| slow.push(b"x").err());
    assert_eq!(trouble, Some(BadStream::Line));
    let mut long = reader();
    let trouble = (0..9).find_map(|_| long.push(b"data: 0123\n").err());
    assert_eq!(trouble, Some(BadStream::Event));
    // Ignored lines are not stored and may go on for ever.
    let mut calm = reader();
    assert!((0..1_000).all(|_| calm.push(b": still here\n\n").is_ok()));
}
