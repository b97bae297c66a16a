//! Cases about provider name, capabilities and health.

use super::super::recording_call::{CallBehaviour, RecordingCall};
use super::super::{CaseResult, failed};
use super::{AdapterUnderTest, call};
use crate::limits::HEALTH_MS;
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

pub(super) async fn health(subject: &AdapterUnderTest) -> CaseResult {
    let asking = AssertUnwindSafe(async { subject.adapter.health().await }).catch_unwind();
    match tokio::time::timeout(Duration::from_millis(HEALTH_MS), asking).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => failed("it panicked"),
        Err(_) => failed(format!("it did not answer within {HEALTH_MS} ms")),
    }
}

pub(super) async fn stable(subject: &AdapterUnderTest) -> CaseResult {
    let said = || (subject.adapter.provider(), subject.adapter.capabilities());
    let before = said();
    if before.0.is_empty() {
        return failed("its provider has no name");
    }
    // The result does not matter: only what it reports afterwards.
    let _ =
        call(subject, &(subject.says)("conformance"), &RecordingCall::new(CallBehaviour::Allows))
            .await;
    if said() != before || said() != before {
        return failed("its provider or its capabilities changed");
    }
    Ok(())
}
