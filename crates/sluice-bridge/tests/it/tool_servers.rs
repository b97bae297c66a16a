//! The MCP client against a server of the official SDK.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing is to fail")]

use serde_json::{Value, json};
use sluice_bridge::mcp::McpServer;
use sluice_bridge::mcp::stdio::Command;
use sluice_bridge::secret::keyring::NamedSecret;
use sluice_bridge::tools::ToolServer;
use sluice_bridge::wire::RequestIndex;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

const PLACE: RequestIndex<'static> = RequestIndex { step: "a", dispatch_no: 1, number: 1 };
const KEY: &str = "official-key-1";

/// Command line of the server.
fn words(way: &[&str]) -> Vec<String> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into();
    let tools = root.join("target/tools/mcp-client");
    let there = tools.join("node_modules/@modelcontextprotocol");
    assert!(there.is_dir(), "the SDK is not installed: run `make mcp-client`");
    let script = root.join("tools/mcp-client/serve.mjs");
    let start = ["node".to_owned(), script.display().to_string(), tools.display().to_string()];
    start.into_iter().chain(way.iter().map(|word| (*word).to_owned())).collect()
}

/// Calls that add, fail and are abandoned.
async fn whole_story(server: &McpServer) {
    let tools = server.tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
    assert_eq!(names, [("counter.add", false), ("counter.fail", false), ("counter.wait", false)]);
    assert_eq!(tools[0].input_schema["required"], json!(["a", "b"]));
    let input = json!({"a": 2, "b": 3});
    let (answer, structured) = server.call("counter.add", &input, PLACE).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.failed), ("5", false));
    assert_eq!(structured.map(Value::Object), Some(json!({"sum": 5})));
    let (failed, _) = server.call("counter.fail", &json!({}), PLACE).await.unwrap();
    assert_eq!((failed.text.as_str(), failed.failed), ("on purpose", true));
    let (unfit, _) = server.call("counter.add", &json!({"a": "x"}), PLACE).await.unwrap();
    assert!(unfit.failed && unfit.text.contains("validation"), "{unfit:?}");
    // Concurrent calls, each with its own answer.
    let sums = (0..100).map(|n| async move {
        let (answer, _) =
            server.call("counter.add", &json!({"a": n, "b": 0}), PLACE).await.unwrap();
        assert_eq!(answer.text, n.to_string());
    });
    futures_util::future::join_all(sums).await;
}

#[tokio::test]
async fn an_official_server_is_used_as_a_process() {
    let server = McpServer::process("counter", Command { argv: words(&["stdio"]), env: vec![] });
    whole_story(&server).await;
    let nothing = json!({});
    let waits = server.call("counter.wait", &nothing, PLACE);
    assert!(timeout(Duration::from_millis(200), waits).await.is_err());
    // The server received the cancellation, and has announced another tool since.
    let heard = async {
        while !server.tools().await.unwrap().iter().any(|tool| tool.name == "counter.late") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), heard).await.expect("it says so");
    let (late, _) = server.call("counter.late", &json!({}), PLACE).await.unwrap();
    assert_eq!(late.text, "late");
}

/// The server over HTTP, and its URL.
async fn listening(form: &[&str]) -> (Child, String) {
    let way: Vec<&str> = ["http"].iter().chain(form).copied().collect();
    let argv = words(&way);
    let mut process = tokio::process::Command::new(&argv[0]);
    process.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = process.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(Duration::from_secs(20), lines.next_line()).await.expect("it starts");
    (child, line.unwrap().unwrap())
}

fn key(text: &str) -> (tempfile::NamedTempFile, NamedSecret) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let reference = format!("file:{}", file.path().display()).parse().unwrap();
    (file, NamedSecret::of_operator(reference))
}

async fn over_http(form: &[&str]) {
    let (_child, url) = listening(form).await;
    let (_file, right) = key(KEY);
    let server = McpServer::remote("counter", &url, Some(right)).unwrap();
    whole_story(&server).await;
    let nothing = json!({});
    let waits = server.call("counter.wait", &nothing, PLACE);
    assert!(timeout(Duration::from_millis(200), waits).await.is_err());
    // A server that has lost the session gets a new one.
    let forgets = reqwest::Client::builder().no_proxy().build().unwrap();
    let forgets = forgets.post(url.replace("/mcp", "/forget")).bearer_auth(KEY).send();
    assert_eq!(forgets.await.unwrap().status(), 204);
    let (sum, _) = server.call("counter.add", &json!({"a": 1, "b": 1}), PLACE).await.unwrap();
    assert_eq!(sum.text, "2");
    let (_file, wrong) = key("another-key-2");
    let stranger = McpServer::remote("counter", &url, Some(wrong)).unwrap();
    let told = stranger.tools().await.unwrap_err().to_string();
    assert_eq!(told, "the tool server `counter` refused: the key was not accepted");
}

#[tokio::test]
async fn an_official_server_is_used_over_http_with_streams() {
    over_http(&[]).await;
}

#[tokio::test]
async fn an_official_server_is_used_over_http_with_json() {
    over_http(&["json"]).await;
}
