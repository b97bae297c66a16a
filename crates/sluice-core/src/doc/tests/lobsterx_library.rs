//! Library steps: copied fields and locked fields.

use super::Script;
use expect_test::expect;

const LIBRARY: &str = "
    library:
      review:
        command: review ${topic}
        agent: reviewer
        timeout: 90s
        max_cost_cents: 50
        max_output_tokens: 100
        tools: [read, grep]
        capabilities: [sandbox, gpu]
        moderation: input
        on_failure: skip
        model: strong
        locked: [agent, timeout, max_cost_cents, max_output_tokens, tools, capabilities, moderation, on_failure]
      open:
        command: open
        timeout: 90s
        model: strong
        tools: [read]
      ask:
        approval: {required: true, quorum: 2}
        locked: [approval]
      each:
        command: go ${item}
        max_items: 10
        locked: [max_items]
      empty: {model: m}
      broken:
        command: go ${absent} ${nothing}
        role: ghost
        condition: nowhere.x == 1
        on_failure: fail
        stdin: $gone.stdout
        cwd: /etc
      bash:
        agent: shell
        env: {VERSION: 1.10, FLAG: true}
        command: echo '${topic}'
      sub: {workflow_ref: other, args: {a: ['${absent}'], b: '${args.topic}'}}
      float: {command: go, env: {A: 1.5, B: 7, C: true}}
      free: {command: go, moderation: off, locked: [moderation]}
    ";

fn told(steps: &str) -> Script {
    Script::lobsterx(&format!("name: tiny\nargs: {{topic: string}}\n{steps}")).registry(LIBRARY)
}

/// One library step with one line of the step's own.
fn each(library: &str, lines: &[&str], shown: &'static str) -> String {
    let mut out = String::new();
    for line in lines {
        let steps = format!("steps:\n  - id: one\n    library_step: {library}\n    {line}\n");
        let transcript = told(&steps).show(shown).transcript();
        out.push_str(&format!("{line} => {}\n", transcript.trim_end().replace('\n', " | ")));
    }
    out
}

