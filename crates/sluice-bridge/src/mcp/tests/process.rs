//! Against a server that is a script.

use super::*;
use std::path::Path;
use tokio::time::{sleep, timeout};

/// Speaks just enough of the protocol. What it hears goes to the file `heard`,
/// each start of it to `starts`.
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

struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    fn new() -> Shop {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("server.sh"), SCRIPT).unwrap();
        Shop { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The server, with its home in the shop and these variables.
    fn server(&self, variables: &str) -> McpServer {
        let home = self.path().display();
        let line = format!("HOME={home} {variables} exec sh {home}/server.sh");
        McpServer::process("t", command(&line, &[]))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Waits until the server has heard something.
    async fn hears(&self, part: &str) {
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
    let shop = Shop::new();
    let server = shop.server("");
    assert_eq!(shop.read("starts"), "");
    let tools = server.tools().await.unwrap();
    let shown: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
    // Its own word for it (`readOnlyHint`) is not believed.
    assert_eq!(shown, [("t.echo", false), ("t.die", false)]);
    let trusted = shop.server("").with_read_only(&["die".to_owned()]);
    let tools = trusted.tools().await.unwrap();
    let shown: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.read_only)).collect();
    assert_eq!(shown, [("t.echo", false), ("t.die", true)]);
    drop(trusted);
    assert_eq!(tools[0].description, "says it");
    assert_eq!(tools[0].input_schema["required"], json!(["x"]));
    assert_eq!(tools[1].input_schema, json!({"type": "object"}));
    assert_eq!(called(&server, "t.echo").await.unwrap(), "echoed");
    assert!(shop.read("heard").contains("notifications/initialized"));
    assert_eq!(shop.read("starts").lines().count(), 2, "one for each of the two");
}

#[tokio::test]
async fn a_list_is_kept_until_the_server_says_that_it_changed() {
    let shop = Shop::new();
    let server = shop.server("");
    let lists = || shop.read("heard").matches("tools/list").count();
    server.tools().await.unwrap();
    server.tools().await.unwrap();
    assert_eq!(lists(), 2, "two pages, once");
    assert_eq!(called(&server, "t.change").await.unwrap(), "changed");
    server.tools().await.unwrap();
    server.tools().await.unwrap();
    assert_eq!(lists(), 4);
}

#[tokio::test]
async fn answers_find_whoever_asked_in_whatever_order_they_come() {
    let shop = Shop::new();
    let server = shop.server("");
    called(&server, "t.echo").await.unwrap();
    let second = async {
        shop.hears("\"first\"").await;
        called(&server, "t.second").await
    };
    let (first, second) = tokio::join!(called(&server, "t.first"), second);
    assert_eq!((first.unwrap(), second.unwrap()), ("one".to_owned(), "two".to_owned()));
}

#[tokio::test]
async fn a_server_may_ask_whether_we_are_there_and_nothing_else() {
    let shop = Shop::new();
    assert_eq!(called(&shop.server(""), "t.ask").await.unwrap(), "asked");
}

#[tokio::test]
async fn a_dead_server_fails_what_is_in_flight_and_is_started_again() {
    let shop = Shop::new();
    let server = shop.server("");
    called(&server, "t.echo").await.unwrap();
    let dies = async {
        shop.hears("\"hang\"").await;
        called(&server, "t.die").await
    };
    let (hangs, dies) = tokio::join!(called(&server, "t.hang"), dies);
    let told = "the server of tools `t` ended (exit status: 3); its last words: out of luck";
    assert_eq!((hangs, dies), (Err(told.to_owned()), Err(told.to_owned())));
    assert_eq!(called(&server, "t.echo").await.unwrap(), "echoed");
    assert_eq!(shop.read("starts").lines().count(), 2);
}

