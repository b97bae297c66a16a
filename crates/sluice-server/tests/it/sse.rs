//! A strict reader of event streams.

use crate::client::{TestRequest, Wire, find};
use crate::world::World;
use serde_json::Value;

/// The fields of an event, between two empty lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comment: Option<String>,
}

impl Frame {
    /// Parses a frame as a browser does: a line ends at CR, LF or both.
    fn parse(text: &str) -> Frame {
        let mut frame = Frame::default();
        for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
            let slot = match field {
                "" => &mut frame.comment,
                "id" => &mut frame.id,
                "event" => &mut frame.event,
                "data" => &mut frame.data,
                other => panic!("a stream has no field `{other}`: {text}"),
            };
            assert!(slot.is_none(), "`{field}` comes twice: {text}");
            *slot = value;
        }
        frame
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}

/// A stream that is being read.
pub(crate) struct Stream {
    wire: Wire,
    text: Vec<u8>,
}

impl Stream {
    /// Opens a stream, which must be admitted.
    pub(crate) async fn open(world: &World, request: &TestRequest) -> Stream {
        let wire = world.begin(request).await;
        assert_eq!(wire.status, 200, "{} {}", request.method, request.target);
        let is = |name: &str, value: &str| assert_eq!(wire.header(name), Some(value));
        is("content-type", "text/event-stream; charset=utf-8");
        is("cache-control", "no-cache, no-transform");
        is("x-accel-buffering", "no");
        Stream { wire, text: Vec::new() }
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = find(&self.text, b"\n\n") {
                let frame: Vec<u8> = self.text.drain(..end + 2).collect();
                return Some(Frame::parse(std::str::from_utf8(&frame[..end]).unwrap()));
            }
            match self.wire.chunk().await {
                Some(chunk) => self.text.extend(chunk),
                None => {
                    assert!(self.text.is_empty(), "the stream breaks off in a frame");
                    return None;
                }
            }
        }
    }

    /// All frames up to the end.
    pub(crate) async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}
