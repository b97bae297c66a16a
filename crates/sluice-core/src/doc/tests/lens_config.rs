//! Settings of nodes and of the whole document.

use super::Script;
use expect_test::expect;

fn config(written: &str) -> Script {
    Script::lens(&format!(
        "name: g\nlenses: {{l: {{versions: {{1: {{template: go}}}}}}}}\nnodes:\n- {{id: a, lens_id: l, label: L, ordinal: -3, config: {written}}}\n"
    ))
}

fn top(written: &str) -> Script {
    Script::lens(&format!(
        "name: g\nlenses: {{l: {{versions: {{1: {{template: go}}}}}}}}\nnodes: [{{id: a, lens_id: l}}]\n{}",
        super::dedent(written)
    ))
}

const FULL: &str = "{model_id: m, timeout_ms: 1, retry: {attempts: 3, backoff_ms: 0, max_backoff_ms: 86400000, retry_on: [contract_violated]}, on_parent_failure: propagate, merge: array, moderation: both, agent: ada, role: writer, required_tools: [t], required_tier: high, max_cost_cents: 1.5, param_overrides: {x: [1]}, on_failure: skip, memory: mem}";
const CAMEL: &str = "{modelId: m, timeoutMs: 1, retry: {attempts: 3, backoffMs: 0, maxBackoffMs: 86400000, retryOn: [contract_violated]}, onParentFailure: propagate, merge: array, moderation: both, agent: ada, role: writer, requiredTools: [t], requiredTier: high, maxCostCents: 1.5, paramOverrides: {x: [1]}, onFailure: skip, memory: mem}";

