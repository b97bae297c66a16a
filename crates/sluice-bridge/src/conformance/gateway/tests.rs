//! The suite on a real bridge, and on gateways with one fault each.

mod faulty;

use super::receiver::Receiver;
use super::{Replies, Suite, Target, names};
use crate::bridge_server::test_bridge::{KEY, TOKEN, TestBridge, local};
use crate::conformance::{CaseVerdict, Report};
use crate::secret::Secret;
use expect_test::expect;
use faulty::{FAULTS, Faulty};
use reqwest::Url;
use sluice_core::id::RunId;
use std::net::SocketAddr;

fn target(at: SocketAddr) -> Target {
    Target {
        url: format!("http://{at}/"),
        key: Secret::new(KEY),
        token: Some(Secret::new(TOKEN)),
        provider: "mock".to_owned(),
        quick: "hello".to_owned(),
        slow: "wait".to_owned(),
        replies: Replies::AtOnce,
        first_run: RunId(1 << 64),
    }
}

async fn receiver() -> Receiver {
    Receiver::listen("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn failures(report: &Report) -> Vec<&'static str> {
    report.failures().map(|case| case.case).collect()
}

/// A bridge that sends its results to the receiver.
async fn bridge(receiver: &Receiver) -> TestBridge {
    let ours = Url::parse(&receiver.url()).unwrap();
    let script = "{quick: {echo: true}, slow: {hang: true}}";
    TestBridge::with(script, |settings, _| settings.servers.push(ours)).await
}

#[tokio::test]
async fn a_bridge_passes() {
    let receiver = receiver().await;
    let world = bridge(&receiver).await;
    let report = Suite::new(target(world.at), local(), receiver).check().await;
    assert_eq!((failures(&report), report.counts()), (vec![], (12, 0, 0)), "{report:#?}");
}

#[tokio::test]
async fn a_wrong_token_or_key_is_detected() {
    let other = || Secret::new("another");
    let with = |at, token, key| Target { token: Some(token), key, ..target(at) };
    let cases = [
        (
            (other(), Secret::new(KEY)),
            "the result comes once, with its ids and both tokens",
            "`x-gateway-token` is not the token of the gateway",
        ),
        (
            (Secret::new(TOKEN), other()),
            "a dispatch is answered with 202 and its ids",
            "a dispatch got status 401 instead of 202: ",
        ),
    ];
    for ((token, key), case, expected) in cases {
        let receiver = receiver().await;
        let world = bridge(&receiver).await;
        let suite = Suite::new(with(world.at, token, key), local(), receiver);
        let CaseVerdict::Failed(why) = suite.check_case(case).await.unwrap().verdict else {
            panic!("{case}: nothing is found");
        };
        assert!(why.starts_with(expected), "{why}");
    }
}

#[tokio::test]
async fn a_gateway_without_sync_is_not_tested_for_it() {
    let faulty = Faulty::start("nothing").await;
    let target = Target { replies: Replies::ByCallback, ..target(faulty.at) };
    let suite = Suite::new(target, local(), receiver().await);
    let case = suite.check_case("a request that waits is answered with the result").await.unwrap();
    assert_eq!(
        case.verdict,
        CaseVerdict::Skipped("the gateway does not have the capability `sync`".to_owned())
    );
    assert!(suite.check_case("no such case").await.is_none());
}

#[tokio::test]
async fn without_a_gateway_every_case_fails() {
    let unused = receiver().await.at();
    let report = Suite::new(target(unused), local(), receiver().await).check().await;
    assert_eq!(failures(&report), names().collect::<Vec<_>>());
}

#[tokio::test]
async fn every_case_detects_its_fault() {
    for case in names() {
        assert!(FAULTS.iter().any(|(of, _)| *of == case), "no fault for: {case}");
    }
    // The faulty gateways are independent, so the cases run concurrently.
    let found = FAULTS.map(|(case, fault)| async move {
        let faulty = Faulty::start(fault).await;
        let suite = Suite::new(target(faulty.at), local(), receiver().await);
        match suite.check_case(case).await.unwrap().verdict {
            CaseVerdict::Failed(why) => {
                assert!(!why.contains(KEY) && why.len() < 4_096, "{why}");
                let why: String = why.chars().take(120).collect();
                format!("{fault}: {why}\n")
            }
            other => panic!("{case}: {fault} is {other:?}"),
        }
    });
    let told: String = futures_util::future::join_all(found).await.concat();
    expect![[r#"
        is fine: `status` is not `healthy`, `degraded` or `offline`
        is silent: it did not answer within 5000 ms
        answers 200: a dispatch got status 200 instead of 202: no reason given
        names another run: `run_id` of the response is "run_1" instead of "run_00000000000000010000000000000000"
        tells no time: `dispatched_at` of the response is not an RFC 3339 time
        repeats the key: `status` of the response is "[redacted][redacted][redacted][redacted][redacted][redacted][redacted][redacted][redacted][
        brings nothing: no result arrived
        brings it twice: the result was accepted, but arrived 2 times
        shows no token of its own: `x-gateway-token` is missing
        shows no token of the dispatch: `x-dispatch-token` is not the token of the dispatch
        does not say which dispatch: the result has no `dispatch_no`
        brings another's: the result belongs to another dispatch
        brings rubbish: the result is malformed: the body is not valid: missing field `step_id` at line 1 column 49
        is strict: a dispatch got status 400 instead of 202: no reason given
        keeps to nothing: the dispatch got status 202 instead of 4xx
        lets everybody in: `/api/v2/dispatch` without a key got status 202 instead of 401
        works for strangers: the dispatch was rejected, but executed
        breaks on rubbish: an empty body got status 500 instead of 4xx
        forgets at once: the dispatch was sent twice concurrently, and 2 results arrived
        forgets what is over: the dispatch was sent again after its end, and was executed again
        gives up: the result was answered with 503, and was not sent again
        does not stop: no result arrived
        blames the provider: the result is "failed", `provider_error` instead of "failed", `cancelled`
        fails when late: the result is "failed" instead of "timed_out"
        answers later: the request got status 202 instead of 200
        answers twice: the result was returned synchronously and also by callback
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn a_correct_implementation_passes_every_case() {
    let faulty = Faulty::start("nothing").await;
    let report = Suite::new(target(faulty.at), local(), receiver().await).check().await;
    assert_eq!((failures(&report), report.counts()), (vec![], (12, 0, 0)), "{report:#?}");
}
