//! `config show`, `doctor`, `backup`, `completions`.

use crate::world::{World, plain, shown};
use expect_test::expect;

const HELLO: &str = "name: hello\nsteps: [{id: greet, command: 'Say hello.'}]\n";

fn world() -> World {
    World::new().file("hello.lobsterx.yaml", HELLO).file("mock.yaml", "greet: {text: Hello.}\n")
}

fn ran() -> World {
    let world = world();
    world.printed(&["run", "hello.lobsterx.yaml", "--mock", "mock.yaml"]);
    world
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let world = world().file("sluice.toml", "agent = \"scribe\"\ntoken = \"slk_secret\"\n");
    let mut command = world.command(&["config", "show", "--data", "here", "--json"]);
    command.env("SLUICE_LISTEN", "127.0.0.1:9").env("SLUICE_DTA", "x");
    let output = command.output().unwrap();
    let told = shown(&output);
    assert!(!told.contains("slk_secret"), "{told}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| {
        let all = shown["data"].as_array().unwrap();
        let one = all.iter().find(|one| one["name"] == name).unwrap();
        format!("{} {} {}", one["value"], one["source"], one["file"])
    };
    assert_eq!(of("data"), r#""here" "flag" null"#);
    assert_eq!(of("listen"), r#""127.0.0.1:9" "environment" null"#);
    assert_eq!(of("agent"), r#""scribe" "file" "sluice.toml""#);
    assert_eq!(of("token"), r#""(hidden)" "file" "sluice.toml""#);
    assert_eq!(of("log.level"), r#""info" "default" null"#);
    let people = world.told(&["config", "show"]);
    assert!(people.contains("agent  scribe  sluice.toml"), "{people}");
}

#[test]
fn a_file_that_makes_no_sense_ends_every_command() {
    let world = world().file("sluice.toml", "agnet = \"a\"\n[limits]\nrate_burst = \"many\"\n");
    let told = world.told(&["runs", "list"]);
    expect![[r#"
        stderr:
        error[config_invalid]: `sluice.toml` cannot be used
         |
         = note: line 1: there is no setting `agnet`; did you mean `agent`?
         = note: line 3: `limits.rate_burst`: this is not a number from 1 to 1000000
         = help: correct it; `docs/guide/configuration.md` lists the settings
        exit 2
    "#]]
    .assert_eq(&told);
    let told = world.told(&["doctor"]);
    assert!(told.contains("settings  FAIL") && told.ends_with("exit 1\n"), "{told}");
    let told = world.told(&["config", "show", "--config", "missing.toml"]);
    assert!(told.contains("cannot read `missing.toml`"), "{told}");
}

#[test]
fn the_file_sets_the_agent_of_steps_that_name_none() {
    let world = world().file("sluice.toml", "agent = \"shell\"\ndata = \"runs-here\"\n");
    let world = world.file("true.lobsterx.yaml", "name: t\nsteps: [{id: a, command: 'true'}]\n");
    world.printed(&["run", "true.lobsterx.yaml"]);
    assert!(world.path().join("runs-here/sluice.db").exists());
    let none = world.told(&["run", "true.lobsterx.yaml", "--agent", "nobody"]);
    assert!(none.contains("error[unknown_agent]"), "{none}");
}

const GATED: &str = "name: gated
steps:
  - {id: first, approval: {required: true}}
  - {id: own, depends_on: [first], approval: {required: true, expires_in: 3d}}
";

/// The approval that a run waits for: how long it stays open, and when people are
/// reminded, in milliseconds after it was requested.
fn waits(world: &World, args: &[&str]) -> (u64, Vec<(u64, String)>) {
    let waiting = world.output(args);
    assert_eq!(waiting.status.code(), Some(4), "{}", shown(&waiting));
    let exported = world.json(&["runs", "export", &world.newest(), "--json"]);
    let events = exported["events"].as_array().unwrap();
    let asked = events.iter().rfind(|event| event["type"] == "approval.requested").unwrap();
    let asked = &asked["payload"];
    let ms = |value: &serde_json::Value| value.as_u64().unwrap();
    let reminders = asked["reminders"].as_array().unwrap().iter();
    let reminders = reminders.map(|one| (ms(&one[0]), one[1].as_str().unwrap().to_owned()));
    let (end, reminders) = (ms(&asked["expiresAt"]), reminders.collect::<Vec<_>>());
    let begin = reminders[0].0 - 600_000;
    (end - begin, reminders.into_iter().map(|(at, level)| (at - begin, level)).collect())
}

#[test]
fn approvals_expire_and_are_brought_to_mind_as_the_settings_say() {
    const HOUR: u64 = 3_600_000;
    let settings = "[approvals]\nexpires_in = \"36h\"\nremind_normal = \"10m\"\n\
                    remind_elevated = \"30m\"\nremind_critical = \"1h\"\n";
    let world = world().file("gated.lobsterx.yaml", GATED).file("sluice.toml", settings);
    let reminded = [(600_000, "normal"), (3 * 600_000, "elevated"), (HOUR, "critical")];
    let reminded = reminded.map(|(ms, level)| (ms, level.to_owned())).to_vec();
    let first = waits(&world, &["run", "gated.lobsterx.yaml"]);
    assert_eq!(first, (36 * HOUR, reminded.clone()));
    world.printed(&["approvals", "approve", &world.question()]);
    let own = waits(&world, &["resume", &world.newest()]);
    assert_eq!(own, (3 * 24 * HOUR, reminded), "a step's own `expires_in` is stronger");
}

#[test]
fn reminders_can_be_switched_off() {
    let settings = "[approvals]\nexpires_in = \"3s\"\nremind_normal = \"off\"\n\
                    remind_elevated = \"1s\"\nremind_critical = \"off\"\n";
    let world = world().file("gated.lobsterx.yaml", GATED).file("sluice.toml", settings);
    let shown = world.told(&["config", "show"]);
    assert!(shown.contains("approvals.remind_critical  off"), "{shown}");
    for (elevated, levels) in [("1s", vec!["elevated"]), ("off", vec![])] {
        let settings = settings.replace("elevated = \"1s\"", &format!("elevated = \"{elevated}\""));
        std::fs::write(world.path().join("sluice.toml"), settings).unwrap();
        assert_eq!(world.output(&["run", "gated.lobsterx.yaml"]).status.code(), Some(4));
        let run = world.newest();
        world.until("the approval has expired", |world| {
            let resumed = world.output(&["resume", &run, "--json"]);
            let state: serde_json::Value = serde_json::from_slice(&resumed.stdout).unwrap();
            (state["status"] == "failed").then_some(())
        });
        let exported = world.json(&["runs", "export", &run, "--json"]);
        let events = exported["events"].as_array().unwrap();
        let reminded = events.iter().filter(|event| event["type"] == "approval.reminded");
        let reminded = reminded.map(|event| event["payload"]["level"].as_str().unwrap());
        assert_eq!(reminded.collect::<Vec<_>>(), levels, "{exported:#}");
    }
}

#[test]
fn an_approval_that_is_not_answered_in_time_is_rejected() {
    let settings = "[approvals]\nexpires_in = \"1s\"\n";
    let world = world().file("gated.lobsterx.yaml", GATED).file("sluice.toml", settings);
    let waiting = world.output(&["run", "gated.lobsterx.yaml"]);
    assert_eq!(waiting.status.code(), Some(4), "{}", shown(&waiting));
    let run = world.newest();
    let ended = world.until("it has expired", |world| {
        let resumed = world.output(&["resume", &run, "--json"]);
        let state: serde_json::Value = serde_json::from_slice(&resumed.stdout).unwrap();
        (state["status"] == "failed").then_some(state)
    });
    assert_eq!(ended["node_results"][0]["error_code"], "approval_rejected", "{ended}");
}

#[test]
fn a_doctor_finds_everything_in_order() {
    let world = ran();
    let told = world.told(&["doctor"]);
    for line in [
        "settings  ok  every setting makes sense",
        "data directory  ok  `.sluice` can be written",
        "store  ok  whole, with schema",
        "seals  ok  the key can be used",
        "policies  ok  1 in force",
        "clock  ok  no run is in the future",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let fresh = self::world().told(&["doctor"]);
    assert!(fresh.contains("data directory  warn") && fresh.ends_with("exit 0\n"), "{fresh}");
}

#[test]
fn a_doctor_names_what_is_wrong_and_mends_nothing() {
    let world = ran();
    std::fs::write(world.path().join(".sluice/seal.key"), "no key\n").unwrap();
    let told = world.told(&["doctor"]);
    assert!(told.contains("seals  FAIL") && told.ends_with("exit 1\n"), "{told}");
    let json = world.output(&["doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ok"], false);
    let database = world.path().join(".sluice/sluice.db");
    std::fs::write(&database, b"this is no database, but it is long enough to look like one")
        .unwrap();
    for file in ["sluice.db-wal", "sluice.db-shm"] {
        let _ = std::fs::remove_file(world.path().join(".sluice").join(file));
    }
    let told = world.told(&["doctor"]);
    assert!(told.contains("store  FAIL") && told.contains("backup"), "{told}");
}

#[test]
fn a_backup_is_a_data_directory_of_its_own() {
    let world = ran();
    let told = world.told(&["backup", "copy.db"]);
    assert!(told.contains("copy.db holds all runs, rows and evidence"), "{told}");
    assert!(told.contains("seal.key"), "{told}");
    let again = world.told(&["backup", "copy.db"]);
    assert!(again.contains("error[file_exists]") && again.ends_with("exit 2\n"), "{again}");
    let mode = std::fs::metadata(world.path().join("copy.db")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    std::fs::create_dir(world.path().join("restored")).unwrap();
    for (from, to) in [("copy.db", "sluice.db"), (".sluice/seal.key", "seal.key")] {
        let to = world.path().join("restored").join(to);
        std::fs::copy(world.path().join(from), to).unwrap();
    }
    std::fs::copy(world.path().join(".sluice/seal.pub"), world.path().join("restored/seal.pub"))
        .unwrap();
    let list = |data: &str| world.told(&["runs", "list", "--data", data]);
    assert_eq!(list("restored"), list(".sluice"));
    let verified = world.told(&["audit", "verify", "--data", "restored"]);
    assert!(verified.contains("nothing is wrong"), "{verified}");
    let none = world.told(&["backup", "other.db", "--data", "nowhere"]);
    assert!(none.contains("error[data_unusable]"), "{none}");
}

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world().printed(&["completions", shell]);
        assert!(script.contains("approvals") && script.contains("doctor"), "{shell}");
    }
    let odd = plain(&shown(&world().output(&["completions", "tcsh"])));
    assert!(odd.ends_with("exit 2\n"), "{odd}");
}
