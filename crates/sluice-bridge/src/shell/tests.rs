//! Real processes. Nothing sleeps for longer than it takes to be killed.

mod endings;
mod gate;

use super::*;
use crate::desk::{Desk, answer, error, request};
use serde_json::{Value, json};
use sluice_core::port::adapter::CallErrorCode;
use tempfile::TempDir;

/// A shell with a workspace of its own.
struct Shop {
    workspace: TempDir,
    adapter: ShellAdapter,
    desk: Desk,
}

impl Shop {
    fn new() -> Shop {
        Shop::with(|config| config)
    }

    fn with(change: impl FnOnce(Config) -> Config) -> Shop {
        let workspace = tempfile::tempdir().unwrap();
        let shared = Workspace::Shared(workspace.path().to_owned());
        let config = change(Config::new(shared));
        Shop { workspace, adapter: ShellAdapter::new(config), desk: Desk::default() }
    }

    async fn ask(&self, request: &Request) -> Answer {
        answer(&self.adapter, request, &self.desk).await
    }

    async fn run(&self, script: &str) -> Answer {
        self.ask(&request("step", script)).await
    }

    /// Whether a command left this file.
    fn has(&self, name: &str) -> bool {
        self.workspace.path().join(name).exists()
    }
}

async fn run(script: &str) -> Answer {
    Shop::new().run(script).await
}

#[tokio::test]
async fn what_a_command_prints_is_kept_exactly_and_comes_as_it_is_printed() {
    let shop = Shop::new();
    let answered = shop.run("printf 'one\\n'; echo two; printf ' three'").await;
    assert_eq!(answered.error, None);
    assert_eq!(answered.text.as_deref(), Some("one\ntwo\n three"));
    assert_eq!(shop.desk.text(), "one\ntwo\n three");
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
async fn standard_input_is_handed_over_after_the_gate() {
    let shop = Shop::new();
    let piped = |script: &str, stdin: &str| Request {
        stdin: Some(stdin.to_owned()),
        ..request("step", script)
    };
    assert_eq!(shop.ask(&piped("cat", "a\nb")).await.text.as_deref(), Some("a\nb"));
    assert_eq!(shop.ask(&piped("read x; echo $x", "go\nb")).await.text.as_deref(), Some("go\n"));
    assert_eq!(run("cat").await.text.as_deref(), Some(""));
    // More than a pipe holds: once read, once not.
    let long = "0123456789abcdef".repeat(20_000);
    assert_eq!(shop.ask(&piped("cat", &long)).await.text.as_ref(), Some(&long));
    assert_eq!(shop.ask(&piped("echo done", &long)).await.text.as_deref(), Some("done\n"));
}

#[tokio::test]
async fn lines_of_standard_error_are_logged() {
    let shop = Shop::new();
    shop.run("echo one >&2; echo two >&2; printf 'three' >&2").await;
    assert_eq!(shop.desk.log(), ["one", "two", "three"]);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let answered = run(r"printf 'a\377b\303\251\303'").await;
    assert_eq!(answered.text.as_deref(), Some("a\u{fffd}bé\u{fffd}"));
}

#[tokio::test]
async fn a_command_sees_only_what_is_allowed_and_who_it_is() {
    let own = [("PATH", "/usr/bin:/bin"), ("SECRET", "s"), ("SLUICE_TOKEN", "x")];
    let own = own.map(|(name, value)| (name.into(), value.into())).to_vec();
    let shop = Shop::with(|config| Config { environment: own, ..config });
    let env = vec![("COLOUR".to_owned(), "red".to_owned())];
    let answered = shop.ask(&Request { env, ..request("step[1]", "env") }).await;
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
    let shop = Shop::new();
    let value = "\"; touch owned; $(touch owned) `touch owned` '\n*";
    let env = vec![("SLUICE_V1".to_owned(), value.to_owned())];
    let answered = shop.ask(&Request { env, ..request("step", r#"printf %s "$SLUICE_V1""#) }).await;
    assert_eq!(answered.text.as_deref(), Some(value));
    assert!(!shop.has("owned"));
}

#[tokio::test]
async fn commands_work_in_their_directory_of_the_workspace() {
    let shop = Shop::new();
    let inside = Request { cwd: Some("a/b".to_owned()), ..request("step", "pwd -P; touch here") };
    let root = shop.workspace.path().canonicalize().unwrap();
    let expected = format!("{}\n", root.join("a/b").display());
    assert_eq!(shop.ask(&inside).await.text, Some(expected));
    assert!(shop.has("a/b/here"));
    let outside = Request { cwd: Some("../x".to_owned()), ..request("step", "touch here") };
    let refused = shop.ask(&outside).await;
    assert_eq!(error(&refused).0, CallErrorCode::InvalidRequest);
    assert_eq!(error(&refused).1, "cwd `../x` leads out of the workspace");
    assert_eq!(shop.desk.emitted().len(), 2, "nothing was started");
}

#[tokio::test]
async fn runs_can_have_a_workspace_each() {
    let shop = Shop::with(|config| match config.workspace.clone() {
        Workspace::Shared(place) => Config { workspace: Workspace::PerRun(place), ..config },
        Workspace::PerRun(_) => config,
    });
    shop.run("touch here").await;
    assert!(shop.has("run_00000000000000000000000000000001/here"));
}

#[tokio::test]
async fn what_the_system_cannot_start_is_refused() {
    let shop = Shop::new();
    let long = "x".repeat(200_000);
    let env = vec![("SLUICE_V1".to_owned(), long.clone())];
    let refused = shop.ask(&Request { env, ..request("step", "true") }).await;
    assert_eq!(error(&refused).0, CallErrorCode::InvalidRequest);
    assert!(error(&refused).1.contains("SLUICE_V1 is over 128 KiB"), "{refused:?}");

    let env = (0..100).map(|n| (format!("V{n}"), "x".repeat(100_000 + n))).collect();
    let refused = shop.ask(&Request { env, ..request("step", "true") }).await;
    assert_eq!(error(&refused).0, CallErrorCode::InvalidRequest);
    assert!(error(&refused).1.ends_with("the largest variable is V99"), "{refused:?}");

    for script in [format!(": {long}"), "echo \0".to_owned()] {
        assert_eq!(error(&shop.run(&script).await).0, CallErrorCode::InvalidRequest);
    }
    let fits = format!(": {}", "x".repeat(ARGUMENT_BYTES_MAX - 3));
    assert_eq!(shop.run(&fits).await.error, None);
}

#[tokio::test]
async fn a_command_may_begin_with_a_dash() {
    let answered = run("-x").await;
    assert_eq!(error(&answered).0, CallErrorCode::ProviderError);
    assert!(error(&answered).1.starts_with("exit status 127"), "{answered:?}");
}

#[tokio::test]
async fn the_adapter_says_what_it_is() {
    let shop = Shop::new();
    assert_eq!(shop.adapter.provider(), "shell");
    assert!(shop.adapter.capabilities().cancel);
    assert_eq!(shop.adapter.health().await, Health::Healthy);
}
