//! Tests against a server process that is a script.

use super::*;
use sluice_govern::catalog::ToolDeclaration;
use std::path::Path;
use tokio::time::{sleep, timeout};

/// Implements a minimum of the protocol. Logs its input to the file `heard`, and each start to
/// `starts`.
const SCRIPT: &str = r#"
echo $$ >> "$HOME/starts"
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
text() { say '"id":'"$1"',"result":{"content":[{"type":"text","text":"'"$2"'"}]}'; }
echo 'a banner that is no message'
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$HOME/heard"
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in
    *'"method":"initialize"'*)
      say '"id":'"$id"',"result":{"protocolVersion":"'"${SPOKEN:-2025-03-26}"'","capabilities":{}}' ;;
    *'"cursor":"2"'*)
      say '"id":'"$id"',"result":{"tools":[{"name":"die"},{"name":"a b"},{"name":"odd","inputSchema":1}]}' ;;
    *'"tools/list"'*)
      say '"id":'"$id"',"result":{"nextCursor":"2","tools":[{"name":"echo","description":"says it","inputSchema":{"type":"object","required":["x"]},"annotations":{"readOnlyHint":true}}]}' ;;
    *'"name":"echo"'*) text "$id" "echoed" ;;
    *'"name":"env"'*) text "$id" "<$PASSED> <$HIDDEN> <$SLUICE_TOKEN>" ;;
    *'"name":"die"'*) echo 'out of luck' >&2; exit 3 ;;
    *'"name":"first"'*) first=$id ;;
    *'"name":"second"'*) text "$id" two; text "$first" one ;;
    *'"name":"no"'*) say '"id":'"$id"',"error":{"code":-32602,"message":"not like that"}' ;;
    *'"name":"change"'*) say '"method":"notifications/tools/list_changed"'; text "$id" changed ;;
    *'"name":"ask"'*)
      say '"id":"q1","method":"ping"'; IFS= read -r one
      say '"id":"q2","method":"roots/list"'; IFS= read -r two
      case $one in *'"result":{}'*) case $two in *32601*) text "$id" asked ;; esac ;; esac ;;
    *'"name":"long"'*) head -c 9000000 /dev/zero | tr '\0' x ;;
  esac
done
sleep "${LINGER:-0}"
echo over >> "$HOME/heard"
"#;

struct ScriptedServer {
    dir: tempfile::TempDir,
}

impl ScriptedServer {
    fn new() -> ScriptedServer {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("server.sh"), SCRIPT).unwrap();
        ScriptedServer { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The server, with the test's directory and these variables.
    fn server(&self, variables: &str) -> McpServer {
        let home = self.path().display();
        let line = format!("HOME={home} {variables} exec sh {home}/server.sh");
        McpServer::process("t", command(&line, &[]))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Waits until the server has received a text.
    async fn wait_for_input(&self, part: &str) {
        let heard = async {
            while !self.read("heard").contains(part) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), heard).await.expect("it is heard");
    }
}

fn command(line: &str, env: &[&str]) -> Command {
    let argv = ["sh", "-c", line].map(str::to_owned).to_vec();
    Command { argv, env: env.iter().map(|name| (*name).to_owned()).collect() }
}

#[tokio::test]
async fn a_process_is_started_when_first_needed_and_lists_all_pages() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    assert_eq!(server_dir.read("starts"), "");
    let tools = server.tools().await.unwrap();
    let shown: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
    // The server's own `readOnlyHint` is ignored.
    assert_eq!(shown, [("t.echo", false), ("t.die", false)]);
    let read_only = ToolDeclaration { read_only: Some(true), ..ToolDeclaration::default() };
    let tools = [("die".to_owned(), read_only)].into();
    let declared = ServerDeclaration { tools, ..ServerDeclaration::default() };
    let trusted = server_dir.server("").with_declaration(declared);
    let tools = trusted.tools().await.unwrap();
    let shown: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
    assert_eq!(shown, [("t.echo", false), ("t.die", true)]);
    drop(trusted);
    assert_eq!(tools[0].description, "says it");
    assert_eq!(tools[0].input_schema["required"], json!(["x"]));
    assert_eq!(tools[1].input_schema, json!({"type": "object"}));
    assert_eq!(called(&server, "t.echo").await.unwrap(), "echoed");
    assert!(server_dir.read("heard").contains("notifications/initialized"));
    assert_eq!(server_dir.read("starts").lines().count(), 2, "one for each of the two");
}

#[tokio::test]
async fn a_list_is_cached_until_the_server_announces_a_change() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    let lists = || server_dir.read("heard").matches("tools/list").count();
    server.tools().await.unwrap();
    server.tools().await.unwrap();
    assert_eq!(lists(), 2, "two pages, once");
    assert_eq!(called(&server, "t.change").await.unwrap(), "changed");
    server.tools().await.unwrap();
    server.tools().await.unwrap();
    assert_eq!(lists(), 4);
}

#[tokio::test]
async fn answers_reach_their_callers_in_any_order() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    called(&server, "t.echo").await.unwrap();
    let second = async {
        server_dir.wait_for_input("\"first\"").await;
        called(&server, "t.second").await
    };
    let (first, second) = tokio::join!(called(&server, "t.first"), second);
    assert_eq!((first.unwrap(), second.unwrap()), ("one".to_owned(), "two".to_owned()));
}

