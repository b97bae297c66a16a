//! Where steps go on a real server: to gateways that can do their work, and to no
//! other.

use crate::server::Server;
use crate::world::{World, shown};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

/// No server listens on this port.
const DEAD: &str = "http://127.0.0.1:1";

fn flow(name: &str, step: &str) -> String {
    format!(
        "name: {name}\nversion: 1\nsteps:\n  - {{id: a, command: go, on_failure: halt, {step}}}\n"
    )
}

fn world(setup: &str, flows: &[(&str, &str)]) -> World {
    let files: Vec<String> =
        flows.iter().map(|(name, _)| format!("{name}.lobsterx.yaml")).collect();
    let setup = format!("{setup}\nworkflows: [{}]\n", files.join(", "));
    let world = World::new().file("mock.yaml", "'*': {text: from the script}\n");
    let world = world.file("sluice.toml", "[outbound]\nallow = ['127.0.0.1:1']\n");
    let world = world.file("setup.yaml", &setup);
    flows.iter().fold(world, |world, (name, step)| {
        world.file(&format!("{name}.lobsterx.yaml"), &flow(name, step))
    })
}

fn served(setup: &str, flows: &[(&str, &str)]) -> (World, Server) {
    let world = world(setup, flows);
    let server = Server::start(&world, "127.0.0.1:0");
    server.printed(&world, &["apply", "-f", "setup.yaml"]);
    // What was applied counts for runs that are started from now on.
    (world, server)
}

/// The run of a workflow, when it has come to a status.
fn run(world: &World, server: &Server, workflow: &str, status: &str) -> Value {
    let start = ["workflows", "start", workflow, "--detach"];
    let told = server.printed(world, &start);
    let run = told.split_whitespace().next().unwrap().to_owned();
    world.until(&format!("{workflow} is {status}"), |world| {
        let shown = server.json(world, &["runs", "show", &run, "--json"]);
        (shown["status"] == status).then_some(shown)
    })
}

