//! The fields of a `.lobsterX` document and their defaults.

use super::Script;
use expect_test::expect;

#[test]
fn the_smallest_document() {
    Script::lobsterx(
        r"
        name: tiny
        steps:
          - id: one
            command: do it
        ",
    )
    .order()
    .check(expect![[r#"
        ok
        one <-
        wave: one
    "#]]);
}

#[test]
fn six_mistakes_are_told_at_once() {
    Script::lobsterx(
        r"
        name: Six Mistakes
        maxparallel: 3
        max_parallel: 0
        steps:
          - id: gather_data
            command: ${absent.outputs.x}
            timeout: soon
          - id: use_it
            depends_on: [gather]
            phase: none
            command: go
        ",
    )
    .check(expect![[r#"
        1:7 bad_name name: `Six Mistakes` is not in kebab-case (write `six-mistakes`)
        2:1 unknown_field maxparallel: unknown field `maxparallel` (did you mean `max_parallel`?)
        3:15 bad_value max_parallel: 0 is not a whole number from 1 to 1024
        ~6:16 unknown_variable steps[0].command: nothing sets `absent`
        7:14 bad_duration steps[0].timeout: `soon` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
        9:18 unknown_step steps[1].depends_on[0]: there is no step `gather` (did you mean `gather_data`?)
        10:12 unknown_phase steps[1].phase: the phase `none` is not declared (declare it under `phases`)
    "#]]);
}

#[test]
fn a_list_of_steps_is_no_lens_document() {
    let lens = Script::lens("name: tiny\nsteps: []\n").transcript();
    assert!(lens.contains("unknown_field steps"), "{lens}");
}

#[test]
fn what_a_document_does_not_say() {
    Script::lobsterx("{name: tiny, steps: [{id: one, command: go}]}")
        .show("family")
        .show("version")
        .show("description")
        .show("args")
        .show("roles")
        .show("phases")
        .show("max_cost")
        .show("timeout_ms")
        .show("max_parallel")
        .show("scheduling")
        .show("recovery")
        .show("outputs")
        .show("team")
        .show("steps.0")
        .check(expect![[r#"
            ok
            family = "lobsterx"
            version = -
            description = -
            args = -
            roles = -
            phases = -
            max_cost = -
            timeout_ms = -
            max_parallel = 64
            scheduling = "eager"
            recovery = -
            outputs = -
            team = -
            steps.0 = {"id":"one","idempotent":true,"moderation":"off","on_failure":"halt","on_parent_failure":"propagate","parallel_failure_policy":"wait_all","retry":{"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]},"timeout_ms":600000,"work":{"kind":"command","command":"go"}}
        "#]]);
}

#[test]
fn name_and_steps_are_required() {
    let told = |text: &str| Script::lobsterx(text).transcript();
    let mut out = String::new();
    for text in [
        "steps: [{id: one, command: go}]",
        "name: tiny",
        "{}",
        "name:\nsteps:",
        "name: tiny\nsteps: []",
        "name: tiny\nsteps: {one: {command: go}}",
        "name: tiny\nsteps: one",
        "name: tiny\nsteps: [one, null, [x]]",
        "name: tiny\nsteps: [{command: go}, {id: , command: go}]",
        "[]",
        "tiny",
        "",
    ] {
        out.push_str(&format!("{text:?}\n{}", told(text)));
    }
    expect![[r#"
        "steps: [{id: one, command: go}]"
        1:1 missing_field: `name` is missing
        "name: tiny"
        1:1 missing_field: `steps` is missing
        "{}"
        1:1 missing_field: `name` is missing
        1:1 missing_field: `steps` is missing
        "name:\nsteps:"
        1:1 missing_field: `name` is missing
        1:1 missing_field: `steps` is missing
        "name: tiny\nsteps: []"
        2:8 no_steps steps: there are no steps
        "name: tiny\nsteps: {one: {command: go}}"
        2:8 wrong_type steps: expected a list, found a map
        "name: tiny\nsteps: one"
        2:8 wrong_type steps: expected a list, found a string
        "name: tiny\nsteps: [one, null, [x]]"
        2:9 wrong_type steps[0]: expected a map, found a string
        2:14 wrong_type steps[1]: expected a map, found nothing
        2:20 wrong_type steps[2]: expected a map, found a list
        "name: tiny\nsteps: [{command: go}, {id: , command: go}]"
        2:9 missing_field steps[0]: `id` is missing
        2:24 missing_field steps[1]: `id` is missing
        "[]"
        1:1 wrong_type: expected a map, found a list
        "tiny"
        1:1 wrong_type: expected a map, found a string
        ""
        1:1 empty_document: the file contains no document
    "#]]
    .assert_eq(&out);
}

#[test]
fn problems_elsewhere_are_told_without_steps_too() {
    Script::lobsterx(
        "
        name: Tiny
        defaults: {tmeout: 5}
        steps: []
        ",
    )
    .check(expect![[r#"
        1:7 bad_name name: `Tiny` is not in kebab-case (write `tiny`)
        2:12 unknown_field defaults.tmeout: unknown field `tmeout` (did you mean `timeout`?)
        3:8 no_steps steps: there are no steps
    "#]]);
}

#[test]
fn unknown_fields_at_every_level() {
    Script::lobsterx(
        "
        nam: tiny
        name: tiny
        xyzzy: 1
        args:
          who: {typ: string}
        roles:
          clerk: {skills: [a], trusted_context: {max_age: 5}}
        phases: [{id: early, title: Early}]
        defaults: {time_out: 5, idd: x}
        budget: {max_cost_cent: 5}
        recovery: {max: 1, afterwards: 5}
        team:
          member: []
          members:
            - id: ada
              agnet: x
              tool_profile: {allow: [a]}
              model_profile: {support: x}
              personality_profile: {system_prompt: x}
          failure_policy: {modes: halt}
        steps:
          - id: one
            comand: go
            dependsOn: [one]
            role: clerk
            command: go
            retry: {attempt: 2}
            approval: {approver: [ada]}
            repair: {reask: 1, ask: 2}
            inputs: {x: {form: one.x, from: one.x}}
            outputs:
              risk: {type: object, min_length: 1, properties: {deep: {typ: string}}}
              list: {type: array, items: {mininum: 1}}
            for_each: {items: [a], maxItems: 4}
            <<: {model: x}
        ",
    )
    .check(expect![[r#"
        1:1 unknown_field nam: unknown field `nam` (did you mean `name`?)
        3:1 unknown_field xyzzy: unknown field `xyzzy`
        5:9 unknown_field args.who.typ: unknown field `typ` (did you mean `type`?)
        7:11 unknown_field roles.clerk.skills: unknown field `skills`
        7:42 unknown_field roles.clerk.trusted_context.max_age: unknown field `max_age` (did you mean `max_age_s`?)
        8:22 unknown_field phases[0].title: unknown field `title`
        9:12 unknown_field defaults.time_out: unknown field `time_out` (did you mean `timeout`?)
        9:25 unknown_field defaults.idd: unknown field `idd` (did you mean `id`?)
        10:10 unknown_field budget.max_cost_cent: unknown field `max_cost_cent` (did you mean `max_cost_cents`?)
        11:20 unknown_field recovery.afterwards: unknown field `afterwards`
        13:3 unknown_field team.member: unknown field `member` (did you mean `members`?)
        16:7 unknown_field team.members[0].agnet: unknown field `agnet` (did you mean `agent`?)
        17:22 unknown_field team.members[0].tool_profile.allow: unknown field `allow` (did you mean `allow_tools`?)
        18:23 unknown_field team.members[0].model_profile.support: unknown field `support` (did you mean `support_level`?)
        19:29 unknown_field team.members[0].personality_profile.system_prompt: unknown field `system_prompt` (did you mean `system_prompt_patch`?)
        20:20 unknown_field team.failure_policy.modes: unknown field `modes` (did you mean `mode`?)
        22:9 cycle_detected steps[0]: the dependencies form a cycle: one -> one (each step in the list waits for the next one; remove one of the dependencies)
        23:5 unknown_field steps[0].comand: unknown field `comand` (did you mean `command`?)
        24:5 unknown_field steps[0].dependsOn: unknown field `dependsOn` (did you mean `depends_on`?)
        27:13 unknown_field steps[0].retry.attempt: unknown field `attempt` (did you mean `attempts`?)
        28:16 unknown_field steps[0].approval.approver: unknown field `approver` (did you mean `approvers`?)
        29:24 unknown_field steps[0].repair.ask: unknown field `ask`
        30:18 unknown_field steps[0].inputs.x.form: unknown field `form` (did you mean `from`?)
        32:28 unknown_field steps[0].outputs.risk.min_length: unknown field `min_length` (did you mean `minLength`?)
        32:63 unknown_field steps[0].outputs.risk.properties.deep.typ: unknown field `typ` (did you mean `type`?)
        33:35 unknown_field steps[0].outputs.list.items.mininum: unknown field `mininum` (did you mean `minimum`?)
        34:28 unknown_field steps[0].for_each.maxItems: unknown field `maxItems` (did you mean `max_items`?)
        35:5 unknown_field steps[0].<<: merge keys are not supported
    "#]]);
}

#[test]
fn roles_phases_and_team() {
    super::check_top(
        &["roles", "phases", "team"],
        &[
            "phases: [a, b]",
            "phases: [{id: a, name: First}, {id: b}]",
            "phases: [{name: a}]",
            "phases: {a: b}",
            "phases: [5]",
            "phases: [[a]]",
            "team: {members: [{id: a}]}",
            "team: {members: []}",
            "team: {}",
            "team: {members: [{agent: x}]}",
            "team: {members: [{id: a, lane: -1, sort_order: 2, is_active: false, agent: x, role: y, memory_profile: m, tool_profile: {allow_tools: [a], deny_tools: [b], requires_approval: true}, model_profile: {support_level: high}, personality_profile: {system_prompt_patch: p}}], failure_policy: {mode: halt}, queue_policy: {a: 1}, approval_policy: x, retry_policy: [1]}",
            "team: {members: [{id: a, lane: 1.5}]}",
            "team: {members: [{id: a, lane: '1'}]}",
            "team: {members: [{id: a}], failure_policy: {mode: stop}}",
            "team: {members: [{id: a}], failure_policy: {mode: isolate}}",
            "team: [a]",
        ],
        expect![[r#"
            phases: [a, b] => ok | roles = - | phases = [{"id":"a","name":"a"},{"id":"b","name":"b"}] | team = -
            phases: [{id: a, name: First}, {id: b}] => ok | roles = - | phases = [{"id":"a","name":"First"},{"id":"b","name":"b"}] | team = -
            phases: [{name: a}] => 2:10 missing_field phases[0]: `id` is missing
            phases: {a: b} => 2:9 wrong_type phases: expected a list, found a map
            phases: [5] => 2:10 wrong_type phases[0]: expected a string, found a number (quote it if it is meant as text)
            phases: [[a]] => 2:10 wrong_type phases[0]: expected a string, found a list
            team: {members: [{id: a}]} => ok | roles = - | phases = - | team = {"members":[{"id":"a","lane":0,"sort_order":0,"is_active":true,"requires_approval":false}],"failure_mode":"isolate"}
            team: {members: []} => ok | roles = - | phases = - | team = {"members":[],"failure_mode":"isolate"}
            team: {} => 2:7 missing_field team: `members` is missing
            team: {members: [{agent: x}]} => 2:18 missing_field team.members[0]: `id` is missing
            team: {members: [{id: a, lane: -1, sort_order: 2, is_active: false, agent: x, role: y, memory_profile: m, tool_profile: {allow_tools: [a], deny_tools: [b], requires_approval: true}, model_profile: {support_level: high}, personality_profile: {system_prompt_patch: p}}], failure_policy: {mode: halt}, queue_policy: {a: 1}, approval_policy: x, retry_policy: [1]} => 2:315 unknown_field team.queue_policy.a: unknown field `a` | 2:339 wrong_type team.approval_policy: expected a map, found a string | 2:356 wrong_type team.retry_policy: expected a map, found a list
            team: {members: [{id: a, lane: 1.5}]} => 2:32 bad_value team.members[0].lane: 1.5 is not a whole number
            team: {members: [{id: a, lane: '1'}]} => 2:32 wrong_type team.members[0].lane: expected a number, found a string
            team: {members: [{id: a}], failure_policy: {mode: stop}} => 2:51 bad_value team.failure_policy.mode: `stop` is not a failure mode (use one of: isolate, halt)
            team: {members: [{id: a}], failure_policy: {mode: isolate}} => ok | roles = - | phases = - | team = {"members":[{"id":"a","lane":0,"sort_order":0,"is_active":true,"requires_approval":false}],"failure_mode":"isolate"}
            team: [a] => 2:7 wrong_type team: expected a map or the name of a team, found a list
        "#]],
    );
    super::check_each(
        "
        name: tiny
        roles: {clerk: @}
        steps: [{id: one, role: clerk, command: go}]
        ",
        &["roles"],
        &[
            "{}",
            "{description: d, required_skills: [a], max_spend_cents: 1.5, allowed_environments: [prod], trusted_context: {accepted_source_classes: [crm], max_age_s: 60}}",
            "{required_skills: a}",
            "{max_spend_cents: -1}",
            "{allowed_environments: [1]}",
            "{trusted_context: {max_age_s: 0}}",
            "{trusted_context: {max_age_s: 4000000000}}",
            "{trusted_context: {max_age_s: 4000000001}}",
            "{trusted_context: []}",
            "clerk",
            "null",
        ],
        expect![[r#"
            {} => ok | roles = {"clerk":{}}
            {description: d, required_skills: [a], max_spend_cents: 1.5, allowed_environments: [prod], trusted_context: {accepted_source_classes: [crm], max_age_s: 60}} => ok | roles = {"clerk":{"description":"d","required_skills":["a"],"max_spend":1500000,"allowed_environments":["prod"],"trusted_context":{"accepted_source_classes":["crm"],"max_age_s":60}}}
            {required_skills: a} => 2:34 wrong_type roles.clerk.required_skills: expected a list, found a string
            {max_spend_cents: -1} => 2:34 bad_value roles.clerk.max_spend_cents: an amount of money cannot be negative
            {allowed_environments: [1]} => 2:40 wrong_type roles.clerk.allowed_environments[0]: expected a string, found a number (quote it if it is meant as text)
            {trusted_context: {max_age_s: 0}} => ok | roles = {"clerk":{"trusted_context":{"max_age_s":0}}}
            {trusted_context: {max_age_s: 4000000000}} => ok | roles = {"clerk":{"trusted_context":{"max_age_s":4000000000}}}
            {trusted_context: {max_age_s: 4000000001}} => 2:46 bad_value roles.clerk.trusted_context.max_age_s: 4000000001 is not a whole number from 0 to 4000000000
            {trusted_context: []} => 2:34 wrong_type roles.clerk.trusted_context: expected a map, found a list
            clerk => 2:16 wrong_type roles.clerk: expected a map, found a string
            null => 2:16 wrong_type roles.clerk: expected a map, found nothing
        "#]],
    );
}

#[test]
fn a_command_wherever_one_is_needed() {
    super::check_each(
        "
        name: tiny
        steps: [{id: one, @}]
        ",
        &["steps.0.work"],
        &[
            "command: go",
            "agent: x",
            "command: ",
            "command: ''",
            "command: 5",
            "command: [go]",
            "approval: required",
            "approval: {required: false}",
            "approval: required, command: go",
            "workflow_ref: other",
            "workflow_ref: other, command: go",
            "library_step: lib",
            "workflow_ref: other, approval: required",
            "args: {x: 1}, command: go",
            "workflow_ref: other, args: {x: 1, y: [null, '${z}'], z: {a: b}}",
            "workflow_ref: other, args: [1]",
            "workflow_ref: other, args: {}",
        ],
        expect![[r#"
            command: go => ok | steps.0.work = {"kind":"command","command":"go"}
            agent: x => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
            command:  => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
            command: '' => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
            command: 5 => 2:28 wrong_type steps[0].command: expected a string, found a number (quote it if it is meant as text)
            command: [go] => 2:28 wrong_type steps[0].command: expected a string, found a list
            approval: required => ok | steps.0.work = {"kind":"approval"}
            approval: {required: false} => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
            approval: required, command: go => ok | steps.0.work = {"kind":"command","command":"go"}
            workflow_ref: other => ~2:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"other"}
            workflow_ref: other, command: go => 2:33 conflicting_fields steps[0].workflow_ref: a step runs either a command or another workflow | ~2:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded
            library_step: lib => ~2:33 unresolved_reference steps[0].library_step: library step `lib` cannot be checked: no library is loaded | ok | steps.0.work = {"kind":"unresolved","what":"library_step","name":"lib"}
            workflow_ref: other, approval: required => ~2:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"other"}
            args: {x: 1}, command: go => 2:25 conflicting_fields steps[0].args: `args` are for another workflow; there is no `workflow_ref`
            workflow_ref: other, args: {x: 1, y: [null, '${z}'], z: {a: b}} => ~2:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ~2:66 unknown_variable steps[0].args.y[1]: nothing sets `z` | ok | steps.0.work = {"kind":"workflow","args":{"x":1,"y":[null,"${z}"],"z":{"a":"b"}},"name":"other"}
            workflow_ref: other, args: [1] => ~2:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded | 2:46 wrong_type steps[0].args: expected a map, found a list
            workflow_ref: other, args: {} => ~2:33 unresolved_reference steps[0].workflow_ref: workflow `other` cannot be checked: no registry is loaded | ok | steps.0.work = {"kind":"workflow","name":"other"}
        "#]],
    );
}

#[test]
fn retry_beside_each_failure_policy() {
    super::check_each(
        "
        name: tiny
        steps: [{id: one, command: go, retry: {attempts: 2}, on_failure: @}]
        ",
        &["steps.0.on_failure", "steps.0.retry.attempts"],
        &["halt", "skip", "fail", "continue", "retry", "retry_once", "retry_once_then_escalate"],
        expect![[r#"
            halt => ok | steps.0.on_failure = "halt" | steps.0.retry.attempts = 2
            skip => ok | steps.0.on_failure = "skip" | steps.0.retry.attempts = 2
            fail => ~2:66 deprecated_value steps[0].on_failure: `fail` is an old name of `halt` (write `halt`) | ok | steps.0.on_failure = "halt" | steps.0.retry.attempts = 2
            continue => ~2:66 deprecated_value steps[0].on_failure: `continue` is an old name of `skip` (write `skip`) | ok | steps.0.on_failure = "skip" | steps.0.retry.attempts = 2
            retry => 2:39 conflicting_fields steps[0].retry: `retry` and `on_failure: retry` both define retries
            retry_once => 2:39 conflicting_fields steps[0].retry: `retry` and `on_failure: retry_once` both define retries
            retry_once_then_escalate => 2:39 conflicting_fields steps[0].retry: `retry` and `on_failure: retry_once_then_escalate` both define retries
        "#]],
    );
}

#[test]
fn a_command_that_cannot_be_read_is_not_missing_too() {
    super::check_each(
        "
        name: tiny
        steps: [{id: one, @}]
        ",
        &[],
        &[
            "command: '${'",
            "approval: yes_please",
            "workflow_ref: 5",
            "library_step: [x]",
            "command: '  '",
            "command: \"\\n\"",
            "command: '', approval: required",
        ],
        expect![[r#"
            command: '${' => 2:29 bad_template steps[0].command: unclosed `${` (write `$${` for a literal `${`)
            approval: yes_please => 2:29 wrong_type steps[0].approval: expected `required` or a map, found a string (write `approval: required`)
            workflow_ref: 5 => 2:33 wrong_type steps[0].workflow_ref: expected a string, found a number (quote it if it is meant as text)
            library_step: [x] => 2:33 wrong_type steps[0].library_step: expected a string, found a list
            command: '  ' => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
            command: "\n" => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
            command: '', approval: required => 2:14 missing_command steps[0]: step `one` has no command (add `command`, or `approval`, `workflow_ref` or `library_step`)
        "#]],
    );
    Script::lobsterx("{name: tiny, defaults: {command: 5}, steps: [{id: one}, {id: two}]}")
        .check(expect![[r#"
            1:34 wrong_type defaults.command: expected a string, found a number (quote it if it is meant as text)
        "#]]);
}

#[test]
fn fields_of_other_products_are_refused_with_what_they_are_called_here() {
    super::check_each(
        "
        name: tiny
        steps:
          - {id: one, command: go, @}
        ",
        &[],
        &[
            "retries: 3",
            "max_retries: 3",
            "maxRetries: 3",
            "if: x",
            "when: x",
            "needs: [a]",
            "prompt: x",
            "run: x",
            "type: agent",
            "name: x",
            "temperature: 1",
            "approval: true",
            "approval: false",
            "approval: yes",
            "approval: [ada]",
        ],
        expect![[r#"
            retries: 3 => 3:28 unknown_field steps[0].retries: unknown field `retries` (write `retry: {attempts: 3}`, the first attempt counted)
            max_retries: 3 => 3:28 unknown_field steps[0].max_retries: unknown field `max_retries` (write `retry: {attempts: 3}`, the first attempt counted)
            maxRetries: 3 => 3:28 unknown_field steps[0].maxRetries: unknown field `maxRetries` (write `retry: {attempts: 3}`, the first attempt counted)
            if: x => 3:28 unknown_field steps[0].if: unknown field `if` (write `condition: EXPRESSION`; the step is skipped unless it holds)
            when: x => 3:28 unknown_field steps[0].when: unknown field `when` (write `condition: EXPRESSION`; the step is skipped unless it holds)
            needs: [a] => 3:28 unknown_field steps[0].needs: unknown field `needs` (did you mean `depends_on`?)
            prompt: x => 3:28 unknown_field steps[0].prompt: unknown field `prompt` (did you mean `command`?)
            run: x => 3:28 unknown_field steps[0].run: unknown field `run` (write `command`, with `agent: shell` if a shell runs it)
            type: agent => 3:28 unknown_field steps[0].type: unknown field `type` (a step has no type: `command`, `approval`, `workflow_ref` or `library_step` says what it does, and `agent` who does it)
            name: x => 3:28 unknown_field steps[0].name: unknown field `name` (did you mean `id`?)
            temperature: 1 => 3:28 unknown_field steps[0].temperature: unknown field `temperature`
            approval: true => 3:38 wrong_type steps[0].approval: expected `required` or a map, found a boolean (write `approval: required`)
            approval: false => 3:38 wrong_type steps[0].approval: expected `required` or a map, found a boolean (leave `approval` out)
            approval: yes => 3:38 wrong_type steps[0].approval: expected `required` or a map, found a string (write `approval: required`)
            approval: [ada] => 3:38 wrong_type steps[0].approval: expected `required` or a map, found a list (write `approval: required`)
        "#]],
    );
    Script::lobsterx("{name: tiny, on: push, inputs: {}, jobs: [], steps: [{id: a, command: x}]}")
        .check(expect![[r#"
            1:14 unknown_field on: unknown field `on` (use `sluice schedules` or `sluice hooks` to start runs of a workflow)
            1:24 unknown_field inputs: unknown field `inputs` (did you mean `args`?)
            1:36 unknown_field jobs: unknown field `jobs` (did you mean `steps`?)
        "#]]);
}
