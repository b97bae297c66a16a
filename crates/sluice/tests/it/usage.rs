//! Help, version, wrong usage, and readers that go away.

use crate::session::{Session, binary, root};
use expect_test::expect;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn help_names_every_command() {
    expect![[r#"
        stdout:
        A governed, durable workflow engine for AI agents

        Usage: sluice [OPTIONS] <COMMAND>

        Author workflows:
          validate       Check workflow documents and report every problem
          plan           Show the plan of a document: its steps, wave by wave
          schema         Print the schema of a document format, of the HTTP API or of policies
          eval           Evaluate an expression against values
          workflows      Manage registered workflows, and start them by name
          lenses         Show lenses: prompts with contracts that workflows use by name
          teams          Manage teams: members that share the steps of workflows
          instructions   Manage standing instructions of the platform and the owner
          notes          Manage notes: texts that memory profiles load
          memories       Manage memory profiles: which past results prompts include

        Run:
          run            Run a workflow in this process
          resume         Continue an unfinished run in this process
          runs           Inspect, control and export runs
          schedules      Manage schedules, which start workflows
          hooks          Manage inbound webhooks, which start runs

        Decide:
          approvals      Approve or reject what runs wait for

        Govern:
          apply          Apply a setup file to the registry, and show the changes
          agents         Manage agents, which execute steps
          gateways       Manage gateways, through which agents are reached
          roles          Manage roles: limits on the agents bound to them
          deployments    Bind a workflow's roles to agents and gateways
          policies       Manage, test and compare Cedar policies
          budgets        Manage budgets: caps on spending
          prices         Manage the prices of models
          cost           Show what runs have cost
          audit          Read, verify and export the audit log

        Operate:
          serve          Serve the API and the console, and execute all runs
          tokens         Manage the tokens that callers of a server authenticate with
          organisations  Manage organisations, each with its own store
          doctor         Check the settings, the store, the keys and the gateways
          backup         Copy the stores of all organisations, also while they are in use
          migrate        Move a data directory into a PostgreSQL database that nodes share
          config         Show the settings and their sources
          completions    Print a completion script for a shell

        Extend:
          bridge         Execute steps for a remote server, as one of its gateways
          mcp            Serve Sluice's tools to an agent over MCP, on standard input and output
          tools          Review and accept the definitions of MCP tools
          webhooks       Manage outbound webhooks, which send events

        Options:
              --config <FILE>  Read settings from this file [default: `sluice.toml` in this directory, then
                               in the data directory]
              --url <URL>      Call this server instead of opening a data directory [env: SLUICE_URL]
          -h, --help           Print help
          -V, --version        Print version

        A server explains each error code at /api/docs/errors/CODE.

        Example:
          sluice validate examples/vendor-review.lobsterx.yaml
        exit 0
    "#]]
    .assert_eq(&Session::new().run(&["--help"]));
}

#[test]
fn version_is_the_crates() {
    let version = concat!("stdout:\nsluice ", env!("CARGO_PKG_VERSION"), "\nexit 0\n");
    assert_eq!(Session::new().run(&["--version"]), version);
}

#[test]
fn every_command_helps_with_an_example() {
    let alone = ["validate", "plan", "schema", "eval", "run", "resume"];
    let runs = ["list", "show", "watch", "cancel", "pause", "unpause", "retry", "restart"];
    let runs = runs.into_iter().chain(["rewind", "branch", "export", "erase", "elide"]);
    let approvals = ["list", "show", "approve", "reject", "retry", "skip", "abort"];
    let alone = alone.into_iter().map(str::to_owned);
    let runs = runs.map(|word| format!("runs {word}"));
    let approvals = approvals.into_iter().map(|word| format!("approvals {word}"));
    let audit = ["verify", "export", "tail", "seal"].map(|word| format!("audit {word}"));
    let rows = ["list", "show", "set", "remove"];
    let nouns = ["agents", "gateways", "roles", "deployments", "budgets", "prices", "teams"];
    let nouns = nouns.into_iter().chain(["webhooks", "hooks"]);
    let rows = nouns.flat_map(|noun| rows.map(|word| format!("{noun} {word}")));
    let more = [
        "apply",
        "agents pause",
        "agents resume",
        "agents promote",
        "agents extend",
        "gateways pause",
        "gateways resume",
        "gateways token",
        "gateways check",
        "budgets reopen",
        "policies list",
        "policies show",
        "policies remove",
        "policies check",
        "policies test",
        "policies diff",
        "policies shadow",
        "policies init",
        "workflows list",
        "workflows show",
        "workflows put",
        "workflows start",
        "workflows remove",
        "tools list",
        "tools show",
        "tools accept",
        "doctor",
        "backup",
        "config show",
        "completions",
    ];
    let rows = rows.chain(more.map(str::to_owned));
    for command in alone.chain(runs).chain(approvals).chain(rows).chain(audit) {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.push("--help");
        let help = Session::new().run(&args);
        assert!(help.contains("Example:\n"), "{help}");
        assert!(help.contains(&format!("sluice {command} ")), "{help}");
        assert!(help.ends_with("exit 0\n"), "{help}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let wrong: [&[&str]; 7] = [
        &[],
        &["frobnicate"],
        &["validate"],
        &["validate", "-", "-"],
        &["plan", "a.yaml", "--format", "png"],
        &["plan", "a.yaml", "--format", "dot", "--json"],
        &["schema", "toml"],
    ];
    for args in wrong {
        let told = Session::new().run(args);
        assert!(told.ends_with("exit 2\n") && told.starts_with("stderr:\n"), "{args:?}: {told}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = binary(&root())
        .args(["schema", "lens"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One line, then the pipe is closed while the rest (more than a pipe holds) is written.
    let mut line = String::new();
    BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(line, "{\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_exit_code_survives_a_reader_that_goes_away() {
    let session = Session::new().file("empty.lobsterx.yaml", "");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = binary(session.path())
        .args(["validate", "--json", "empty.lobsterx.yaml"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_with_its_cause() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = binary(&root()).args(["schema", "lens"]).stdout(full).output().unwrap();
    expect![[r#"
        error: cannot write to standard output
         |
         = note: caused by: No space left on device (os error 28)
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn colours_need_a_terminal() {
    let session = Session::new().file("empty.lobsterx.yaml", "");
    let output = session.output(&["validate", "empty.lobsterx.yaml"], b"");
    assert!(!output.stderr.contains(&0x1b) && !output.stdout.contains(&0x1b));
}
