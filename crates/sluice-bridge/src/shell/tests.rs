//! Tests with real processes. No process sleeps longer than it takes to kill it.

mod barrier;
mod endings;

use super::*;
use crate::fake_call::{FakeCall, answer, error, request};
use serde_json::{Value, json};
use sluice_core::port::adapter::CallErrorCode;
use tempfile::TempDir;

/// A shell adapter with its own workspace.
struct TestShell {
    workspace: TempDir,
    adapter: ShellAdapter,
    call: FakeCall,
}

impl TestShell {
    fn new() -> TestShell {
        TestShell::with(|config| config)
    }

    fn with(change: impl FnOnce(Config) -> Config) -> TestShell {
        let workspace = tempfile::tempdir().unwrap();
        let shared = Workspace::Shared(workspace.path().to_owned());
        let config = change(Config::new(shared));
        TestShell { workspace, adapter: ShellAdapter::new(config), call: FakeCall::default() }
    }

    async fn ask(&self, request: &Request) -> Answer {
        answer(&self.adapter, request, &self.call).await
    }

    async fn run(&self, script: &str) -> Answer {
        self.ask(&request("step", script)).await
    }

    /// Whether a command created this file.
    fn has(&self, name: &str) -> bool {
        self.workspace.path().join(name).exists()
    }
}

async fn run(script: &str) -> Answer {
    TestShell::new().run(script).await
}

#[tokio::test]
async fn output_is_streamed_and_kept_exactly() {
    let shell = TestShell::new();
    let answered = shell.run("printf 'one\\n'; echo two; printf ' three'").await;
    assert_eq!(answered.error, None);
    assert_eq!(answered.text.as_deref(), Some("one\ntwo\n three"));
    assert_eq!(shell.call.text(), "one\ntwo\n three");
    assert_eq!(answered.outputs, None);
    assert_eq!(run("true").await.text.as_deref(), Some(""));
}