fn entries(world: &World, server: &Server, category: &str) -> Vec<Value> {
    let tail = ["audit", "tail", "--category", category, "--json", "--limit", "100"];
    let told = server.printed(world, &tail);
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn health(world: &World, server: &Server, gateway: &str, expected: &str) {
    world.until(&format!("{gateway} is {expected}"), |world| {
        let shown = server.json(world, &["gateways", "show", gateway, "--json"]);
        (shown["health"] == expected).then_some(())
    });
}

#[test]
fn a_script_answers_for_gateways_of_the_provider_mock_and_hides_no_other() {
    let setup = format!(
        "
gateways:
  demo: {{provider: mock, default: true}}
  dead: {{provider: mock, url: '{DEAD}'}}
agents:
  able: {{trust_level: 5}}
  cut_off: {{trust_level: 5, gateway: dead, queue_timeout_s: 0}}
"
    );
    let flows = [("fine", "agent: able"), ("cut", "agent: cut_off"), ("plain", "timeout: 60")];
    let (world, server) = served(&setup, &flows);
    health(&world, &server, "dead", "offline");
    health(&world, &server, "demo", "healthy");
    run(&world, &server, "fine", "completed");
    // Who names no agent is answered by the script.
    run(&world, &server, "plain", "completed");
    let cut = run(&world, &server, "cut", "failed");
    assert_eq!(cut["error_code"], "gateway_unreachable", "{cut}");
    let list = server.told(&world, &["gateways", "list"]);
    assert!(list.contains("HEALTH") && list.contains("dead  offline"), "{list}");
    // An agent that is not registered is refused.
    let other = world.path().join("other.lobsterx.yaml");
    std::fs::write(&other, flow("other", "agent: unregistered")).unwrap();
    server.printed(&world, &["workflows", "put", "other.lobsterx.yaml"]);
    let told = server.told(&world, &["workflows", "start", "other"]);
    assert!(told.contains("error[unknown_agent]"), "{told}");
}

#[test]
fn a_step_with_capabilities_goes_to_a_gateway_that_offers_them_or_nowhere() {
    let setup = "
gateways:
  zebra: {provider: mock, capabilities: [vision], cost_rank: 1}
  dear: {provider: mock, capabilities: [vision], cost_rank: 9}
agents:
  plain: {trust_level: 5}
  seer: {trust_level: 5, capabilities: [vision]}
";
    let flows = [
        ("step-asks", "agent: plain, capabilities: [vision]"),
        ("agent-asks", "agent: seer"),
        ("no-gateway", "agent: plain, capabilities: [telepathy]"),
    ];
    let (world, server) = served(setup, &flows);
    for name in ["step-asks", "agent-asks"] {
        let done = run(&world, &server, name, "completed");
        assert_eq!(done["node_results"][0]["gateway"], "zebra", "{name}: {done}");
    }
    let failed = run(&world, &server, "no-gateway", "failed");
    assert_eq!(failed["error_code"], "gateway_unreachable", "{failed}");
    let routed = entries(&world, &server, "routing");
    assert_eq!(routed.len(), 3, "{routed:?}");
    assert!(routed.iter().all(|one| one["type"] == "step_routed"));
    let lost = routed[0]["detail"]["candidates"].to_string();
    assert!(
        lost.contains("cost rank 9 is above 1") && lost.contains("cannot do the work"),
        "{lost}"
    );
    let rejected = entries(&world, &server, "governance");
    let rejected: Vec<&Value> =
        rejected.iter().filter(|one| one["type"] == "safety_gate_rejected").collect();
    assert_eq!(rejected.len(), 1, "{rejected:?}");
    assert_eq!(rejected[0]["detail"]["code"], "gateway_unreachable");
}

#[test]
fn no_approval_is_requested_for_a_step_that_no_gateway_could_do() {
    let setup = "
gateways:
  house: {environment: production, default: true}
agents:
  finder: {trust_level: 4}
deployments:
  find: {workflow: find, posture: approval_required}
";
    let world = world(setup, &[("find", "agent: finder")]);
    let server = Server::start(&world, "127.0.0.1:0");
    let told = server.told(&world, &["apply", "-f", "setup.yaml"]);
    assert!(told.contains("warning[agent_without_gateway]"), "{told}");
    assert!(told.contains("`house` has neither `provider` nor `url`"), "{told}");
    let failed = run(&world, &server, "find", "failed");
    assert_eq!(failed["error_code"], "gateway_unreachable", "{failed}");
    let approvals = server.json(&world, &["approvals", "list", "--json"]);
    assert_eq!(approvals["data"].as_array().map(Vec::len), Some(0), "{approvals}");
    let deployed = entries(&world, &server, "deploy");
    assert_eq!(deployed.len(), 1, "{deployed:?}");
    assert_eq!(deployed[0]["type"], "deployment_changed");
}

/// An agent over HTTP: whatever is asked, it has done it.
fn helpful() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_ascii_lowercase();
                if let Some(count) = lower.strip_prefix("content-length:") {
                    length = count.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            // A look whether something listens sends nothing.
            if length == 0 || reader.read_exact(&mut body).is_err() {
                continue;
            }
            let said = r#"{"status": "completed", "stdout": "from the spare"}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{said}", said.len());
            let _ = reader.get_mut().write_all(answer.as_bytes());
        }
    });
    format!("http://{at}/work")
}

#[test]
fn a_step_whose_gateway_is_offline_goes_to_another_unless_it_is_pinned() {
    let spare = helpful();
    let setup = format!(
        "
gateways:
  main: {{provider: http, base_url: '{DEAD}/work', default: true}}
  spare: {{provider: http, base_url: '{spare}'}}
  other: {{provider: mock}}
agents:
  plain: {{trust_level: 5}}
  pinned: {{trust_level: 5, gateway: main, queue_timeout_s: 0}}
"
    );
    let world = world(&setup, &[("plain", "agent: plain"), ("pinned", "agent: pinned")]);
    let world = world.file("sluice.toml", "[outbound]\nallow = ['127.0.0.0/8']\n");
    let server = Server::start(&world, "127.0.0.1:0");
    server.printed(&world, &["apply", "-f", "setup.yaml"]);
    health(&world, &server, "main", "offline");
    health(&world, &server, "spare", "healthy");
    let done = run(&world, &server, "plain", "completed");
    assert_eq!(done["node_results"][0]["gateway"], "spare", "{done}");
    assert_eq!(done["node_results"][0]["stdout"], "from the spare", "{done}");
    let failed = run(&world, &server, "pinned", "failed");
    assert_eq!(failed["error_code"], "gateway_unreachable", "{failed}");
}

#[test]
fn another_provider_stands_in_only_where_the_agent_prefers_it_too() {
    let setup = format!(
        "
gateways:
  main: {{provider: http, base_url: '{DEAD}/work', default: true}}
  other: {{provider: mock}}
agents:
  free: {{trust_level: 5, provider_preferences: [http, mock]}}
  bound: {{trust_level: 5, queue_timeout_s: 0}}
"
    );
    let flows = [("free", "agent: free"), ("bound", "agent: bound")];
    let (world, server) = served(&setup, &flows);
    health(&world, &server, "main", "offline");
    // Both providers are the agent's choice.
    let done = run(&world, &server, "free", "completed");
    assert_eq!(done["node_results"][0]["gateway"], "other", "{done}");
    let failed = run(&world, &server, "bound", "failed");
    assert_eq!(failed["error_code"], "gateway_unreachable", "{failed}");
}