#[test]
fn every_field_of_a_config_is_in_the_plan() {
    config(FULL).show("steps.0").check(expect![[r#"
        ok
        steps.0 = {"agent":"ada","id":"a","idempotent":true,"label":"L","max_cost":1500000,"memory":"mem","merge":"array","model":"m","moderation":"both","on_failure":"skip","on_parent_failure":"propagate","ordinal":-3,"parallel_failure_policy":"wait_all","required_tier":"high","retry":{"attempts":3,"backoff_ms":0,"max_backoff_ms":86400000,"retry_on":["contract_violated"]},"role":"writer","timeout_ms":1,"tools":["t"],"work":{"kind":"lens","lens_id":"l","lens_kind":"text","param_overrides":{"x":[1]},"template":"go","version_id":"1"}}
    "#]]);
}

#[test]
fn camel_case_means_the_same() {
    assert_eq!(config(FULL).plan().hash(), config(CAMEL).plan().hash());
    let snake = "name: g\ndefault_model: m\nmax_parallel: 3\nlenses: {l: {versions: {1: {template: go}}}}\nnodes: [{id: a, lens_id: l, version_id: 1}, {id: b, lens_id: l}]\nedges: [{source_node_id: a, target_node_id: b, source_output_key: k, target_param_label: p, merge_strategy: array}]\n";
    let camel = "name: g\ndefaultModel: m\nmaxParallel: 3\nlenses: {l: {versions: {1: {template: go}}}}\nnodes: [{id: a, lensId: l, versionId: 1}, {id: b, lensId: l}]\nedges: [{sourceNodeId: a, targetNodeId: b, sourceOutputKey: k, targetParamLabel: p, mergeStrategy: array}]\n";
    assert_eq!(Script::lens(snake).plan().hash(), Script::lens(camel).plan().hash());
}

#[test]
fn a_field_is_set_in_one_spelling_only() {
    config("{timeout_ms: 5, timeoutMs: 6}").check(expect![[r#"
        4:70 duplicate_key nodes[0].config: `timeoutMs` is set twice, in two spellings
    "#]]);
    config("{timeoutMs: 6, timeout_ms: ~}").show("steps.0.timeout_ms").check(expect![[r#"
        ok
        steps.0.timeout_ms = 6
    "#]]);
    config("{TimeoutMs: 6, TIMEOUT_MS: 6, timeoutms: 6, timeout_Ms: 6}").check(expect![[r#"
        4:55 unknown_field nodes[0].config.TimeoutMs: unknown field `TimeoutMs` (did you mean `timeout_ms`?)
        4:69 unknown_field nodes[0].config.TIMEOUT_MS: unknown field `TIMEOUT_MS` (did you mean `timeout_ms`?)
        4:84 unknown_field nodes[0].config.timeoutms: unknown field `timeoutms` (did you mean `timeout_ms`?)
        4:98 unknown_field nodes[0].config.timeout_Ms: unknown field `timeout_Ms` (did you mean `timeout_ms`?)
    "#]]);
}

#[test]
fn every_bound_of_a_config() {
    for fine in [
        "{timeout_ms: 31622400000}",
        "{retry: {attempts: 1}}",
        "{retry: {attempts: 100, backoff_ms: 86400000, max_backoff_ms: 0, retry_on: []}}",
        "{max_cost_cents: 0}",
        "~",
        "{}",
    ] {
        assert_eq!(config(fine).transcript(), "ok\n", "{fine}");
    }
    let refused: String = [
        "{timeout_ms: 0}",
        "{timeout_ms: 31622400001}",
        "{timeout_ms: 1.5}",
        "{timeout_ms: '5'}",
        "{timeout_ms: 1e400}",
        "{timeout_ms: !!int 5}",
        "{retry: {attempts: 0}}",
        "{retry: {attempts: 101}}",
        "{retry: {backoff_ms: 86400001}}",
        "{retry: {max_backoff_ms: 86400001}}",
        "{retry: {retry_on: [timeuot]}}",
        "{retry: 3}",
        "{max_cost_cents: -1}",
        "{on_parent_failure: halt}",
        "{merge: contact}",
        "{moderation: all}",
        "{on_failure: explode}",
        "{required_tools: t}",
        "{param_overrides: [x]}",
        "{temperature: 1}",
    ]
    .map(|written| config(written).transcript())
    .concat();
    expect![[r#"
        4:67 bad_value nodes[0].config.timeout_ms: 0 is not a whole number from 1 to 31622400000
        4:67 bad_value nodes[0].config.timeout_ms: 31622400001 is not a whole number from 1 to 31622400000
        4:67 bad_value nodes[0].config.timeout_ms: 1.5 is not a whole number from 1 to 31622400000
        4:67 wrong_type nodes[0].config.timeout_ms: expected a number, found a string
        4:67 number_out_of_range nodes[0].config.timeout_ms: `1e400` does not fit a 64-bit number (quote it if it is meant as text)
        4:73 unsupported_tag nodes[0].config.timeout_ms: the tag `tag:yaml.org,2002:int` is not supported (leave the tag out)
        4:73 bad_value nodes[0].config.retry.attempts: 0 is not a whole number from 1 to 100
        4:73 bad_value nodes[0].config.retry.attempts: 101 is not a whole number from 1 to 100
        4:75 bad_value nodes[0].config.retry.backoff_ms: 86400001 is not a whole number from 0 to 86400000
        4:79 bad_value nodes[0].config.retry.max_backoff_ms: 86400001 is not a whole number from 0 to 86400000
        4:74 bad_value nodes[0].config.retry.retry_on[0]: `timeuot` is not a cause of retry (did you mean `timeout`?)
        4:62 wrong_type nodes[0].config.retry: expected a map, found a number
        4:71 bad_value nodes[0].config.max_cost_cents: an amount of money cannot be negative
        4:74 bad_value nodes[0].config.on_parent_failure: `halt` is not a parent failure policy (use one of: propagate, skip, substitute_default)
        4:62 bad_value nodes[0].config.merge: `contact` is not a merge strategy (did you mean `concat`?)
        4:67 bad_value nodes[0].config.moderation: `all` is not a moderation (use one of: off, input, output, both)
        4:67 bad_value nodes[0].config.on_failure: `explode` is not a failure policy (use one of: halt, skip, retry_once, retry_once_then_escalate, retry)
        4:71 wrong_type nodes[0].config.required_tools: expected a list, found a string
        4:72 wrong_type nodes[0].config.param_overrides: expected a map, found a list
        4:55 unknown_field nodes[0].config.temperature: unknown field `temperature`
    "#]].assert_eq(&refused);
}

#[test]
fn retry_and_a_retrying_policy_exclude_each_other() {
    for policy in ["retry", "retry_once", "retry_once_then_escalate"] {
        let told =
            config(&format!("{{on_failure: {policy}, retry: {{attempts: 2}}}}")).transcript();
        assert!(told.contains("conflicting_fields nodes[0].config.retry"), "{told}");
    }
    for policy in ["halt", "skip"] {
        let told =
            config(&format!("{{on_failure: {policy}, retry: {{attempts: 2}}}}")).transcript();
        assert_eq!(told, "ok\n");
    }
    config("{on_failure: fail}").show("steps.0.on_failure").check(expect![[r#"
        ~4:67 deprecated_value nodes[0].config.on_failure: `fail` is an old name of `halt` (write `halt`)
        ok
        steps.0.on_failure = "halt"
    "#]]);
    config("{on_failure: continue}").show("steps.0.on_failure").check(expect![[r#"
        ~4:67 deprecated_value nodes[0].config.on_failure: `continue` is an old name of `skip` (write `skip`)
        ok
        steps.0.on_failure = "skip"
    "#]]);
}

#[test]
fn the_model_is_the_nodes_own_or_the_documents() {
    Script::lens(
        r"
        name: g
        default_model: common
        lenses: {l: {versions: {1: {template: go}}}}
        nodes: [{id: a, lens_id: l}, {id: b, lens_id: l, config: {model_id: own}}]
        ",
    )
    .show("default_model")
    .show("steps.0.model")
    .show("steps.1.model")
    .check(expect![[r#"
        ok
        default_model = "common"
        steps.0.model = -
        steps.1.model = "own"
    "#]]);
}

#[test]
fn everything_the_document_says_as_a_whole_is_in_the_plan() {
    top(r"
        version: 7
        description: what for
        args: {topic: {type: string, required: true}}
        scheduling: waves
        budget: {max_cost_cents: 250}
        max_parallel: 1024
        timeout: 90m
        recovery: {max: 2, after: 30s}
        outputs: {result: '${a.output}'}
        team:
          failurePolicy: {mode: halt}
          members: [{id: m1, agent: ada, toolProfile: {requiresApproval: true}}]
        ")
    .show("version")
    .show("description")
    .show("args")
    .show("scheduling")
    .show("max_cost")
    .show("max_parallel")
    .show("timeout_ms")
    .show("recovery")
    .show("outputs")
    .show("team")
    .check(expect![[r#"
        ok
        version = 7
        description = "what for"
        args = {"topic":{"type":"string","required":true}}
        scheduling = "waves"
        max_cost = 250000000
        max_parallel = 1024
        timeout_ms = 5400000
        recovery = {"max":2,"after_ms":30000}
        outputs = {"result":"${a.output}"}
        team = {"members":[{"id":"m1","agent":"ada","lane":0,"sort_order":0,"is_active":true,"requires_approval":true}],"failure_mode":"halt"}
    "#]]);
}

#[test]
fn what_the_document_says_as_a_whole_has_bounds() {
    let refused: String = [
        "version: -1",
        "version: 1.0.0",
        "scheduling: lazy",
        "budget: {max_cost_cents: -1}",
        "budget: 5",
        "max_parallel: 0",
        "max_parallel: 1025",
        "timeout: 0",
        "timeout: soon",
        "recovery: {after: 5s}",
        "recovery: {max: 101}",
        "outputs: {r: '${'}",
        "outputs: [r]",
        "team: {}",
        "team: {members: [{id: m}, {id: m}]}",
        "args: {1x: string}",
        "args: {x: {type: strin}}",
        "steps: []",
        "node: []",
    ]
    .map(|written| top(written).transcript())
    .concat();
    expect![[r#"
        4:10 bad_value version: -1 is not a whole number from 0 to 9007199254740991
        4:10 wrong_type version: expected a number, found a string
        4:13 bad_value scheduling: `lazy` is not a scheduling (use one of: eager, waves)
        4:26 bad_value budget.max_cost_cents: an amount of money cannot be negative
        4:9 wrong_type budget: expected a map, found a number
        4:15 bad_value max_parallel: 0 is not a whole number from 1 to 1024
        4:15 bad_value max_parallel: 1025 is not a whole number from 1 to 1024
        4:10 bad_duration timeout: a duration cannot be zero
        4:10 bad_duration timeout: `soon` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
        4:11 missing_field recovery: `max` is missing
        4:17 bad_value recovery.max: 101 is not a whole number from 0 to 100
        4:15 bad_template outputs.r: unclosed `${` (write `$${` for a literal `${`)
        4:10 wrong_type outputs: expected a map, found a list
        4:7 missing_field team: `members` is missing
        4:32 duplicate_name team.members[1]: the member `m` is declared twice
        4:8 bad_name args: `1x` is not a name (names are letters, digits and `_ . -`, a letter or `_` first)
        4:18 bad_value args.x.type: `strin` is not a type (did you mean `string`?)
        4:1 unknown_field steps: unknown field `steps`
        4:1 unknown_field node: unknown field `node` (did you mean `nodes`?)
    "#]].assert_eq(&refused);
}

/// A node `m` with this config, and a root input `topic`.
fn node(more: &str) -> Script {
    Script::lens(&super::dedent(&format!(
        "
        name: g
        args: {{topic: string}}
        lenses: {{l: {{versions: {{1: {{template: go}}}}}}}}
        nodes: [{{id: a, lens_id: l}}, {{id: m, {more}}}]
        edges: [{{source_node_id: a, target_node_id: m, target_param_label: Draft Text}}]
        "
    )))
    .registry("{workflows: {other: [1, 2]}}")
}

#[test]
fn a_node_may_run_another_workflow() {
    node("config: {workflow_ref: other@2, args: {a: '[[topic]] {{draft text}}', b: [1, {c: '[[topic!]]'}]}}")
        .show("steps.1.work")
        .show("steps.1.timeout_ms")
        .check(expect![[r#"
            ok
            steps.1.work = {"kind":"workflow","label_args":{"a":"[[topic]] {{draft text}}","b":[1,{"c":"[[topic!]]"}]},"name":"other","version":2}
            steps.1.timeout_ms = 600000
        "#]]);
    // Without arguments, the child receives the wired values, by name.
    node("config: {workflowRef: other, timeoutMs: 5}")
        .show("steps.1.work")
        .show("steps.1.timeout_ms")
        .check(expect![[r#"
            ok
            steps.1.work = {"kind":"workflow","label_args":{"draft_text":"[[draft_text]]"},"name":"other"}
            steps.1.timeout_ms = 5
        "#]]);
}

#[test]
fn a_node_may_ask_a_person() {
    node("config: {humanInput: {schema: {tone: {type: string, enum: [warm]}}, summary: 'Tone of ${draft_text} on ${topic} by ${a.output}?', approvers: [ada], notInitiator: true, expiresIn: 1h}}")
        .show("steps.1.work")
        .show("steps.1.outputs")
        .show("steps.1.approval")
        .check(expect![[r#"
            ok
            steps.1.work = {"kind":"approval"}
            steps.1.outputs = {"tone":{"type":"string","enum":["warm"]}}
            steps.1.approval = {"approvers":["ada"],"covers_retries":false,"expires_in_ms":3600000,"not_initiator":true,"quorum":1,"summary":"Tone of ${draft_text} on ${topic} by ${a.output}?"}
        "#]]);
    node("config: {approval: required}").show("steps.1.work").show("steps.1.approval").check(
        expect![[r#"
            ok
            steps.1.work = {"kind":"approval"}
            steps.1.approval = {"covers_retries":false,"not_initiator":false,"quorum":1}
        "#]],
    );
    node("lens_id: l, config: {approval: {quorum: 2, summary: 'Go on?'}}")
        .show("steps.1.work.kind")
        .show("steps.1.approval")
        .check(expect![[r#"
            ok
            steps.1.work.kind = "lens"
            steps.1.approval = {"covers_retries":false,"not_initiator":false,"quorum":2,"summary":"Go on?"}
        "#]]);
}

#[test]
fn a_node_does_one_thing() {
    for (more, told) in [
        (
            "label: x",
            expect![[r#"
            4:35 missing_field nodes[1]: node `m` does nothing: `lens_id` is missing (name a lens, or set `workflow_ref`, `human_input` or `approval` in `config`)
        "#]],
        ),
        (
            "config: {approval: {required: false}}",
            expect![[r#"
            4:35 missing_field nodes[1]: node `m` does nothing: `lens_id` is missing (name a lens, or set `workflow_ref`, `human_input` or `approval` in `config`)
        "#]],
        ),
        (
            "lens_id: l, config: {workflow_ref: other}",
            expect![[r#"
            4:73 conflicting_fields nodes[1].config.workflow_ref: a node applies a lens or runs another workflow
        "#]],
        ),
        (
            "lens_id: l, config: {human_input: {schema: {x: string}}}",
            expect![[r#"
            4:72 conflicting_fields nodes[1].config.human_input: a node with `human_input` cannot do anything else
        "#]],
        ),
        (
            "config: {workflow_ref: other, human_input: {schema: {x: string}}, approval: required}",
            expect![[r#"
                4:81 conflicting_fields nodes[1].config.human_input: a node with `human_input` cannot do anything else
                4:81 conflicting_fields nodes[1].config.human_input: `human_input` is already an approval; set `approvers` in it
            "#]],
        ),
        (
            "config: {approval: required, args: {x: 1}}",
            expect![[r#"
            4:73 conflicting_fields nodes[1].config.args: `args` are for another workflow; there is no `workflow_ref`
        "#]],
        ),
        (
            "config: {workflow_ref: other, param_overrides: {x: 1}}",
            expect![[r#"
            4:86 conflicting_fields nodes[1].config.param_overrides: `param_overrides` bind the placeholders of a lens; there is no `lens_id`
        "#]],
        ),
        (
            "version_id: '1', config: {approval: required}",
            expect![[r#"
            4:50 conflicting_fields nodes[1].version_id: `version_id` is of a lens; there is no `lens_id`
        "#]],
        ),
    ] {
        node(more).check(told);
    }
}

#[test]
fn what_such_a_node_names_exists() {
    for (more, told) in [
        (
            "config: {workflow_ref: other, args: {x: 'see ${a.output}'}}",
            expect![[r#"
                ~4:75 unknown_variable nodes[1].config.args.x: `${…}` is plain text in the arguments of a node, which read its labels (wire the value to a label of the node, and write `[[label]]`)
                ok
            "#]],
        ),
        (
            "config: {workflow_ref: othr}",
            expect![[r#"
            4:61 unknown_workflow nodes[1].config.workflow_ref: the registry has no workflow `othr` (did you mean `other`?)
        "#]],
        ),
        (
            "config: {workflow_ref: other@3}",
            expect![[r#"
            4:61 unknown_workflow nodes[1].config.workflow_ref: the registry has no version 3 of `other`
        "#]],
        ),
        (
            "config: {workflow_ref: other@x}",
            expect![[r#"
            4:61 bad_reference nodes[1].config.workflow_ref: `x` is not a version number (write `name` or `name@3`)
        "#]],
        ),
        (
            "config: {workflow_ref: [other]}",
            expect![[r#"
            4:61 wrong_type nodes[1].config.workflow_ref: expected a string, found a list
        "#]],
        ),
        (
            "config: {workflow_ref: other, args: {x: '[[tpic]] [[none!]] [[x:thing]]'}}",
            expect![[r#"
            4:98 bad_template nodes[1].config.args.x: unknown placeholder type `thing` (the types are string, number, integer, boolean, url, json, array, any)
        "#]],
        ),
        (
            "config: {workflow_ref: other, args: {x: '[[tpic]] [[none!]]'}}",
            expect![[r#"
            4:35 missing_binding nodes[1]: nothing binds `tpic` of node `m` (did you mean `topic`?)
        "#]],
        ),
        (
            "config: {human_input: {schema: {}}}",
            expect![[r#"
            4:60 bad_value nodes[1].config.human_input.schema: there are no values to request (use `approval` to request a decision without values)
        "#]],
        ),
        (
            "config: {human_input: {summary: 'x'}}",
            expect![[r#"
            4:60 missing_field nodes[1].config.human_input: `schema` is missing
        "#]],
        ),
        (
            "config: {human_input: {schema: {by: string, 'a b': string, n: {type: nmber}}}}",
            expect![[r#"
            4:70 reserved_name nodes[1].config.human_input.schema.by: `by` is already part of every approval
            4:82 bad_name nodes[1].config.human_input.schema.a b: `a b` is not a name (write `a_b`)
            4:107 bad_value nodes[1].config.human_input.schema.n.type: `nmber` is not a type (did you mean `number`?)
        "#]],
        ),
        (
            "config: {approval: {summary: '${draft} ${topc} ${m.output}'}}",
            expect![[r#"
            4:35 cycle_detected nodes[1]: the dependencies form a cycle: m -> m (each step in the list waits for the next one; remove one of the dependencies)
            ~4:67 unknown_variable nodes[1].config.approval.summary: nothing sets `draft` (did you mean `draft_text`?)
            ~4:67 unknown_variable nodes[1].config.approval.summary: nothing sets `topc` (did you mean `topic`?)
        "#]],
        ),
    ] {
        node(more).check(told);
    }
}
