//! Any bytes as what a gateway sends of its work: read or refused, written as it was read,
//! and taken only with the tokens of the gateway and of the dispatch.

#![no_main]

use fuzz::server::{self, Answer, Server, dispatch_token};
use fuzz::{CANARY, replaced, split_line};
use libfuzzer_sys::fuzz_target;
use sluice_bridge::protocol::callback::{CallbackBody, Worked};
use sluice_bridge::protocol::parts::PartsBody;
use sluice_core::run::id::RunId;
use std::cell::RefCell;

const COMPLETE: &str = "/api/workflow/step-complete";
const PARTS: &str = "/api/workflow/step-parts";
const TOOL: &str = "/api/workflow/tool-use";

fuzz_target!(|bytes: &[u8]| {
    server::with(|server| {
        let (line, body) = split_line(bytes);
        let body = replaced(body, "RUN", &run(server));
        read_alone(&body);
        let (path, of) = match line {
            "parts" => (PARTS, parts(&body)),
            "tool" => (TOOL, tool(&body)),
            _ => (COMPLETE, complete(&body)),
        };
        let forged = sent(server, path, "sld_forged", &body);
        assert!((400..500).contains(&forged.status), "a forged token: {forged:?}");
        let Some((run, step, dispatch_no)) = of else { return };
        let token = dispatch_token(run, &step, dispatch_no);
        let told = sent(server, path, &token, &body);
        assert!(told.status < 500 && told.status != 401, "{told:?}");
        assert!(!told.body.contains(CANARY), "{told:?}");
        if path == COMPLETE && told.status == 200 {
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

/// A run whose step is with the gateway.
fn run(server: &Server) -> String {
    RUN.with_borrow_mut(|held| {
        let fresh = held.take().filter(|(of, _)| *of == server.waiting);
        let (of, run) = fresh.unwrap_or_else(|| (server.waiting.clone(), server.away()));
        *held = Some((of, run.clone()));
        run
    })
}

/// What is read is written as it was.
fn read_alone(body: &[u8]) {
    if let Ok(read) = CallbackBody::read(body) {
        assert_eq!(CallbackBody::read(&read.bytes()).as_ref(), Ok(&read));
        let _ = read.answer();
    }
    if let Ok(read) = PartsBody::read(body) {
        let written = serde_json::to_vec(&read).expect("parts can be written");
        assert_eq!(PartsBody::read(&written).as_ref(), Ok(&read));
        let _ = read.emissions();
    }
    let worked = Worked { run: RunId(1), step: "one", dispatch_no: 1, from_ms: 0, to_ms: 1 };
    if let Ok(read) = CallbackBody::read_reply(body, worked) {
        assert_eq!((read.run_id, read.step_id.as_str()), (RunId(1), "one"), "its own alone");
    }
}

type Of = Option<(RunId, String, u32)>;

fn complete(body: &[u8]) -> Of {
    let read = CallbackBody::read(body).ok()?;
    Some((read.run_id, read.step_id.clone(), read.dispatch_no?))
}

fn parts(body: &[u8]) -> Of {
    let read = PartsBody::read(body).ok()?;
    Some((read.run_id, read.step_id.clone(), read.dispatch_no))
}

fn tool(body: &[u8]) -> Of {
    let read: serde_json::Value = serde_json::from_slice(body).ok()?;
    let run = RunId::parse(read["run_id"].as_str()?)?;
    let dispatch_no = u32::try_from(read["dispatch_no"].as_u64()?).ok()?;
    Some((run, read["step_id"].as_str()?.to_owned(), dispatch_no))
}

fn sent(server: &Server, path: &str, dispatch: &str, body: &[u8]) -> Answer {
    let headers: [(&str, &[u8]); 2] = [
        ("x-gateway-token", server.gateway_token.as_bytes()),
        ("x-dispatch-token", dispatch.as_bytes()),
    ];
    server.ask("POST", path, &headers, body).expect("a callback is answered in time")
}