#[test]
fn a_step_takes_over_what_it_does_not_say() {
    told("steps: [{id: one, library_step: open, model: weak}]")
        .show("steps.0.work")
        .show("steps.0.timeout_ms")
        .show("steps.0.model")
        .show("steps.0.tools")
        .check(expect![[r#"
            ok
            steps.0.work = {"kind":"command","command":"open"}
            steps.0.timeout_ms = 90000
            steps.0.model = "weak"
            steps.0.tools = ["read"]
        "#]]);
}

#[test]
fn the_step_wins_over_the_library_and_the_library_over_defaults() {
    told("defaults: {model: base, timeout: 5, memory: m, tools: [x, y]}\nsteps: [{id: one, library_step: open, timeout: 7}, {id: two, command: go}]")
        .show("steps.0.timeout_ms")
        .show("steps.0.model")
        .show("steps.0.memory")
        .show("steps.0.tools")
        .show("steps.1.timeout_ms")
        .show("steps.1.model")
        .check(expect![[r#"
            ok
            steps.0.timeout_ms = 7000
            steps.0.model = "strong"
            steps.0.memory = "m"
            steps.0.tools = ["read"]
            steps.1.timeout_ms = 5000
            steps.1.model = "base"
        "#]]);
}

#[test]
fn locked_durations_and_amounts_may_be_lower() {
    expect![[r#"
        timeout: 90s => ok | steps.0.timeout_ms = 90000
        timeout: 90 => ok | steps.0.timeout_ms = 90000
        timeout: 1.5m => ok | steps.0.timeout_ms = 90000
        timeout: 89s => ok | steps.0.timeout_ms = 89000
        timeout: 90001ms => 6:14 locked_field steps[0].timeout: library step `review` locks `timeout` (leave it out, or set it to something stricter)
        timeout: 91 => 6:14 locked_field steps[0].timeout: library step `review` locks `timeout` (leave it out, or set it to something stricter)
        timeout: => ok | steps.0.timeout_ms = 90000
        timeout: ~ => ok | steps.0.timeout_ms = 90000
        timeout: soon => 6:14 bad_duration steps[0].timeout: `soon` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
    "#]].assert_eq(&each(
        "review",
        &[
            "timeout: 90s", "timeout: 90", "timeout: 1.5m", "timeout: 89s", "timeout: 90001ms",
            "timeout: 91", "timeout:", "timeout: ~", "timeout: soon",
        ],
        "steps.0.timeout_ms",
    ));
    expect![[r#"
        max_cost_cents: 50 => ok | steps.0.max_cost = 50000000
        max_cost_cents: 50.0 => ok | steps.0.max_cost = 50000000
        max_cost_cents: 49.99 => ok | steps.0.max_cost = 49990000
        max_cost_cents: 50.01 => 6:21 locked_field steps[0].max_cost_cents: library step `review` locks `max_cost_cents` (leave it out, or set it to something stricter)
        max_cost_cents: 0 => ok | steps.0.max_cost = 0
        max_cost_cents: => ok | steps.0.max_cost = 50000000
        max_cost_cents: '9' => 6:21 wrong_type steps[0].max_cost_cents: expected a number, found a string
    "#]].assert_eq(&each(
        "review",
        &[
            "max_cost_cents: 50", "max_cost_cents: 50.0", "max_cost_cents: 49.99",
            "max_cost_cents: 50.01", "max_cost_cents: 0", "max_cost_cents:", "max_cost_cents: '9'",
        ],
        "steps.0.max_cost",
    ));
    expect![[r#"
        max_output_tokens: 100 => ok | steps.0.max_output_tokens = 100
        max_output_tokens: 99 => ok | steps.0.max_output_tokens = 99
        max_output_tokens: 101 => 6:24 locked_field steps[0].max_output_tokens: library step `review` locks `max_output_tokens` (leave it out, or set it to something stricter)
        max_output_tokens: null => ok | steps.0.max_output_tokens = 100
        max_output_tokens: '1' => 6:24 wrong_type steps[0].max_output_tokens: expected a number, found a string
        max_output_tokens: 0 => 6:24 bad_value steps[0].max_output_tokens: 0 is not a whole number from 1 to 9007199254740991
    "#]].assert_eq(&each(
        "review",
        &[
            "max_output_tokens: 100", "max_output_tokens: 99", "max_output_tokens: 101",
            "max_output_tokens: null", "max_output_tokens: '1'", "max_output_tokens: 0",
        ],
        "steps.0.max_output_tokens",
    ));
}

#[test]
fn locked_lists_and_words() {
    expect![[r#"
        tools: [read, grep] => ok | steps.0.tools = ["read","grep"]
        tools: [grep, read] => ok | steps.0.tools = ["grep","read"]
        tools: [read] => ok | steps.0.tools = ["read"]
        tools: [write] => 6:12 locked_field steps[0].tools: library step `review` locks `tools` (leave it out, or set it to something stricter)
        tools: [read, grep, write] => 6:12 locked_field steps[0].tools: library step `review` locks `tools` (leave it out, or set it to something stricter)
        tools: [] => 6:12 locked_field steps[0].tools: library step `review` locks `tools` (leave it out, or set it to something stricter)
        tools: => ok | steps.0.tools = ["read","grep"]
        tools: read => 6:12 wrong_type steps[0].tools: expected a list, found a string
    "#]].assert_eq(&each(
        "review",
        &[
            "tools: [read, grep]", "tools: [grep, read]", "tools: [read]", "tools: [write]",
            "tools: [read, grep, write]", "tools: []", "tools:", "tools: read",
        ],
        "steps.0.tools",
    ));
    // Requiring more of a gateway is stricter.
    expect![[r#"
        capabilities: [sandbox, gpu] => ok | steps.0.capabilities = ["sandbox","gpu"]
        capabilities: [gpu, sandbox] => ok | steps.0.capabilities = ["gpu","sandbox"]
        capabilities: [sandbox, gpu, eu] => ok | steps.0.capabilities = ["sandbox","gpu","eu"]
        capabilities: [sandbox] => 6:19 locked_field steps[0].capabilities: library step `review` locks `capabilities` (leave it out, or set it to something stricter)
        capabilities: [] => 6:19 locked_field steps[0].capabilities: library step `review` locks `capabilities` (leave it out, or set it to something stricter)
        capabilities: => ok | steps.0.capabilities = ["sandbox","gpu"]
    "#]].assert_eq(&each(
        "review",
        &[
            "capabilities: [sandbox, gpu]", "capabilities: [gpu, sandbox]",
            "capabilities: [sandbox, gpu, eu]", "capabilities: [sandbox]", "capabilities: []",
            "capabilities:",
        ],
        "steps.0.capabilities",
    ));
    expect![[r#"
        moderation: input => ok | steps.0.moderation = "input"
        moderation: both => ok | steps.0.moderation = "both"
        moderation: output => 6:17 locked_field steps[0].moderation: library step `review` locks `moderation` (leave it out, or set it to something stricter)
        moderation: off => 6:17 locked_field steps[0].moderation: library step `review` locks `moderation` (leave it out, or set it to something stricter)
        moderation: 'input' => ok | steps.0.moderation = "input"
        moderation: => ok | steps.0.moderation = "input"
        moderation: inputt => 6:17 bad_value steps[0].moderation: `inputt` is not a moderation (did you mean `input`?)
    "#]].assert_eq(&each(
        "review",
        &[
            "moderation: input", "moderation: both", "moderation: output", "moderation: off",
            "moderation: 'input'", "moderation:", "moderation: inputt",
        ],
        "steps.0.moderation",
    ));
    expect![[r#"
        moderation: off => ok | steps.0.moderation = "off"
        moderation: input => ok | steps.0.moderation = "input"
        moderation: output => ok | steps.0.moderation = "output"
        moderation: both => ok | steps.0.moderation = "both"
    "#]]
    .assert_eq(&each(
        "free",
        &["moderation: off", "moderation: input", "moderation: output", "moderation: both"],
        "steps.0.moderation",
    ));
}

#[test]
fn other_locked_fields_stay_as_they_are() {
    expect![[r#"
        agent: reviewer => ok | steps.0.agent = "reviewer"
        agent: shell => 6:12 locked_field steps[0].agent: library step `review` locks `agent` (leave it out, or set it to something stricter)
        agent: null => ok | steps.0.agent = "reviewer"
        Agent: shell => 6:5 unknown_field steps[0].Agent: unknown field `Agent` (did you mean `agent`?)
        on_failure: skip => ok | steps.0.agent = "reviewer"
        on_failure: halt => 6:17 locked_field steps[0].on_failure: library step `review` locks `on_failure` (leave it out, or set it to something stricter)
        on_failure: continue => ~6:17 deprecated_value steps[0].on_failure: `continue` is an old name of `skip` (write `skip`) | ok | steps.0.agent = "reviewer"
        command: anything => ok | steps.0.agent = "reviewer"
        model: weak => ok | steps.0.agent = "reviewer"
        <<: {agent: shell} => 6:5 unknown_field steps[0].<<: merge keys are not supported
    "#]].assert_eq(&each(
        "review",
        &[
            "agent: reviewer", "agent: shell", "agent: null", "Agent: shell", "on_failure: skip",
            "on_failure: halt", "on_failure: continue", "command: anything", "model: weak",
            "<<: {agent: shell}",
        ],
        "steps.0.agent",
    ));
    expect![[r#"
        approval: {quorum: 2, required: true} => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":2}
        approval: required => 6:15 locked_field steps[0].approval: library step `ask` locks `approval` (leave it out, or set it to something stricter)
        approval: {required: false} => 4:9 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`) | 6:15 locked_field steps[0].approval: library step `ask` locks `approval` (leave it out, or set it to something stricter)
        approval: {quorum: 1} => 6:15 locked_field steps[0].approval: library step `ask` locks `approval` (leave it out, or set it to something stricter)
        approval: {quorum: 3} => 6:15 locked_field steps[0].approval: library step `ask` locks `approval` (leave it out, or set it to something stricter)
        approval: => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":2}
        command: go => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":2}
    "#]].assert_eq(&each(
        "ask",
        &[
            "approval: {quorum: 2, required: true}", "approval: required",
            "approval: {required: false}", "approval: {quorum: 1}", "approval: {quorum: 3}",
            "approval:", "command: go",
        ],
        "steps.0.approval",
    ));
    expect![[r#"
        for_each: [a] => ok | steps.0.for_each = {"items":{"list":["a"]},"max_items":10}
        for_each: {items: [a], max_items: 3} => 5:19 conflicting_fields steps[0].max_items: `max_items` is also set inside `for_each`
        for_each: {items: [a], max_items: 1000} => 5:19 conflicting_fields steps[0].max_items: `max_items` is also set inside `for_each`
        model: x => 5:19 conflicting_fields steps[0].max_items: `max_items` belongs to `for_each`, which is not set | ~5:19 unknown_variable steps[0].command: nothing sets `item` (`item` exists only in a step with `for_each`)
    "#]].assert_eq(&each(
        "each",
        &[
            "for_each: [a]",
            "for_each: {items: [a], max_items: 3}", "for_each: {items: [a], max_items: 1000}",
            "model: x",
        ],
        "steps.0.for_each",
    ));
    told("steps: [{id: one, library_step: each, for_each: [a], max_items: 9}, {id: two, library_step: each, for_each: [a], max_items: 11}]")
        .check(expect![[r#"
            3:125 locked_field steps[1].max_items: library step `each` locks `max_items` (leave it out, or set it to something stricter)
        "#]]);
}

#[test]
fn nothing_is_smuggled_past_a_lock() {
    // Through defaults, also with a null of the step's own; through an alias.
    told("defaults: {agent: shell, timeout: 9999, approval: {required: false}, max_items: 10000}\nsteps:\n  - {id: one, library_step: review, agent: , timeout: ~}\n  - {id: two, library_step: ask, approval: null}\n  - {id: three, library_step: each, for_each: [a]}\n")
        .show("steps.0.agent")
        .show("steps.0.timeout_ms")
        .show("steps.1.approval")
        .show("steps.2.for_each.max_items")
        .check(expect![[r#"
            ok
            steps.0.agent = "reviewer"
            steps.0.timeout_ms = 90000
            steps.1.approval = {"covers_retries":false,"not_initiator":false,"quorum":2}
            steps.2.for_each.max_items = 10
        "#]]);
    told("steps:\n  - {id: zero, command: go, agent: &sh shell, timeout: &long 9999}\n  - {id: one, library_step: review, agent: *sh, timeout: *long}\n")
        .check(expect![[r#"
            5:44 locked_field steps[1].agent: library step `review` locks `agent` (leave it out, or set it to something stricter)
            5:58 locked_field steps[1].timeout: library step `review` locks `timeout` (leave it out, or set it to something stricter)
        "#]]);
}

#[test]
fn a_librarys_problems_show_where_it_is_named() {
    told("steps:\n  - id: one\n    library_step: broken\n  - {id: two, library_step: broken, command: go, role: }\n")
        .check(expect![[r#"
            5:19 bad_value steps[0].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            5:19 unknown_step steps[0].stdin: there is no step `gone` (did you mean `one`?)
            5:19 unknown_role steps[0].role: the role `ghost` is not declared (declare it under `roles`)
            5:19 unknown_identifier steps[0].condition: `nowhere` is not a step, variable or argument
            ~5:19 deprecated_value steps[0].on_failure: `fail` is an old name of `halt` (write `halt`)
            ~5:19 unknown_variable steps[0].command: nothing sets `absent`
            ~5:19 unknown_variable steps[0].command: nothing sets `nothing`
            6:29 bad_value steps[1].cwd: the working directory must lie inside the run's workspace (use a relative path without `..`)
            6:29 unknown_step steps[1].stdin: there is no step `gone` (did you mean `one`?)
            6:29 unknown_role steps[1].role: the role `ghost` is not declared (declare it under `roles`)
            6:29 unknown_identifier steps[1].condition: `nowhere` is not a step, variable or argument
            ~6:29 deprecated_value steps[1].on_failure: `fail` is an old name of `halt` (write `halt`)
        "#]]);
}

#[test]
fn a_library_step_needs_a_command_too() {
    told("steps: [{id: one, library_step: empty}, {id: two, library_step: empty, command: go}]")
        .check(expect![[r#"
            3:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
        "#]]);
}

#[test]
fn library_steps_that_are_not_there() {
    told("steps: [{id: one, library_step: reviw}, {id: two, library_step: nothing_alike}, {id: three, library_step: 5}, {id: four, library_step: ''}]")
        .check(expect![[r#"
            3:33 unknown_library_step steps[0].library_step: the library has no step `reviw` (did you mean `review`?)
            3:65 unknown_library_step steps[1].library_step: the library has no step `nothing_alike`
            3:107 wrong_type steps[2].library_step: expected a string, found a number (quote it if it is meant as text)
            3:136 unknown_library_step steps[3].library_step: the library has no step ``
        "#]]);
    Script::lobsterx("{name: tiny, steps: [{id: one, library_step: review, model: x}, {id: two, command: go, condition: one.anything == 1}]}")
        .show("steps.0.work")
        .show("steps.0.model")
        .check(expect![[r#"
            ~1:46 unresolved_reference steps[0].library_step: library step `review` cannot be checked: no library is loaded
            ok
            steps.0.work = {"kind":"unresolved","what":"library_step","name":"review"}
            steps.0.model = "x"
        "#]]);
    // A registry without a `library` has not loaded one; an empty `library` is loaded.
    let text = "{name: tiny, steps: [{id: one, library_step: review}]}";
    Script::lobsterx(text).registry("{workflows: {}}").check(expect![[r#"
        ~1:46 unresolved_reference steps[0].library_step: library step `review` cannot be checked: no library is loaded
        ok
    "#]]);
    Script::lobsterx(text).registry("{library: {}}").check(expect![[r#"
        1:46 unknown_library_step steps[0].library_step: the library has no step `review`
    "#]]);
}

#[test]
fn the_shell_is_safe_whoever_chose_it() {
    let unsafe_command = "echo '${args.topic}'";
    told(&format!("steps: [{{id: one, agent: shell, command: \"{unsafe_command}\"}}]"))
        .check(expect![[r#"
            3:51 unsafe_reference steps[0].command: `${args.topic}` cannot be used inside single quotes (use double quotes, or no quotes at all)
        "#]]);
    told(&format!("defaults: {{agent: shell}}\nsteps: [{{id: one, command: \"{unsafe_command}\"}}]"))
        .check(expect![[r#"
            4:37 unsafe_reference steps[0].command: `${args.topic}` cannot be used inside single quotes (use double quotes, or no quotes at all)
        "#]]);
    told(&format!("defaults: {{command: \"{unsafe_command}\"}}\nsteps: [{{id: one, agent: shell}}, {{id: two, agent: shell}}, {{id: three, agent: other}}]"))
        .check(expect![[r#"
            3:30 unsafe_reference steps[0].command: `${args.topic}` cannot be used inside single quotes (use double quotes, or no quotes at all)
        "#]]);
    told("steps: [{id: one, library_step: bash}]").check(expect![[r#"
        3:33 wrong_type steps[0].env.VERSION: expected a string, found a number (quote it if it is meant as text)
        3:33 unsafe_reference steps[0].command: `${topic}` cannot be used inside single quotes (use double quotes, or no quotes at all)
    "#]]);
    told(&format!("steps: [{{id: one, library_step: bash, command: \"x; {unsafe_command}\"}}]"))
        .check(expect![[r#"
            3:33 wrong_type steps[0].env.VERSION: expected a string, found a number (quote it if it is meant as text)
            3:60 unsafe_reference steps[0].command: `${args.topic}` cannot be used inside single quotes (use double quotes, or no quotes at all)
        "#]]);
    told("steps: [{id: one, library_step: bash, agent: clerk}]").check(expect![[r#"
        3:33 wrong_type steps[0].env.VERSION: expected a string, found a number (quote it if it is meant as text)
    "#]]);
    told("steps: [{id: one, library_step: bash, command: 'echo \"${args.topic}\" ${topic}'}]")
        .show("steps.0.env")
        .check(expect![[r#"
            3:33 wrong_type steps[0].env.VERSION: expected a string, found a number (quote it if it is meant as text)
        "#]]);
    told("steps: [{id: one, command: \"echo '${args.topic}'\"}]").check(expect![[r#"
        ok
    "#]]);
}

#[test]
fn a_librarys_arguments_and_variables() {
    told("steps: [{id: one, library_step: sub}, {id: two, library_step: float}, {id: three, library_step: sub, args: {a: '${nothing}'}}]")
        .check(expect![[r#"
            ~3:33 unknown_variable steps[0].args.a[0]: nothing sets `absent`
            ~3:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded
            3:63 wrong_type steps[1].env.A: expected a string, found a number (quote it if it is meant as text)
            ~3:97 unresolved_reference steps[2].workflow_ref: workflow `other` cannot be checked: no registry is loaded
            ~3:115 unknown_variable steps[2].args.a: nothing sets `nothing`
        "#]]);
}

#[test]
fn names_that_an_absent_library_may_declare_are_not_called_unknown() {
    let document = "
name: demo
steps:
  - {id: a, library_step: rate}
  - {id: b, command: 'x ${risk}', condition: risk > 5, depends_on: [a]}
";
    let told = Script::lobsterx(document).transcript();
    assert!(told.contains("unresolved_reference") && told.ends_with("ok\n"), "{told}");
    let told = Script::lobsterx(document).registry("library: {rate: {command: x}}").transcript();
    assert!(told.contains("unknown_identifier") && told.contains("unknown_variable"), "{told}");
    let library = "library: {rate: {command: x, outputs: {risk: integer}}}";
    assert_eq!(Script::lobsterx(document).registry(library).transcript(), "ok\n");
}
