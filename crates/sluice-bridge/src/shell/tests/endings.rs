//! How commands end: by themselves, by a signal, or stopped by the adapter.

use super::*;
use crate::limits::SILENCE_MS;
use crate::shell::survivor::exists;
use std::time::Instant;

/// Starts a child and a grandchild that outlive the shell, and prints their ids.
const BROOD: &str = "sleep 100 & echo $!; (sleep 100 & echo $!); echo ready; ";

/// Completes when none of the printed processes runs.
async fn all_gone(text: &str) {
    let numbers: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(numbers.len(), 2, "{text}");
    let begin = Instant::now();
    while numbers.iter().any(|number| runs(*number)) {
        assert!(begin.elapsed() < Duration::from_secs(5), "{text} still runs");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether it runs and is not a zombie.
fn runs(number: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    exists(number) && !stat.contains(") Z ") && !stat.is_empty()
}

#[tokio::test]
async fn an_exit_status_is_a_failure_with_the_end_of_standard_error() {
    let answered = run("echo out; echo first >&2; echo last >&2; exit 3").await;
    assert_eq!(error(&answered), (CallErrorCode::ProviderError, "exit status 3: first\nlast"));
    assert_eq!(answered.text.as_deref(), Some("out\n"));
    assert_eq!(error(&run("exit 125").await), (CallErrorCode::ProviderError, "exit status 125"));
}

#[tokio::test]
async fn only_complete_last_lines_are_reported() {
    let answered = run("i=0; while [ $i -lt 999 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
    let answered = answered.await;
    let (_, message) = error(&answered);
    let tail = message.strip_prefix("exit status 1: ").unwrap();
    assert!(tail.len() <= 2048 && tail.len() > 1900, "{}", tail.len());
    assert!(tail.starts_with("line ") && tail.ends_with("line 998"), "{tail}");
    let long = run("printf '%05000d' 1 >&2; exit 1").await;
    assert_eq!(error(&long).1.len(), "exit status 1: ".len() + 2048);
}

#[tokio::test]
async fn a_signal_is_a_crash() {
    let answered = run("echo out; kill -9 $$").await;
    assert_eq!(error(&answered), (CallErrorCode::AdapterCrash, "killed by SIGKILL"));
    assert_eq!(answered.text.as_deref(), Some("out\n"));
    assert_eq!(error(&run("kill -15 $$").await).1, "killed by SIGTERM");
}

#[tokio::test]
async fn remaining_processes_are_killed() {
    let begin = Instant::now();
    let answered = run(BROOD).await;
    assert_eq!(answered.error, None);
    assert!(begin.elapsed() < Duration::from_secs(10));
    all_gone(&answered.text.unwrap()).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_answer() {
    let begin = Instant::now();
    let answered = run("setsid sleep 5 & echo done").await;
    assert_eq!(answered.text.as_deref(), Some("done\n"));
    let taken = begin.elapsed();
    assert!(taken < Duration::from_millis(SILENCE_MS + 3000), "{taken:?}");
}

#[tokio::test]
async fn cancelling_ends_the_whole_group() {
    let shell = TestShell::with(|config| Config { grace_ms: 60_000, ..config });
    let request = request("step", &format!("{BROOD} wait"));
    let begin = Instant::now();
    let (answered, ()) = tokio::join!(shell.ask(&request), async {
        shell.call.wait_for_text("ready").await;
        shell.call.cancel();
    });
    assert_eq!(error(&answered), (CallErrorCode::Cancelled, "cancelled"));
    assert!(begin.elapsed() < Duration::from_secs(20), "the grace is not waited out");
    all_gone(&shell.call.text()).await;
}

#[tokio::test]
async fn a_cancelled_command_has_time_to_clean_up() {
    let shell = TestShell::new();
    // The shell dies of the signal; its child survives it and writes a line.
    let script = "sh -c 'trap \"echo bye; touch tidied; exit\" TERM; echo ready; \
                  while :; do sleep 0.01; done'; true";
    let request = request("step", script);
    let (answered, ()) = tokio::join!(shell.ask(&request), async {
        shell.call.wait_for_text("ready").await;
        shell.call.cancel();
    });
    assert_eq!(error(&answered).0, CallErrorCode::Cancelled);
    assert!(shell.has("tidied"));
}

#[tokio::test]
async fn a_command_that_ignores_the_signal_is_killed_after_the_grace() {
    let shell = TestShell::with(|config| Config { grace_ms: 50, ..config });
    let request = request("step", &format!("trap '' TERM; {BROOD} while :; do wait; done"));
    let (answered, ()) = tokio::join!(shell.ask(&request), async {
        shell.call.wait_for_text("ready").await;
        shell.call.cancel();
    });
    assert_eq!(error(&answered).0, CallErrorCode::Cancelled);
    all_gone(&shell.call.text()).await;
}

#[tokio::test]
async fn dropping_the_call_kills_the_group() {
    let shell = TestShell::new();
    let request = request("step", &format!("trap '' TERM; {BROOD} wait; touch survived"));
    tokio::select! {
        biased;
        _ = shell.ask(&request) => panic!("the command was to wait"),
        () = shell.call.wait_for_text("ready") => {}
    }
    all_gone(&shell.call.text()).await;
    let leader = shell.call.process().unwrap();
    while runs(leader.group) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(!shell.has("survived"));
}

#[tokio::test]
async fn too_much_output_is_a_failure_and_kills_the_group() {
    let shell = TestShell::with(|config| Config { stdout_bytes_max: 100_000, ..config });
    let answered = shell.run(&format!("{BROOD} yes")).await;
    let told = (CallErrorCode::ProviderError, "standard output exceeds 100000 bytes");
    assert_eq!(error(&answered), told);
    let numbers: Vec<String> = shell.call.text().lines().take(2).map(str::to_owned).collect();
    all_gone(&numbers.join("\n")).await;

    let shell = TestShell::with(|config| Config { stderr_bytes_max: 1024 * 1024, ..config });
    let answered = shell.run("yes >&2").await;
    assert_eq!(error(&answered).1, "standard error exceeds 1 MiB");

    let shell = TestShell::with(|config| Config { stdout_bytes_max: 10, ..config });
    assert_eq!(shell.run("printf 0123456789").await.error, None);
}

#[tokio::test]
async fn a_long_line_of_standard_error_is_logged_in_pieces() {
    let shell = TestShell::new();
    shell.run("printf '%0100000d' 1 >&2").await;
    let log = shell.call.log();
    assert!(log.len() > 1);
    assert_eq!(log.concat().len(), 100_000);
    assert!(log.iter().all(|line| line.len() < 32 * 1024));
}
