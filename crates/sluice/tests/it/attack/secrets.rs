//! Secrets: what a row, a step or a client without a token tries to read or to have
//! written down.

use crate::server::Server;
use crate::world::{PATIENCE, Running, World, shown};
use serde_json::{Value, json};
use sluice_bridge::secret::Secret;
use sluice_server::signature;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const KEY: &str = "sk-very-secret-key-0001";
const ASK: &str = "
name: ask
steps:
  - {id: greet, agent: scribe, command: Greet Ada.}
outputs: {said: '${greet.stdout}'}
";

/// A provider that the attacker runs: notes the key it is shown, and repeats it.
#[derive(Clone)]
struct Provider {
    at: String,
    heard: Arc<Mutex<Vec<String>>>,
    /// While it is set, answers wait.
    waits: Arc<AtomicBool>,
}

impl Provider {
    /// Repeats the key, or sends on to another address.
    fn new(redirect: Option<String>) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let provider = Provider { at, heard: Arc::default(), waits: Arc::default() };
        let answering = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (provider, redirect) = (answering.clone(), redirect.clone());
                std::thread::spawn(move || answer(stream, &provider, redirect.as_deref()));
            }
        });
        provider
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.at)
    }

    /// The requests it got, headers and body.
    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    provider: &Provider,
    redirect: Option<&str>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut shown, mut line) = (0, String::new(), String::new());
    let mut all = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        all.push_str(&line);
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => value.trim().clone_into(&mut shown),
            _ => {}
        }
    }
    let mut body = Vec::new();
    reader.by_ref().take(length).read_to_end(&mut body)?;
    all.push_str(&String::from_utf8_lossy(&body));
    provider.heard.lock().unwrap().push(all);
    let began = std::time::Instant::now();
    while provider.waits.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    if let Some(to) = redirect {
        return write!(
            stream,
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\
             connection: close\r\n\r\n"
        );
    }
    let piece = |text: &str| {
        let piece = json!({"id": "x", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
        format!("data: {piece}\n\n")
    };
    let end = "data: {\"id\":\"x\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
               data: {\"id\":\"x\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n\
               data: [DONE]\n\n";
    let body = [piece("key "), piece(&shown), end.to_owned()].concat();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")?;
    write!(stream, "content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// Asks a server; the status and what it answers.
fn http(server: &Server, method: &str, path: &str, token: &str, body: &Value) -> (u16, String) {
    let (body, mut stream) = (body.to_string(), TcpStream::connect(server.address()).unwrap());
    let host = server.address();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

/// A directory with a server's settings and a workflow that asks a model.
fn world(settings: &str) -> World {
    let settings = format!("{settings}\n[outbound]\nallow = [\"127.0.0.1\"]\n");
    World::new().file("sluice.toml", &settings).file("ask.lobsterx.yaml", ASK)
}

fn serve(world: &World) -> Server {
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0", "--shell"]);
    command.env("OTHER_SECRET", "other-secret-0002").env("MODEL_KEY", KEY);
    Server::of(world, command)
}

/// The token of the admin of another organisation, once the server serves it.
fn tenant(world: &World, server: &Server) -> String {
    world.printed(&["organisations", "add", "acme"]);
    let path = world.path().join(".sluice/organisations/acme/admin.token");
    let token = world.until("the organisation is served", |_| {
        let token = std::fs::read_to_string(&path).ok()?.trim().to_owned();
        let (status, _) = http(server, "GET", "/api/v1/session", &token, &json!({}));
        (status == 200).then_some(token)
    });
    register(server, &token);
    token
}

/// Registers the workflow that asks a model.
fn register(server: &Server, token: &str) {
    let (status, told) =
        http(server, "POST", "/api/v1/workflows", token, &json!({"document": ASK}));
    assert!(status < 300, "{told}");
}

/// Runs the workflow; how it ended, or that it was not started.
fn ran(server: &Server, token: &str) -> String {
    let (status, told) =
        http(server, "POST", "/api/v1/workflows/ask/runs", token, &json!({"args": {}}));
    if status != 202 {
        return told;
    }
    let run = body(&told)["data"]["run_id"].as_str().unwrap().to_owned();
    let began = std::time::Instant::now();
    loop {
        let path = format!("/api/v1/runs/{run}/state");
        let (_, told) = http(server, "GET", &path, token, &json!({}));
        let state = body(&told)["data"].clone();
        let status = state["status"].as_str().unwrap_or_default();
        if ["completed", "failed", "cancelled", "timed_out"].contains(&status) {
            return state.to_string();
        }
        assert!(began.elapsed() < PATIENCE, "{state}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What an answer says.
fn body(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

const COMPLETED: &str = "\"status\":\"completed\"";

/// Points a gateway with this key at a provider and runs the workflow; what the attempt
/// to write the gateway was answered.
fn steal(server: &Server, token: &str, key: &str, provider: &Provider) -> String {
    let gateway = json!({"provider": "openai", "base_url": provider.url(), "key": key});
    let (status, told) = http(server, "PUT", "/api/v1/gateways/thief", token, &gateway);
    let agent = json!({"trust_level": 5, "gateway": "thief", "model": "m"});
    http(server, "PUT", "/api/v1/agents/scribe", token, &agent);
    let ended = ran(server, token);
    assert!(!ended.contains("Bearer") && !ended.contains("slk_"), "{ended}");
    format!("{status} {told}")
}

fn references(world: &World) -> Vec<String> {
    let data = world.path().join(".sluice");
    std::os::unix::fs::symlink(&data, world.path().join("innocent")).unwrap();
    let file = |path: &str| format!("file:{}", world.path().join(path).display());
    vec![
        file(".sluice/admin.token"),
        file(".sluice/seal.key"),
        file(".sluice/dispatch.key"),
        file("innocent/admin.token"),
        file("innocent/../.sluice/admin.token"),
        format!("file:/proc/self/root{}", data.join("admin.token").display()),
        "file:.sluice/admin.token".to_owned(),
        "file:/proc/self/environ".to_owned(),
        "file:/etc/hostname".to_owned(),
        "env:OTHER_SECRET".to_owned(),
        "env:PATH".to_owned(),
    ]
}

#[test]
fn a_tenant_does_not_read_files_or_variables_of_the_server_through_a_gateway() {
    let world = world("");
    let server = serve(&world);
    let token = tenant(&world, &server);
    let provider = Provider::new(None);
    for reference in references(&world) {
        let told = steal(&server, &token, &reference, &provider);
        assert!(told.starts_with("403") && told.contains("secret_not_named"), "{told}");
    }
    // By the other ways to write a row.
    let reference = "env:OTHER_SECRET";
    let setup = format!(
        "gateways:\n  thief: {{provider: openai, base_url: '{}', key: '{reference}'}}\n",
        provider.url()
    );
    std::fs::write(world.path().join("thief.yaml"), setup).unwrap();
    for args in [
        vec!["apply", "-f", "thief.yaml"],
        vec!["webhooks", "set", "w", "url=http://x.example/", "events=[\"*\"]", "secret=env:PATH"],
        vec!["hooks", "set", "h", "workflow=ask", "secret=file:/etc/hostname"],
        vec!["gateways", "set", "thief", "provider=openai", "key=env:PATH"],
    ] {
        let output = server.output_with(&world, &token, &args);
        let told = shown(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("secret_not_named"), "{told}");
    }
    assert_eq!(provider.heard(), Vec::<String>::new());
}

#[test]
fn a_token_that_may_write_gateways_does_not_become_the_operator() {
    let world = world("");
    let server = serve(&world);
    let wanted = json!({"principal": "ci", "roles": ["admin"],
        "scopes": ["gateway:write", "agent:write", "workflow:execute", "workflow:read"]});
    let (_, made) = http(&server, "POST", "/api/v1/tokens", &server.token, &wanted);
    let made = body(&made);
    register(&server, &server.token);
    let token = made["data"]["token"].as_str().or(made["data"]["secret"].as_str());
    let token = token.unwrap_or_else(|| panic!("{made}")).to_owned();
    let provider = Provider::new(None);
    for reference in references(&world) {
        let told = steal(&server, &token, &reference, &provider);
        assert!(told.starts_with("403") && told.contains("secret_not_named"), "{told}");
    }
    assert_eq!(provider.heard(), Vec::<String>::new());
}

#[test]
fn a_declared_secret_reaches_its_own_hosts_and_organisations_alone() {
    let (good, evil) = (Provider::new(None), Provider::new(None));
    let bounce = Provider::new(Some(evil.url()));
    let settings = format!(
        "[secrets.model]\nfrom = \"env:MODEL_KEY\"\norganisations = [\"acme\"]\n\
         hosts = [\"{}\", \"{}\"]\n\
         [secrets.operators]\nfrom = \"env:OTHER_SECRET\"\nhosts = [\"{}\"]\n",
        good.at, bounce.at, evil.at
    );
    let world = world(&settings);
    let server = serve(&world);
    let token = tenant(&world, &server);
    // A secret of another organisation.
    let told = steal(&server, &token, "secret:operators", &evil);
    assert!(told.starts_with("422") && told.contains("secret_unknown"), "{told}");
    // Its own secret, for a host that is not among the secret's.
    let told = steal(&server, &token, "secret:model", &evil);
    assert!(told.starts_with("200"), "{told}");
    assert_eq!(evil.heard(), Vec::<String>::new());
    // A host of the secret that sends on to another.
    steal(&server, &token, "secret:model", &bounce);
    assert!(bounce.heard().iter().any(|heard| heard.contains(KEY)));
    assert_eq!(evil.heard(), Vec::<String>::new());
    // Where it may go it goes, and what comes back does not repeat it.
    let gateway = json!({"provider": "openai", "base_url": good.url(), "key": "secret:model"});
    http(&server, "PUT", "/api/v1/gateways/thief", &token, &gateway);
    world.until("the gateway is known", |_| ran(&server, &token).contains(COMPLETED).then_some(()));
    assert!(good.heard().iter().any(|heard| heard.contains(KEY)));
    let (_, listed) = http(&server, "GET", "/api/v1/runs", &token, &json!({}));
    assert!(!listed.contains(KEY), "{listed}");
    assert_eq!(grep(&world, KEY), Vec::<String>::new());
}

/// Files of the data directory that hold a text.
fn grep(world: &World, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![world.path().join(".sluice")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let holds = bytes.windows(text.len()).any(|part| part == text.as_bytes());
                found.extend(holds.then(|| path.display().to_string()));
            }
        }
    }
    found
}

#[test]
fn the_operators_own_rows_keep_their_variable_and_callers_cannot_redirect_it() {
    let (good, evil) = (Provider::new(None), Provider::new(None));
    let setup = format!(
        "gateways:\n  models: {{provider: openai, base_url: '{}', key: 'env:MODEL_KEY', \
         default: true}}\nagents:\n  scribe: {{trust_level: 5, gateway: models, model: m}}\n",
        good.url()
    );
    let world = world("").file("setup.yaml", &setup);
    world.printed(&["apply", "-f", "setup.yaml"]);
    // As in the first half hour: a variable, a setup, a run.
    let mut run = world.command(&["run", "ask.lobsterx.yaml"]);
    run.env("MODEL_KEY", KEY);
    let output = Running::spawn(run).output();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert!(good.heard().iter().any(|heard| heard.contains(KEY)));
    let server = serve(&world);
    let token = server.token.clone();
    for body in [
        json!({"base_url": evil.url()}),
        json!({"url": evil.url()}),
        json!({"base_url": evil.url(), "operator_secret": true}),
        json!({"key": "env:OTHER_SECRET"}),
    ] {
        let (status, told) = http(&server, "PATCH", "/api/v1/gateways/models", &token, &body);
        assert!(status == 403 && told.contains("secret_not_named"), "{told}");
    }
    // The same setup over HTTP changes nothing, and a pause leaves the key alone.
    assert!(server.printed(&world, &["apply", "-f", "setup.yaml"]).contains("nothing to change"));
    server.printed(&world, &["gateways", "pause", "models"]);
    server.printed(&world, &["gateways", "resume", "models"]);
    register(&server, &token);
    world.until("the gateway works", |_| ran(&server, &token).contains(COMPLETED).then_some(()));
    assert_eq!(evil.heard(), Vec::<String>::new());
    // A row of another organisation does not name a variable, on this machine either.
    tenant(&world, &server);
    let acme = [&["apply", "-f", "setup.yaml", "--data"][..], &[".sluice/organisations/acme"]];
    let told = world.told(&acme.concat());
    assert!(told.contains("secret_not_named"), "{told}");
}

const PRINT: &str = "
name: print
args: {file: {default: ''}}
steps:
  - {id: ask, agent: scribe, command: Greet Ada.}
  - {id: print, depends_on: [ask], agent: shell, command: 'cat ${file}'}
outputs: {said: '${print.stdout}'}
";

#[test]
fn a_command_that_prints_a_known_key_does_not_get_it_into_the_journal() {
    let provider = Provider::new(None);
    let setup = format!(
        "gateways:\n  models: {{provider: openai, base_url: '{}', key: 'env:MODEL_KEY', \
         default: true}}\nagents:\n  scribe: {{trust_level: 5, gateway: models, model: m}}\n",
        provider.url()
    );
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let world = world("").file("setup.yaml", &setup).file("print.lobsterx.yaml", PRINT);
    world.printed(&["apply", "-f", "setup.yaml"]);
    for (name, text) in [
        ("plain", KEY.to_owned()),
        ("hex", hex.clone()),
        ("upper", hex.to_uppercase()),
        ("base64", "c2stdmVyeS1zZWNyZXQta2V5LTAwMDE=".to_owned()),
        ("shifted", "a2V5PXNrLXZlcnktc2VjcmV0LWtleS0wMDAx".to_owned()),
    ] {
        let path = world.path().join(name);
        std::fs::write(&path, format!("key is {text}\n")).unwrap();
        let file = format!("file={}", path.display());
        let mut run = world.command(&["run", "print.lobsterx.yaml", "--arg", &file]);
        run.env("MODEL_KEY", KEY);
        let output = Running::spawn(run).output();
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        let told = shown(&output);
        assert!(told.contains("key is") && told.contains("[redacted]"), "{name}: {told}");
        let export = world.printed(&["runs", "export", &world.newest()]);
        // Of a text in base64 the characters at its ends may stay.
        let inner = &text[4..text.len() - 4];
        assert!(!told.contains(inner) && !export.contains(inner), "{name}: {told}");
    }
}

#[test]
fn a_command_sees_none_of_the_settings_of_sluice() {
    let seen = "
name: seen
steps:
  - {id: look, agent: shell, command: 'env'}
outputs: {said: '${look.stdout}'}
";
    let world = World::new().file("seen.lobsterx.yaml", seen);
    let mut run = world.command(&["run", "seen.lobsterx.yaml"]);
    run.env("SLUICE_TOKEN", "slk_not_for_commands").env("SLUICE_MODERATION_TOKEN", "env:NOTHING");
    run.env("SLUICE_DEFAULT_MODEL", "seen-model").env("SLUICE_SEAL_FILE", "seen-seals");
    let output = Running::spawn(run).output();
    let told = shown(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("SLUICE_RUN_ID=") && told.contains("SLUICE_STEP_ID=look"), "{told}");
    let hidden = ["slk_not_for_commands", "SLUICE_TOKEN", "SLUICE_DEFAULT_MODEL", "env:NOTHING"];
    for hidden in hidden.into_iter().chain(["SLUICE_SEAL_FILE"]) {
        assert!(!told.contains(hidden), "{told}");
    }
    let settings = "[tool_servers.files]\ncommand = [\"cat\"]\nenv = [\"SLUICE_TOKEN\"]\n";
    let world = World::new().file("sluice.toml", settings);
    let told = world.told(&["config", "show"]);
    assert!(told.contains("config_invalid") && told.contains("SLUICE_TOKEN"), "{told}");
}

#[test]
fn requests_to_a_hook_do_not_make_a_key_forgotten() {
    let provider = Provider::new(None);
    let setup = format!(
        "gateways:\n  models: {{provider: openai, base_url: '{}', key: 'env:MODEL_KEY', \
         default: true}}\nagents:\n  scribe: {{trust_level: 5, gateway: models, model: m}}\n\
         workflows: [ask.lobsterx.yaml]\n\
         hooks:\n  door: {{workflow: ask, secret: 'file:hook.key'}}\n",
        provider.url()
    );
    let world = world("");
    let secret = world.path().join("hook.key");
    let world = world.file("hook.key", "the secret of the hook 0\n");
    let setup = setup.replace("file:hook.key", &format!("file:{}", secret.display()));
    let world = world.file("setup.yaml", &setup);
    world.printed(&["apply", "-f", "setup.yaml"]);
    let server = serve(&world);
    // The model is shown its key before the requests, and repeats it after them.
    provider.waits.store(true, Ordering::Relaxed);
    let told = std::thread::scope(|scope| {
        let run = scope.spawn(|| ran(&server, &server.token));
        let asked = |heard: &String| heard.contains("Greet Ada");
        world.until("the model is asked", |_| provider.heard().iter().any(asked).then_some(()));
        // Another secret for each request, and each request is signed with it: a list of the
        // last thousand secrets would lose the key.
        let read = knock(&server, 1100, |n| {
            let text = format!("the secret of the hook {n}");
            std::fs::write(&secret, &text).unwrap();
            Secret::new(text)
        });
        assert_eq!(read, 1100, "the server did not read every secret");
        provider.waits.store(false, Ordering::Relaxed);
        run.join().unwrap()
    });
    assert!(told.contains("[redacted]") && !told.contains(KEY), "{told}");
    assert_eq!(grep(&world, KEY), Vec::<String>::new());
}

/// Sends so many requests to a hook on one connection, each signed with a secret. Their bodies
/// are not valid, so none starts a run. Returns how many were refused for their body, which
/// is read after the secret.
fn knock(server: &Server, times: usize, secret: impl Fn(usize) -> Secret) -> usize {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut refused = 0;
    for n in 0..times {
        let signed = signature::sign(&secret(n), &now.to_string(), b"{,");
        // At once: small parts would each wait for an acknowledgement.
        let request = format!(
            "POST /hooks/door HTTP/1.1\r\nhost: {}\r\nsluice-timestamp: {now}\r\n\
             sluice-signature: {signed}\r\ncontent-type: application/json\r\n\
             content-length: 2\r\n\r\n{{,",
            server.address()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0, "the server hung up");
            refused += usize::from(line.starts_with("HTTP/1.1 400"));
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        reader.by_ref().take(length).read_to_end(&mut Vec::new()).unwrap();
    }
    refused
}
