use super::*;

fn event(name: &str, data: &str) -> Event {
    Event { name: name.to_owned(), data: data.to_owned() }
}

fn read(parts: &[&[u8]]) -> Vec<Event> {
    let mut reader = Reader::new();
    parts.iter().flat_map(|part| reader.take(part).expect("the stream is short")).collect()
}

/// Reads a stream whole, in every two and three parts, and byte by byte.
fn check(stream: &[u8], events: &[Event]) {
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
fn every_way_to_end_a_line_ends_it_however_the_stream_is_cut() {
    let events = [event("", "a"), event("x", "b\nc"), event("", "")];
    for end in ["\n", "\r\n", "\r"] {
        let stream = "data: a\n\nevent: x\ndata:b\ndata: c\n\ndata\n\n".replace('\n', end);
        // A lone carriage return at the very end still waits for nothing.
        check(stream.as_bytes(), &events);
    }
    check(
        b"data: a\r\n\r\ndata: b\n\r\ndata: c\r\r",
        &[event("", "a"), event("", "b"), event("", "c")],
    );
}

#[test]
fn a_mark_comments_ids_and_unknown_fields_are_no_part_of_an_event() {
    let stream = "\u{FEFF}data: a\n: ping\nid: 7\nretry: 10\nwhat: ever\nnothing\n\n";
    check(stream.as_bytes(), &[event("", "a")]);
    check("data: \u{FEFF}a\n\n\u{FEFF}data: b\n\n".as_bytes(), &[event("", "\u{FEFF}a")]);
}

#[test]
fn an_event_without_data_or_without_an_end_is_none() {
    check(b"event: x\n\n: only a comment\n\n\n\n", &[]);
    check(b"data: a\n", &[]);
    check(b"data: a\n\ndata: b", &[event("", "a")]);
    // A name does not outlive its event.
    check(b"event: x\n\ndata: a\n\n", &[event("", "a")]);
}

#[test]
fn one_space_after_the_colon_goes_and_others_stay() {
    check(b"data:  a \ndata: \ndata::b\n\n", &[event("", " a \n\n:b")]);
}

#[test]
fn characters_may_be_cut_and_what_is_none_is_replaced() {
    check("data: größe 🦞\n\n".as_bytes(), &[event("", "größe 🦞")]);
    check(b"data: a\xFFb\xF0\x9F\n\n", &[event("", "a\u{FFFD}b\u{FFFD}")]);
}

#[test]
fn a_line_or_an_event_without_end_is_refused() {
    let reader = || Reader::within(Bounds { line: 16, event: 24 });
    assert_eq!(reader().take(b"data: 0123456789\n\n").expect("it fits").len(), 1);
    assert_eq!(reader().take(b"data: 0123456789a"), Err(BadStream::Line));
    let mut slow = reader();
    let trouble = (0..17).find_map(|_| slow.take(b"x").err());
    assert_eq!(trouble, Some(BadStream::Line));
    let mut long = reader();
    let trouble = (0..9).find_map(|_| long.take(b"data: 0123\n").err());
    assert_eq!(trouble, Some(BadStream::Event));
    // Lines that say nothing may go on for ever: they are not kept.
    let mut calm = reader();
    assert!((0..1_000).all(|_| calm.take(b": still here\n\n").is_ok()));
}