#[tokio::test]
async fn output_that_is_an_object_becomes_the_outputs() {
    let outputs = run(r#"echo '{"total": 49}'"#).await.outputs;
    assert_eq!(outputs.map(Value::Object), Some(json!({"total": 49})));
    assert_eq!(run(r#"echo 'total: {"total": 49}'"#).await.outputs, None);
    assert_eq!(run(r#"echo '{"total": 49}'; exit 1"#).await.outputs, None);
}

#[tokio::test]
async fn standard_input_follows_the_start_word() {
    let shell = TestShell::new();
    let piped = |script: &str, stdin: &str| Request {
        stdin: Some(stdin.to_owned()),
        ..request("step", script)
    };
    assert_eq!(shell.ask(&piped("cat", "a\nb")).await.text.as_deref(), Some("a\nb"));
    assert_eq!(shell.ask(&piped("read x; echo $x", "go\nb")).await.text.as_deref(), Some("go\n"));
    assert_eq!(run("cat").await.text.as_deref(), Some(""));
    // More than a pipe buffer: once read, once ignored.
    let long = "0123456789abcdef".repeat(20_000);
    assert_eq!(shell.ask(&piped("cat", &long)).await.text.as_ref(), Some(&long));
    assert_eq!(shell.ask(&piped("echo done", &long)).await.text.as_deref(), Some("done\n"));
}

#[tokio::test]
async fn lines_of_standard_error_are_logged() {
    let shell = TestShell::new();
    shell.run("echo one >&2; echo two >&2; printf 'three' >&2").await;
    assert_eq!(shell.call.log(), ["one", "two", "three"]);
}

#[tokio::test]
async fn invalid_utf8_is_replaced() {
    let answered = run(r"printf 'a\377b\303\251\303'").await;
    assert_eq!(answered.text.as_deref(), Some("a\u{fffd}bé\u{fffd}"));
}

#[tokio::test]
async fn a_command_sees_only_allowed_variables_and_its_ids() {
    let own = [("PATH", "/usr/bin:/bin"), ("SECRET", "s"), ("SLUICE_TOKEN", "x")];
    let own = own.map(|(name, value)| (name.into(), value.into())).to_vec();
    let shell = TestShell::with(|config| Config { environment: own, ..config });
    let env = vec![("COLOUR".to_owned(), "red".to_owned())];
    let answered = shell.ask(&Request { env, ..request("step[1]", "env") }).await;
    let mut names: Vec<String> =
        answered.text.unwrap().lines().map(|line| line.split('=').next().unwrap().into()).collect();
    // Shells set these themselves.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
    names.sort();
    assert_eq!(
        names,
        [
            "COLOUR",
            "PATH",
            "SLUICE_ATTEMPT",
            "SLUICE_DISPATCH_NO",
            "SLUICE_IDEMPOTENCY_KEY",
            "SLUICE_RUN_ID",
            "SLUICE_STEP_ID"
        ]
    );
}

#[tokio::test]
async fn a_value_in_the_environment_is_data() {
    let shell = TestShell::new();
    let value = "\"; touch owned; $(touch owned) `touch owned` '\n*";
    let env = vec![("SLUICE_V1".to_owned(), value.to_owned())];
    let answered =
        shell.ask(&Request { env, ..request("step", r#"printf %s "$SLUICE_V1""#) }).await;
    assert_eq!(answered.text.as_deref(), Some(value));
    assert!(!shell.has("owned"));
}

#[tokio::test]
async fn commands_work_in_their_directory_of_the_workspace() {
    let shell = TestShell::new();
    let inside = Request { cwd: Some("a/b".to_owned()), ..request("step", "pwd -P; touch here") };
    let root = shell.workspace.path().canonicalize().unwrap();
    let expected = format!("{}\n", root.join("a/b").display());
    assert_eq!(shell.ask(&inside).await.text, Some(expected));
    assert!(shell.has("a/b/here"));
    let outside = Request { cwd: Some("../x".to_owned()), ..request("step", "touch here") };
    let refused = shell.ask(&outside).await;
    assert_eq!(error(&refused).0, CallErrorCode::InvalidRequest);
    assert_eq!(error(&refused).1, "cwd `../x` leads outside the workspace");
    assert_eq!(shell.call.emitted().len(), 2, "nothing was started");
}

#[tokio::test]
async fn runs_can_have_a_workspace_each() {
    let shell = TestShell::with(|config| match config.workspace.clone() {
        Workspace::Shared(place) => Config { workspace: Workspace::PerRun(place), ..config },
        Workspace::PerRun(_) => config,
    });
    shell.run("touch here").await;
    assert!(shell.has("run_00000000000000000000000000000001/here"));
}

#[tokio::test]
async fn an_impossible_command_is_rejected() {
    let shell = TestShell::new();
    let long = "x".repeat(200_000);
    let env = vec![("SLUICE_V1".to_owned(), long.clone())];
    let refused = shell.ask(&Request { env, ..request("step", "true") }).await;
    assert_eq!(error(&refused).0, CallErrorCode::InvalidRequest);
    assert!(error(&refused).1.contains("SLUICE_V1 exceeds 128 KiB"), "{refused:?}");

    let env = (0..100).map(|n| (format!("V{n}"), "x".repeat(100_000 + n))).collect();
    let refused = shell.ask(&Request { env, ..request("step", "true") }).await;
    assert_eq!(error(&refused).0, CallErrorCode::InvalidRequest);
    assert!(error(&refused).1.ends_with("the largest variable is V99"), "{refused:?}");

    for script in [format!(": {long}"), "echo \0".to_owned()] {
        assert_eq!(error(&shell.run(&script).await).0, CallErrorCode::InvalidRequest);
    }
    let fits = format!(": {}", "x".repeat(ARGUMENT_BYTES_MAX - 3));
    assert_eq!(shell.run(&fits).await.error, None);
}

#[tokio::test]
async fn commands_wait_while_all_places_are_taken() {
    let running = Arc::new(Semaphore::new(1));
    let shell = TestShell::with(|config| Config { running: Arc::clone(&running), ..config });
    // A second command at the same time would find the directory.
    let alone = "mkdir taken && sleep 0.1 && rmdir taken";
    let (one, two) = tokio::join!(shell.run(alone), shell.run(alone));
    assert_eq!((one.error, two.error), (None, None));
    let taken = running.acquire().await.unwrap();
    shell.call.cancel();
    assert_eq!(error(&shell.run("true").await).0, CallErrorCode::Cancelled);
    drop(taken);
}

#[tokio::test]
async fn a_command_may_begin_with_a_dash() {
    let answered = run("-x").await;
    assert_eq!(error(&answered).0, CallErrorCode::ProviderError);
    assert!(error(&answered).1.starts_with("exit status 127"), "{answered:?}");
}

#[tokio::test]
async fn the_adapter_reports_its_provider_and_capabilities() {
    let shell = TestShell::new();
    assert_eq!(shell.adapter.provider(), "shell");
    assert!(shell.adapter.capabilities().cancel);
    assert_eq!(shell.adapter.health().await, Health::Healthy);
}
