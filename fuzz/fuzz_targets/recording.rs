//! Any bytes as a recording: replayed or rejected. A replay that is recorded again has the same
//! contents, without the key.

#![no_main]

use fuzz::{KEY, block_on, set_secrets, with_key};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sluice_bridge::outbound::Request;
use sluice_bridge::record::Recorder;
use sluice_bridge::replay::Replay;
use sluice_bridge::secret::Secret;
use sluice_bridge::wire::{RequestIndex, Wire};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Limit of the input's exchanges that are requested.
const REQUESTS_MAX: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    set_secrets();
    // The secret is read and therefore known: no recording may contain it from now on.
    Secret::read(&"env:FUZZ_KEY".parse().expect("a reference")).expect("it is set");
    let bytes = with_key(bytes);
    let Ok(replay) = Replay::read(&bytes) else { return };
    let requests: Vec<RecordedLine> = bytes
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(RecordedLine::read)
        .take(REQUESTS_MAX)
        .collect();
    let path = PathBuf::from(format!("/dev/shm/sluice-fuzz-recording-{}", std::process::id()));
    let recorder = Recorder::create(&path).expect("a recording can be made");
    let first = block_on(answers(&recorder.wire(replay.wire()), &requests));
    let kept = recorder.finish().expect("the recording is whole");
    assert!(kept <= requests.len());
    let written = std::fs::read(&path).expect("the recording is there");
    let text = String::from_utf8_lossy(&written);
    assert!(!text.contains(KEY), "the key is not recorded");
    // If nothing was redacted, the copy replays like the original.
    if !text.contains("[redacted]") {
        let again = Replay::open(&path).expect("what was written can be read");
        let copied = block_on(answers(&again.wire(), &requests));
        // Bytes that are not text are written in base64, in which a redaction is not seen.
        if !copied.iter().flatten().any(|(_, bytes, _)| holds(bytes, b"[redacted]")) {
            assert_eq!(first, copied);
        }
        assert_eq!(again.unused(), Vec::<String>::new());
    }
    let _ = (replay.diverged(), replay.unused());
    let tools = replay.tools("box");
    let _ = block_on(tools.tools());
    let index = RequestIndex { step: "step", dispatch_no: 1, number: 1 };
    let _ = block_on(tools.call("box.read", &Value::Null, index));
});

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The recorded request of a line.
struct RecordedLine {
    step: String,
    dispatch_no: u32,
    number: u32,
    request: Request,
}

impl RecordedLine {
    fn read(line: &[u8]) -> Option<RecordedLine> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let number = |name: &str| u32::try_from(line[name].as_u64()?).ok();
        let recorded = &line["asked"];
        let body = match &recorded["body"]["json"] {
            Value::Null => recorded["body"]["text"].as_str()?.as_bytes().to_vec(),
            json => json.to_string().into_bytes(),
        };
        let mut request =
            Request::post(recorded["url"].as_str()?, body, Duration::from_secs(1), 1024 * 1024);
        request.method = recorded["method"].as_str()?.parse().ok()?;
        Some(RecordedLine {
            step: line["step"].as_str()?.to_owned(),
            dispatch_no: number("dispatch_no")?,
            number: number("number")?,
            request,
        })
    }
}

/// The response of each request: its status and bytes, or `None`.
async fn answers(
    wire: &Arc<dyn Wire>,
    requests: &[RecordedLine],
) -> Vec<Option<(u16, Vec<u8>, bool)>> {
    let mut all = Vec::new();
    for one in requests {
        let index =
            RequestIndex { step: &one.step, dispatch_no: one.dispatch_no, number: one.number };
        let Ok(mut incoming) = wire.open(index, &one.request).await else {
            all.push(None);
            continue;
        };
        let (mut bytes, status) = (Vec::new(), incoming.status());
        let whole = loop {
            match incoming.chunk().await {
                Ok(Some(part)) => bytes.extend(part),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        all.push(Some((status, bytes, whole)));
    }
    all
}