#[tokio::test]
async fn a_server_may_ping_and_nothing_else() {
    let server_dir = ScriptedServer::new();
    assert_eq!(called(&server_dir.server(""), "t.ask").await.unwrap(), "asked");
}

#[tokio::test]
async fn a_dead_server_fails_what_is_in_flight_and_is_started_again() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    called(&server, "t.echo").await.unwrap();
    let dies = async {
        server_dir.wait_for_input("\"hang\"").await;
        called(&server, "t.die").await
    };
    let (hangs, dies) = tokio::join!(called(&server, "t.hang"), dies);
    let told =
        "the tool server `t` ended (exit status: 3); last line on standard error: out of luck";
    assert_eq!((hangs, dies), (Err(told.to_owned()), Err(told.to_owned())));
    assert_eq!(called(&server, "t.echo").await.unwrap(), "echoed");
    assert_eq!(server_dir.read("starts").lines().count(), 2);
}

#[tokio::test]
async fn an_abandoned_call_is_cancelled() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    called(&server, "t.echo").await.unwrap();
    let gone = timeout(Duration::from_millis(50), called(&server, "t.hang")).await;
    assert!(gone.is_err());
    server_dir.wait_for_input("notifications/cancelled").await;
    assert!(server_dir.read("heard").contains(r#""requestId":3"#), "{}", server_dir.read("heard"));
    assert_eq!(called(&server, "t.echo").await.unwrap(), "echoed");
}

#[tokio::test]
async fn an_error_of_a_server_has_its_message() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    let told = called(&server, "t.no").await.unwrap_err();
    assert_eq!(told, "the tool server `t` refused: not like that (-32602)");
    let told = called(&server, "other.no").await.unwrap_err();
    assert_eq!(told, "the tool server `t` refused: `other.no` is not one of its tools");
}

#[tokio::test]
async fn an_unsupported_version_is_rejected() {
    let server_dir = ScriptedServer::new();
    let told = called(&server_dir.server("SPOKEN=1999-01-01"), "t.echo").await.unwrap_err();
    assert!(told.contains("offers protocol version `1999-01-01`"), "{told}");
    let old = server_dir.server("SPOKEN=2024-11-05");
    assert_eq!(called(&old, "t.echo").await.unwrap(), "echoed");
}

#[tokio::test]
async fn an_endless_line_ends_the_connection() {
    let server_dir = ScriptedServer::new();
    let told = called(&server_dir.server(""), "t.long").await.unwrap_err();
    assert!(told.contains("sent a line that is too long"), "{told}");
}

#[tokio::test]
async fn a_failed_start_has_a_reason() {
    let argv = vec!["/nowhere/at/all".to_owned()];
    let server = McpServer::process("t", Command { argv, env: Vec::new() });
    let told = called(&server, "t.x").await.unwrap_err();
    assert_eq!(told, "the tool server `t` cannot be started: entity not found");
    let server = McpServer::process("t", command("echo no such module >&2; exit 1", &[]));
    let told = called(&server, "t.x").await.unwrap_err();
    let end = "ended (exit status: 1); last line on standard error: no such module";
    assert_eq!(told, format!("the tool server `t` {end}"));
}

#[tokio::test]
async fn a_server_inherits_only_allowed_and_named_variables() {
    let own = [("PATH", "p"), ("LC_ALL", "c"), ("SLUICE_TOKEN", "t"), ("KEY", "k"), ("OTHER", "o")];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let named = ["KEY".to_owned(), "SLUICE_TOKEN".to_owned()];
    let seen = crate::shell::environment::process_environment(own, &named);
    let names: Vec<_> = seen.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!(names, ["PATH", "LC_ALL", "KEY"]);
    // A named variable that every test process has: it is treated as a key.
    let server_dir = ScriptedServer::new();
    let home = server_dir.path().display();
    let line = format!("HOME={home} PASSED=$CARGO_MANIFEST_DIR exec sh {home}/server.sh");
    let server = McpServer::process("t", command(&line, &["CARGO_MANIFEST_DIR"]));
    assert_eq!(called(&server, "t.env").await.unwrap(), "<[redacted]> <> <>");
}

#[tokio::test]
async fn a_dropped_server_is_ended_in_order() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("");
    called(&server, "t.echo").await.unwrap();
    drop(server);
    server_dir.wait_for_input("over").await;
}

#[tokio::test]
async fn a_server_that_does_not_end_is_killed_with_its_group() {
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("LINGER=1000");
    called(&server, "t.echo").await.unwrap();
    let pid = server_dir.read("starts").trim().to_owned();
    let there = || Path::new(&format!("/proc/{pid}")).exists();
    assert!(there());
    drop(server);
    let gone = async {
        while there() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), gone).await.expect("it is gone");
    assert!(!server_dir.read("heard").contains("over"));
}

#[test]
fn a_server_does_not_outlive_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server_dir = ScriptedServer::new();
    let server = server_dir.server("LINGER=1000");
    runtime.block_on(called(&server, "t.echo")).unwrap();
    let group = server_dir.read("starts").trim().parse().unwrap();
    drop(runtime);
    let group = rustix::process::Pid::from_raw(group).unwrap();
    let began = Instant::now();
    // A zombie counts as alive until it is reaped, which is up to this process, its parent.
    while rustix::process::waitpid(Some(group), rustix::process::WaitOptions::NOHANG)
        .is_ok_and(|status| status.is_none())
    {
        assert!(began.elapsed() < Duration::from_secs(20), "it is still there");
        std::thread::yield_now();
    }
}
