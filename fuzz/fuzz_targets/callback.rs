//! Any bytes as a gateway's callback: parsed or rejected, encoded as it was parsed, and
//! accepted only with the tokens of gateway and dispatch.

#![no_main]

use fuzz::server::{self, Server, ServerResponse, dispatch_token};
use fuzz::{CANARY, replaced, split_line};
use libfuzzer_sys::fuzz_target;
use sluice_bridge::protocol::callback::{CallbackBody, ExecutedDispatch};
use sluice_bridge::protocol::parts::PartsBody;
use sluice_core::id::RunId;
use std::cell::RefCell;

const COMPLETE: &str = "/api/workflow/step-complete";
const PARTS: &str = "/api/workflow/step-parts";
const TOOL: &str = "/api/workflow/tool-use";

fuzz_target!(|bytes: &[u8]| {
    server::with(|server| {
        let (line, body) = split_line(bytes);
        let body = replaced(body, "RUN", &run(server));
        check_round_trip(&body);
        let (path, ids) = match line {
            "parts" => (PARTS, parts(&body)),
            "tool" => (TOOL, tool(&body)),
            _ => (COMPLETE, complete(&body)),
        };
        let forged = sent(server, path, "sld_forged", &body);
        assert!((400..500).contains(&forged.status), "a forged token: {forged:?}");
        let Some((run, step, dispatch_no)) = ids else { return };
        let token = dispatch_token(run, &step, dispatch_no);
        let response = sent(server, path, &token, &body);
        assert!(response.status < 500 && response.status != 401, "{response:?}");
        assert!(!response.body.contains(CANARY), "{response:?}");
        if path == COMPLETE && response.status == 200 {
            let again = sent(server, path, &token, &body);
            assert_eq!(again.json()["deduplicated"], true, "a result counts once: {again:?}");
            RUN.set(None);
        }
    });
});

thread_local! {
    /// The server's run that waits for a callback, with an id that only that server has.
    static RUN: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// A run with a step that was dispatched to the gateway.
fn run(server: &Server) -> String {
    RUN.with_borrow_mut(|held| {
        let fresh = held.take().filter(|(ids, _)| *ids == server.waiting);
        let (ids, run) = fresh.unwrap_or_else(|| (server.waiting.clone(), server.dispatched_run()));
        *held = Some((ids, run.clone()));
        run
    })
}

/// A parsed body is encoded to the same value.
fn check_round_trip(body: &[u8]) {
    if let Ok(read) = CallbackBody::read(body) {
        assert_eq!(CallbackBody::read(&read.bytes()).as_ref(), Ok(&read));
        let _ = read.answer();
    }
    if let Ok(read) = PartsBody::read(body) {
        let written = serde_json::to_vec(&read).expect("parts can be written");
        assert_eq!(PartsBody::read(&written).as_ref(), Ok(&read));
        let _ = read.emissions();
    }
    let worked =
        ExecutedDispatch { run: RunId(1), step: "one", dispatch_no: 1, from_ms: 0, to_ms: 1 };
    if let Ok(read) = CallbackBody::read_reply(body, worked) {
        assert_eq!((read.run_id, read.step_id.as_str()), (RunId(1), "one"), "its own alone");
    }
}

type DispatchIds = Option<(RunId, String, u32)>;

fn complete(body: &[u8]) -> DispatchIds {
    let read = CallbackBody::read(body).ok()?;
    Some((read.run_id, read.step_id.clone(), read.dispatch_no?))
}

fn parts(body: &[u8]) -> DispatchIds {
    let read = PartsBody::read(body).ok()?;
    Some((read.run_id, read.step_id.clone(), read.dispatch_no))
}

fn tool(body: &[u8]) -> DispatchIds {
    let read: serde_json::Value = serde_json::from_slice(body).ok()?;
    let run = RunId::parse(read["run_id"].as_str()?)?;
    let dispatch_no = u32::try_from(read["dispatch_no"].as_u64()?).ok()?;
    Some((run, read["step_id"].as_str()?.to_owned(), dispatch_no))
}

fn sent(server: &Server, path: &str, dispatch: &str, body: &[u8]) -> ServerResponse {
    let headers: [(&str, &[u8]); 2] = [
        ("x-gateway-token", server.gateway_token.as_bytes()),
        ("x-dispatch-token", dispatch.as_bytes()),
    ];
    server.send("POST", path, &headers, body).expect("a callback is answered in time")
}
