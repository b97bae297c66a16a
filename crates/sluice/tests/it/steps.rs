//! `sluice runs show RUN STEP` and `sluice runs logs`.

use crate::server::{Server, same};
use crate::world::{World, plain, shown};
use expect_test::{Expect, expect};

const BUILD: &str = "
name: build
version: 1
max_parallel: 1
steps:
  - {id: make, agent: shell, command: 'echo one >&2; echo two >&2; echo made'}
  - {id: each, agent: shell, for_each: [a, b], depends_on: [make], command: 'echo log ${item} >&2; echo out ${item}'}
  - id: tell
    agent: mock
    inputs: {what: make.stdout}
    depends_on: [each]
    command: \"Tell of ${what}\\nin two lines\"
    outputs: {words: {type: integer}}
    retry: {attempts: 2}
  - {id: letter, agent: mock, depends_on: [tell], command: Write a letter}
";
const MOCK: &str = "
tell:
  - {error: busy, error_code: provider_error, input_tokens: 3}
  - {text: 'It is {\"words\": 2}', outputs: {words: 2}, input_tokens: 10, output_tokens: 5, cost: 0.002}
letter: {text: \"Dear all,\\nit is made.\\n\"}
";

fn world() -> World {
    World::new().file("build.lobsterx.yaml", BUILD).file("mock.yaml", MOCK)
}

fn ran(world: &World) -> String {
    let run = world.json(&["run", "build.lobsterx.yaml", "--mock", "mock.yaml", "--json"]);
    run["run_id"].as_str().unwrap().to_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is passed")]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.told(args));
}

#[test]
fn a_step_is_shown_with_its_prompt_answer_outputs_attempts_and_cost() {
    let world = world();
    let run = ran(&world);
    check(
        &world,
        &["runs", "show", &run, "tell"],
        expect![[r#"
            stdout:
            RUN-1  tell
            completed
              agent  mock
              gateway  local
              started  WHEN
              ended  WHEN, after TIME
              spent  18 tokens, $0.002

            inputs
              what: made

            prompt
              Tell of made

              in two lines

            answer
              It is {"words": 2}

            outputs
              words: 2
              what: made

            labels
              all  from unknown

            attempts
              1  WHEN  local  TIME  3 tokens  failed, provider_error: busy
              2  WHEN  local  TIME  15 tokens, $0.002  completed
            exit 0
        "#]],
    );
    check(
        &world,
        &["runs", "show", &run, "make"],
        expect![[r#"
            stdout:
            RUN-1  make
            completed
              agent  shell
              gateway  local
              started  WHEN
              ended  WHEN, after TIME

            prompt
              echo one >&2; echo two >&2; echo made

            answer
              made

            labels
              all  from unknown

            attempts
              1  WHEN  local  TIME  completed

            logs
              one
              two
            exit 0
        "#]],
    );
    check(
        &world,
        &["runs", "show", &run, "each"],
        expect![[r#"
            stdout:
            RUN-1  each
            completed
              gateway  local
              started  WHEN
              ended  WHEN, after TIME

            answer
              out a
              out b

            outputs
              items: [{"text":"out a\n"},{"text":"out b\n"}]

            labels
              all  from unknown

            attempts
              1  WHEN  local  TIME  completed
            exit 0
        "#]],
    );
    check(
        &world,
        &["runs", "show", &run, "each[1]"],
        expect![[r#"
            stdout:
            RUN-1  each[1]
            completed
              agent  shell
              gateway  local
              started  WHEN
              ended  WHEN, after TIME

            prompt
              echo log "$SLUICE_V1" >&2; echo out "$SLUICE_V1"

            answer
              out b

            labels
              all  from unknown

            attempts
              1  WHEN  local  TIME  completed

            logs
              log b
            exit 0
        "#]],
    );
    check(
        &world,
        &["runs", "show", &run, "tel"],
        expect![[r#"
        stderr:
        error[unknown_step]: RUN-1 has no step `tel`
         |
         = help: did you mean `tell`?
        exit 2
    "#]],
    );
    let step = world.json(&["runs", "show", &run, "letter", "--json"]);
    assert_eq!(step["node"]["output"], "Dear all,\nit is made.\n");
    assert_eq!(step["attempts"][0]["type"], "node.started");
}

#[test]
fn what_an_answer_that_does_not_fit_said_is_shown() {
    let document = "
name: judge
steps:
  - id: review
    command: Judge it
    outputs: {verdict: {type: string, enum: [good, bad]}}
    repair: {reask: 1}
";
    let mock = "
review:
  - {text: \"I would rather not say.\\nAsk again.\"}
  - {text: '{\"verdict\": \"fair\"}', outputs: {verdict: fair}}
";
    let world = World::new().file("judge.lobsterx.yaml", document).file("mock.yaml", mock);
    check(
        &world,
        &["run", "judge.lobsterx.yaml", "--mock", "mock.yaml"],
        expect![[r#"
        stderr:
        RUN-1 started
        retrying  review  attempt 1 failed: verdict is required; again after TIME
                   answered: I would rather not say.
                   Ask again.
        failed  review  output_validation_failed: verdict is "fair", not one of "good", "bad"
                   answered: {"verdict": "fair"}
        look: sluice runs show RUN-1
        retry: sluice runs retry RUN-1 --mock mock.yaml
        stdout:
        failed in TIME
        output_validation_failed: `review` failed: verdict is "fair", not one of "good", "bad"
        exit 1
    "#]],
    );
    check(
        &world,
        &["runs", "show", &world.newest(), "review"],
        expect![[r#"
        stdout:
        RUN-1  review
        failed
          agent  mock
          gateway  local
          started  WHEN
          ended  WHEN, after TIME
          error  output_validation_failed: verdict is "fair", not one of "good", "bad"

        prompt
          Judge it

          Your last answer was not accepted: verdict is required

        attempts
          1  WHEN  local  TIME  failed, contract_violated: verdict is required
          2  WHEN  local  TIME  failed, output_validation_failed: verdict is "fair", not one of "good", "bad"

        attempt 1 answered
          I would rather not say.
          Ask again.

        attempt 2 answered
          {"verdict": "fair"}
        exit 0
    "#]],
    );
}

/// What a person is told of a run of `build`.
fn built() -> Expect {
    expect![[r#"
        stderr:
        RUN-1 started
        completed  make  TIME
        completed  each[0]  TIME
        completed  each[1]  TIME
        completed  each  TIME
        retrying  tell  attempt 1 failed: busy; again after TIME
        completed  tell  TIME, 2 attempts, 15 tokens, $0.002
        completed  letter  TIME
        stdout:
        completed in TIME, 18 tokens, $0.002
          words: 2
          letter:
            Dear all,
            it is made.
        exit 0
    "#]]
}

#[test]
fn what_the_last_steps_said_is_printed_beside_the_variables() {
    check(&world(), &["run", "build.lobsterx.yaml", "--mock", "mock.yaml"], built());
    // A document that says what its result is has said enough.
    let named = format!("{BUILD}outputs: {{words: '${{words}}'}}\n");
    let told = world().file("build.lobsterx.yaml", &named).told(&[
        "run",
        "build.lobsterx.yaml",
        "--mock",
        "mock.yaml",
    ]);
    assert!(!told.contains("Dear all"), "{told}");
}

#[test]
fn logs_are_printed_of_all_steps_or_of_one() {
    let world = world();
    let run = ran(&world);
    check(
        &world,
        &["runs", "logs", &run],
        expect![[r#"
        stdout:
        WHEN  make  one
        WHEN  make  two
        WHEN  each[0]  log a
        WHEN  each[1]  log b
        exit 0
    "#]],
    );
    check(
        &world,
        &["runs", "logs", &run, "each", "--follow"],
        expect![[r#"
        stdout:
        WHEN  each[0]  log a
        WHEN  each[1]  log b
        exit 0
    "#]],
    );
    check(
        &world,
        &["runs", "logs", &run, "letter"],
        expect![[r#"
        stderr:
        no log lines
        exit 0
    "#]],
    );
    check(
        &world,
        &["runs", "logs", &run, "eech"],
        expect![[r#"
        stderr:
        error[unknown_step]: RUN-1 has no step `eech`
         |
         = help: did you mean `each`?
        exit 2
    "#]],
    );
    let lines = world.printed(&["runs", "logs", &run, "make", "--json"]);
    let texts: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts = texts.iter().filter_map(|one| one["payload"]["text"].as_str());
    // Lines that come at once are one event.
    assert_eq!(texts.collect::<Vec<_>>().join("\n"), "one\ntwo");
}

#[test]
fn logs_are_followed_until_the_run_ends() {
    let slow = "
name: slow
steps: [{id: nap, agent: shell, command: 'echo asleep >&2; while [ ! -e ../../../go ]; do sleep 0.02; done; echo awake >&2'}]
";
    let world = World::new().file("slow.lobsterx.yaml", slow);
    let running = world.start(&["run", "slow.lobsterx.yaml"]);
    let run = world.until_step("nap", "running");
    let following = world.start(&["runs", "logs", &run, "--follow"]);
    std::fs::write(world.path().join("go"), "").unwrap();
    expect![[r#"
        stdout:
        WHEN  nap  asleep
        WHEN  nap  awake
        exit 0
    "#]]
    .assert_eq(&following.told());
    assert_eq!(running.output().status.code(), Some(0));
}

#[test]
fn a_server_shows_the_same() {
    let world = world().file("build.yaml", BUILD);
    world.printed(&["workflows", "put", "build.lobsterx.yaml"]);
    let server = Server::start(&world, "127.0.0.1:0");
    let started = server.output(&world, &["workflows", "start", "build"]);
    assert_eq!(started.status.code(), Some(0), "{}", shown(&started));
    built().assert_eq(&plain(&shown(&started)));
    let run = world.newest();
    for args in [
        &["runs", "show", &run, "tell"][..],
        &["runs", "show", &run, "each[0]"],
        &["runs", "show", &run, "nowhere"],
        &["runs", "show", &run, "make", "--json"],
        &["runs", "logs", &run],
        &["runs", "logs", &run, "each"],
        &["runs", "logs", &run, "--follow"],
        &["runs", "logs", &run, "nowhere"],
    ] {
        let here = || shown(&world.output(args));
        same(here, || shown(&server.output(&world, args))).unwrap();
    }
}
