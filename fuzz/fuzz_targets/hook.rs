//! Any timestamp, signature and body at an inbound webhook: only a request that was signed with
//! the secret, recently and for the first time, starts a run.

#![no_main]

use fuzz::server::{self, HOOK, Server, ServerResponse};
use fuzz::{CANARY, HOOK_SECRET, split_line};
use libfuzzer_sys::fuzz_target;
use sluice_bridge::secret::Secret;
use sluice_server::inbound_webhooks;
use sluice_server::signature::sign;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

fuzz_target!(|bytes: &[u8]| {
    let (stamp, rest) = split_line(bytes);
    let (signature, body) = split_line(rest);
    server::with(|server| {
        if let Some(forged) = sent(server, stamp, signature, body) {
            assert_eq!(forged.status, 401, "not signed with the secret: {forged:?}");
        }
        let secret = Secret::new(HOOK_SECRET);
        let old = "1700000000";
        let late = sent(server, old, &sign(&secret, old, body), body).expect("it can be sent");
        assert_eq!(late.status, 401, "signed long ago: {late:?}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let (now, moved) = (now.to_string(), format!("0{now}"));
        let right = sign(&secret, &now, body);
        let spelt = sent(server, &moved, &right, body).expect("it can be sent");
        assert_eq!(spelt.status, 401, "another spelling of the time: {spelt:?}");
        let response = sent(server, &now, &right, body).expect("it can be sent");
        assert!(response.status < 500 && response.status != 401, "rightly signed: {response:?}");
        assert!(
            !response.body.contains(CANARY) && !response.body.contains(HOOK_SECRET),
            "{response:?}"
        );
        if response.status == 202 {
            let again = sent(server, &now, &right, body).expect("it can be sent");
            assert_eq!(again.code(), "replayed", "{again:?}");
        }
    });
    // Argument paths of any form applied to any body.
    if let Ok(value) = serde_json::from_slice(body) {
        let paths = BTreeMap::from([
            ("all".to_owned(), "$".to_owned()),
            ("one".to_owned(), signature.to_owned()),
        ]);
        let args = inbound_webhooks::args(&value, &paths);
        assert_eq!(args.get("all"), Some(&value));
    }
});

fn sent(server: &Server, stamp: &str, signature: &str, body: &[u8]) -> Option<ServerResponse> {
    let headers: [(&str, &[u8]); 2] =
        [("sluice-timestamp", stamp.as_bytes()), ("sluice-signature", signature.as_bytes())];
    server.send("POST", &format!("/hooks/{HOOK}"), &headers, body)
}
