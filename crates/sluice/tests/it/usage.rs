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

        Commands:
          validate       Check workflow documents and report every problem
          plan           Show what a document becomes: its steps, wave by wave
          schema         Print the schema of a document format or of the HTTP API
          eval           Evaluate an expression against values
          run            Run a workflow here
          serve          Serve the API, and do the work of all runs here
          bridge         Do the work of steps for a server elsewhere, as one of its gateways
          mcp            Let an agent use Sluice through tools, over standard input and output
          tokens         Who may ask for what over the network
          organisations  Organisations, each with a store of its own
          resume         Take an unfinished run up here
          runs           Look at runs, and change their course
          approvals      Answer questions that runs ask
          audit          See what happened, and prove it
          apply          Make the registry say what a file says, and show what changes
          agents         Who does work
          gateways       Where work is done
          roles          Bounds on whoever acts in a role
          deployments    Who and where, for one workflow each
          budgets        Caps on money
          cost           See what work has cost
          notes          Texts that memory profiles load
          memories       What steps are told of the past
          instructions   Standing instructions of the platform and the owner
          prices         What models cost
          policies       Rules about what may be done
          workflows      Workflows that can be run by name
          lenses         Prompts with contracts that workflows can use by name
          teams          Members that share the steps of workflows
          schedules      Workflows that are started by themselves
          webhooks       Whom events are sent to
          hooks          Doors through which others start runs
          tools          Definitions of tools, and which of them are accepted
          doctor         Check that everything Sluice needs here is in order
          backup         Copy the stores of all organisations, while others work on them
          migrate        Move everything of a data directory into a PostgreSQL database that nodes share
          config         Settings and where they come from
          completions    Write a script that completes commands in a shell
          help           Print this message or the help of the given subcommand(s)

        Options:
              --config <FILE>  Read settings from this file; by default `sluice.toml` here, then in the data
                               directory
              --url <URL>      Talk to this server instead of a data directory; by default what SLUICE_URL
                               says
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