#[test]
fn a_provider_that_there_is_not_is_refused_wherever_it_is_written() {
    let world = World::new()
        .file("mock.yaml", "'*': {text: x}\n")
        .file("setup.yaml", "gateways:\n  claude: {provider: claude}\n");
    for told in [
        world.told(&["apply", "-f", "setup.yaml"]),
        world.told(&["gateways", "set", "claude", "provider=claude"]),
    ] {
        assert!(told.contains("error[unknown_provider]"), "{told}");
        assert!(told.contains("did you mean `anthropic`?"), "{told}");
        assert!(told.ends_with("exit 2\n"), "{told}");
    }
    let server = Server::start(&world, "127.0.0.1:0");
    let told = server.told(&world, &["apply", "-f", "setup.yaml"]);
    assert!(told.contains("did you mean `anthropic`?"), "{told}");
}

#[test]
fn an_http_gateway_without_a_url_is_refused_by_apply() {
    let world = World::new().file("setup.yaml", "gateways:\n  work: {provider: http}\n");
    for told in [
        world.told(&["apply", "-f", "setup.yaml"]),
        world.told(&["gateways", "set", "work", "provider=http"]),
    ] {
        assert!(told.contains("error[missing_field]"), "{told}");
        assert!(told.contains("provider `http` needs a `base_url`"), "{told}");
        assert!(told.ends_with("exit 2\n"), "{told}");
    }
}

#[test]
fn a_doctor_looks_at_keys_providers_and_the_allow_list() {
    let setup = format!(
        "
gateways:
  ollama: {{provider: openai, base_url: 'http://127.0.0.1:11434/v1'}}
  dead: {{provider: openai, base_url: '{DEAD}/v1', key: 'env:NO_SUCH_KEY_IS_SET'}}
agents:
  idle: {{gateway: local}}
"
    );
    let world = world(&setup, &[]);
    world.output(&["apply", "-f", "setup.yaml"]);
    let told = world.told(&["doctor"]);
    for expected in [
        "and 127.0.0.1:1",
        "`ollama` at http://127.0.0.1:11434 may not be called: its address is loopback",
        "add `127.0.0.1:11434` to `allow` of `[outbound]` in sluice.toml",
        "`dead` at http://127.0.0.1:1 cannot be reached: Connection refused",
        "of `dead`: the variable `NO_SUCH_KEY_IS_SET` is not set",
        "no gateway fits agent `idle`",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn an_error_of_a_provider_says_where_why_and_what_would_allow_it() {
    let setup = format!(
        "
gateways:
  near: {{provider: openai, base_url: '{DEAD}/v1?token=hunter2', default: true}}
agents:
  writer: {{trust_level: 5, model: small}}
"
    );
    let world = world(&setup, &[("write", "agent: writer")]);
    world.output(&["apply", "-f", "setup.yaml"]);
    let mut command = world.command(&["run", "write.lobsterx.yaml"]);
    command.env("SLUICE_OUTBOUND_ALLOW", "192.168.0.1");
    let closed = shown(&command.output().unwrap());
    assert!(
        closed.contains("the provider at http://127.0.0.1:1 has a loopback address"),
        "{closed}"
    );
    assert!(closed.contains("add `127.0.0.1:1` to `allow` of `[outbound]`"), "{closed}");
    let gone = world.told(&["run", "write.lobsterx.yaml"]);
    let expected = "the provider at http://127.0.0.1:1 cannot be reached: Connection refused";
    assert!(gone.contains(expected), "{gone}");
    assert!(!closed.contains("hunter2") && !gone.contains("hunter2"), "{closed}{gone}");
}

#[test]
fn an_unreachable_gateway_is_not_healthy_from_the_start() {
    let world = World::new();
    let server = Server::with(&world, &["--listen", "127.0.0.1:0"]);
    for number in 0..3 {
        let name = format!("dead-{number}");
        server.printed(&world, &["gateways", "set", &name, "url=http://127.0.0.1:9"]);
        let listed = server.printed(&world, &["gateways", "list"]);
        let line = listed.lines().find(|line| line.starts_with(&name)).unwrap();
        assert!(!line.contains("healthy"), "{listed}");
    }
}