#[tokio::test]
async fn a_call_that_is_given_up_is_taken_back() {
    let shop = Shop::new();
    let server = shop.server("");
    called(&server, "t.echo").await.unwrap();
    let gone = timeout(Duration::from_millis(50), called(&server, "t.hang")).await;
    assert!(gone.is_err());
    shop.hears("notifications/cancelled").await;
    assert!(shop.read("heard").contains(r#""requestId":3"#), "{}", shop.read("heard"));
    assert_eq!(called(&server, "t.echo").await.unwrap(), "echoed");
}

#[tokio::test]
async fn what_a_server_refuses_is_told_in_its_words() {
    let shop = Shop::new();
    let server = shop.server("");
    let told = called(&server, "t.no").await.unwrap_err();
    assert_eq!(told, "the server of tools `t` refused: not like that (-32602)");
    let told = called(&server, "other.no").await.unwrap_err();
    assert_eq!(told, "the server of tools `t` refused: `other.no` is not one of its tools");
}

#[tokio::test]
async fn a_version_that_nobody_speaks_is_refused() {
    let shop = Shop::new();
    let told = called(&shop.server("SPOKEN=1999-01-01"), "t.echo").await.unwrap_err();
    assert!(told.contains("speaks the version `1999-01-01`"), "{told}");
    let old = shop.server("SPOKEN=2024-11-05");
    assert_eq!(called(&old, "t.echo").await.unwrap(), "echoed");
}

#[tokio::test]
async fn a_line_without_end_is_the_end() {
    let shop = Shop::new();
    let told = called(&shop.server(""), "t.long").await.unwrap_err();
    assert!(told.contains("sent a line that is too long"), "{told}");
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let argv = vec!["/nowhere/at/all".to_owned()];
    let server = McpServer::process("t", Command { argv, env: Vec::new() });
    let told = called(&server, "t.x").await.unwrap_err();
    assert_eq!(told, "the server of tools `t` cannot be started: entity not found");
    let server = McpServer::process("t", command("echo no such module >&2; exit 1", &[]));
    let told = called(&server, "t.x").await.unwrap_err();
    let end = "ended (exit status: 1); its last words: no such module";
    assert_eq!(told, format!("the server of tools `t` {end}"));
}

#[tokio::test]
async fn a_server_sees_what_is_named_of_our_environment_and_no_more() {
    let own = [("PATH", "p"), ("LC_ALL", "c"), ("SLUICE_TOKEN", "t"), ("KEY", "k"), ("OTHER", "o")];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let named = ["KEY".to_owned(), "SLUICE_TOKEN".to_owned()];
    let seen = crate::shell::environment::beside(own, &named);
    let names: Vec<_> = seen.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    assert_eq!(names, ["PATH", "LC_ALL", "KEY"]);
    // Something every test has, and that is named: it is taken for a key.
    let shop = Shop::new();
    let home = shop.path().display();
    let line = format!("HOME={home} PASSED=$CARGO_MANIFEST_DIR exec sh {home}/server.sh");
    let server = McpServer::process("t", command(&line, &["CARGO_MANIFEST_DIR"]));
    assert_eq!(called(&server, "t.env").await.unwrap(), "<[redacted]> <> <>");
}

#[tokio::test]
async fn a_server_that_nobody_needs_any_more_is_ended_in_order() {
    let shop = Shop::new();
    let server = shop.server("");
    called(&server, "t.echo").await.unwrap();
    drop(server);
    shop.hears("over").await;
}

#[tokio::test]
async fn a_server_that_does_not_end_is_killed_with_its_group() {
    let shop = Shop::new();
    let server = shop.server("LINGER=1000");
    called(&server, "t.echo").await.unwrap();
    let pid = shop.read("starts").trim().to_owned();
    let there = || Path::new(&format!("/proc/{pid}")).exists();
    assert!(there());
    drop(server);
    let gone = async {
        while there() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), gone).await.expect("it is gone");
    assert!(!shop.read("heard").contains("over"));
}

#[test]
fn a_server_does_not_outlive_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shop = Shop::new();
    let server = shop.server("LINGER=1000");
    runtime.block_on(called(&server, "t.echo")).unwrap();
    let group = shop.read("starts").trim().parse().unwrap();
    drop(runtime);
    let group = rustix::process::Pid::from_raw(group).unwrap();
    let began = Instant::now();
    // The dead count until somebody reaps them; it is our child, so that is us.
    while rustix::process::waitpid(Some(group), rustix::process::WaitOptions::NOHANG)
        .is_ok_and(|status| status.is_none())
    {
        assert!(began.elapsed() < Duration::from_secs(20), "it is still there");
        std::thread::yield_now();
    }
}
