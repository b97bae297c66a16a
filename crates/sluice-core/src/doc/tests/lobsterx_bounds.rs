//! The values that each field allows: forms, bounds on both sides, wrong types.

use super::{Script, check_step, check_top};
use expect_test::expect;

#[test]
fn whole_numbers_of_the_document_have_bounds() {
    check_top(
        &["max_parallel", "version"],
        &[
            "max_parallel: 0",
            "max_parallel: 1",
            "max_parallel: 1024",
            "max_parallel: 1025",
            "max_parallel: -1",
            "max_parallel: 2.5",
            "max_parallel: '4'",
            "max_parallel: many",
            "max_parallel: [1]",
            "max_parallel:",
            "version: 0",
            "version: 9007199254740991",
            "version: 9007199254740992",
            "version: -1",
            "version: 1.0",
            "version: '1'",
        ],
        expect![[r#"
            max_parallel: 0 => 2:15 bad_value max_parallel: 0 is not a whole number from 1 to 1024
            max_parallel: 1 => ok | max_parallel = 1 | version = -
            max_parallel: 1024 => ok | max_parallel = 1024 | version = -
            max_parallel: 1025 => 2:15 bad_value max_parallel: 1025 is not a whole number from 1 to 1024
            max_parallel: -1 => 2:15 bad_value max_parallel: -1 is not a whole number from 1 to 1024
            max_parallel: 2.5 => 2:15 bad_value max_parallel: 2.5 is not a whole number from 1 to 1024
            max_parallel: '4' => 2:15 wrong_type max_parallel: expected a number, found a string
            max_parallel: many => 2:15 wrong_type max_parallel: expected a number, found a string
            max_parallel: [1] => 2:15 wrong_type max_parallel: expected a number, found a list
            max_parallel: => ok | max_parallel = 64 | version = -
            version: 0 => ok | max_parallel = 64 | version = 0
            version: 9007199254740991 => ok | max_parallel = 64 | version = 9007199254740991
            version: 9007199254740992 => 2:10 bad_value version: 9007199254740992 is not a whole number from 0 to 9007199254740991
            version: -1 => 2:10 bad_value version: -1 is not a whole number from 0 to 9007199254740991
            version: 1.0 => 2:10 bad_value version: 1.0 is not a whole number from 0 to 9007199254740991
            version: '1' => 2:10 wrong_type version: expected a number, found a string
        "#]],
    );
}

#[test]
fn durations_of_the_document() {
    check_top(
        &["timeout_ms"],
        &[
            "timeout: 90",
            "timeout: 90s",
            "timeout: 1.5m",
            "timeout: '90'",
            "timeout: 1ms",
            "timeout: 366d",
            "timeout: 367d",
            "timeout: 0",
            "timeout: 0s",
            "timeout: -5",
            "timeout: soon",
            "timeout: 5w",
            "timeout: true",
            "timeout: [5]",
            "timeout: {s: 5}",
            "timeout:",
        ],
        expect![[r#"
            timeout: 90 => ok | timeout_ms = 90000
            timeout: 90s => ok | timeout_ms = 90000
            timeout: 1.5m => ok | timeout_ms = 90000
            timeout: '90' => ok | timeout_ms = 90000
            timeout: 1ms => ok | timeout_ms = 1
            timeout: 366d => ok | timeout_ms = 31622400000
            timeout: 367d => 2:10 bad_duration timeout: a duration can be at most 366d
            timeout: 0 => 2:10 bad_duration timeout: a duration cannot be zero
            timeout: 0s => 2:10 bad_duration timeout: a duration cannot be zero
            timeout: -5 => 2:10 bad_duration timeout: a duration cannot be negative
            timeout: soon => 2:10 bad_duration timeout: `soon` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
            timeout: 5w => 2:11 bad_duration timeout: unknown unit `w` (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
            timeout: true => 2:10 wrong_type timeout: expected a duration such as `90s`, or a number of seconds, found a boolean
            timeout: [5] => 2:10 wrong_type timeout: expected a duration such as `90s`, or a number of seconds, found a list
            timeout: {s: 5} => 2:10 wrong_type timeout: expected a duration such as `90s`, or a number of seconds, found a map
            timeout: => ok | timeout_ms = -
        "#]],
    );
}

#[test]
fn money_scheduling_and_recovery() {
    check_top(
        &["max_cost", "scheduling", "recovery"],
        &[
            "budget: {max_cost_cents: 0}",
            "budget: {max_cost_cents: 12.5}",
            "budget: {max_cost_cents: -1}",
            "budget: {max_cost_cents: '5'}",
            "budget: {}",
            "budget: 5",
            "budget: {max_cost: 5}",
            "scheduling: eager",
            "scheduling: waves",
            "scheduling: wave",
            "scheduling: 1",
            "scheduling: Eager",
            "recovery: {max: 0}",
            "recovery: {max: 100, after: 5m}",
            "recovery: {max: 101}",
            "recovery: {max: -1}",
            "recovery: {after: 5}",
            "recovery: {max: 1, afterr: 5}",
            "recovery: 3",
        ],
        expect![[r#"
            budget: {max_cost_cents: 0} => ok | max_cost = 0 | scheduling = "eager" | recovery = -
            budget: {max_cost_cents: 12.5} => ok | max_cost = 12500000 | scheduling = "eager" | recovery = -
            budget: {max_cost_cents: -1} => 2:26 bad_value budget.max_cost_cents: an amount of money cannot be negative
            budget: {max_cost_cents: '5'} => 2:26 wrong_type budget.max_cost_cents: expected a number, found a string
            budget: {} => ok | max_cost = - | scheduling = "eager" | recovery = -
            budget: 5 => 2:9 wrong_type budget: expected a map, found a number
            budget: {max_cost: 5} => 2:10 unknown_field budget.max_cost: unknown field `max_cost` (did you mean `max_cost_cents`?)
            scheduling: eager => ok | max_cost = - | scheduling = "eager" | recovery = -
            scheduling: waves => ok | max_cost = - | scheduling = "waves" | recovery = -
            scheduling: wave => 2:13 bad_value scheduling: `wave` is not a scheduling (did you mean `waves`?)
            scheduling: 1 => 2:13 wrong_type scheduling: expected a string, found a number (quote it if it is meant as text)
            scheduling: Eager => 2:13 bad_value scheduling: `Eager` is not a scheduling (did you mean `eager`?)
            recovery: {max: 0} => ok | max_cost = - | scheduling = "eager" | recovery = {"max":0,"after_ms":0}
            recovery: {max: 100, after: 5m} => ok | max_cost = - | scheduling = "eager" | recovery = {"max":100,"after_ms":300000}
            recovery: {max: 101} => 2:17 bad_value recovery.max: 101 is not a whole number from 0 to 100
            recovery: {max: -1} => 2:17 bad_value recovery.max: -1 is not a whole number from 0 to 100
            recovery: {after: 5} => 2:11 missing_field recovery: `max` is missing
            recovery: {max: 1, afterr: 5} => 2:20 unknown_field recovery.afterr: unknown field `afterr` (did you mean `after`?)
            recovery: 3 => 2:11 wrong_type recovery: expected a map, found a number
        "#]],
    );
}

#[test]
fn durations_of_a_step() {
    check_step(
        &["steps.0.timeout_ms"],
        &[
            "model: x",
            "timeout: 90",
            "timeout: 90s",
            "timeout: 5m",
            "timeout: 1ms",
            "timeout: 0",
            "timeout: 366d",
            "timeout: 8784h",
            "timeout: 8785h",
            "timeout: no",
            "timeout: {}",
        ],
        expect![[r#"
            model: x => ok | steps.0.timeout_ms = 600000
            timeout: 90 => ok | steps.0.timeout_ms = 90000
            timeout: 90s => ok | steps.0.timeout_ms = 90000
            timeout: 5m => ok | steps.0.timeout_ms = 300000
            timeout: 1ms => ok | steps.0.timeout_ms = 1
            timeout: 0 => 5:14 bad_duration steps[0].timeout: a duration cannot be zero
            timeout: 366d => ok | steps.0.timeout_ms = 31622400000
            timeout: 8784h => ok | steps.0.timeout_ms = 31622400000
            timeout: 8785h => 5:14 bad_duration steps[0].timeout: a duration can be at most 366d
            timeout: no => 5:14 bad_duration steps[0].timeout: `no` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
            timeout: {} => 5:14 wrong_type steps[0].timeout: expected a duration such as `90s`, or a number of seconds, found a map
        "#]],
    );
}

#[test]
fn failure_policies() {
    check_step(
        &["steps.0.on_failure", "steps.0.parallel_failure_policy", "steps.0.on_parent_failure"],
        &[
            "on_failure: halt",
            "on_failure: skip",
            "on_failure: retry_once",
            "on_failure: retry_once_then_escalate",
            "on_failure: retry",
            "on_failure: fail",
            "on_failure: continue",
            "on_failure: retry_onec",
            "on_failure: explode",
            "on_failure: [halt]",
            "on_failure:",
            "parallel_failure_policy: wait_all",
            "parallel_failure_policy: fail_fast",
            "parallel_failure_policy: fastfail",
            "parallel_failure_policy: fail",
            "on_parent_failure: propagate",
            "on_parent_failure: skip",
            "on_parent_failure: substitute_default",
            "on_parent_failure: continue",
            "on_parent_failure: 3",
        ],
        expect![[r#"
            on_failure: halt => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: skip => ok | steps.0.on_failure = "skip" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: retry_once => ok | steps.0.on_failure = "retry_once" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: retry_once_then_escalate => ok | steps.0.on_failure = "retry_once_then_escalate" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: retry => ok | steps.0.on_failure = "retry" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: fail => ~5:17 deprecated_value steps[0].on_failure: `fail` is an old name of `halt` (write `halt`) | ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: continue => ~5:17 deprecated_value steps[0].on_failure: `continue` is an old name of `skip` (write `skip`) | ok | steps.0.on_failure = "skip" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_failure: retry_onec => 5:17 bad_value steps[0].on_failure: `retry_onec` is not a failure policy (did you mean `retry_once`?)
            on_failure: explode => 5:17 bad_value steps[0].on_failure: `explode` is not a failure policy (use one of: halt, skip, retry_once, retry_once_then_escalate, retry)
            on_failure: [halt] => 5:17 wrong_type steps[0].on_failure: expected a string, found a list
            on_failure: => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            parallel_failure_policy: wait_all => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            parallel_failure_policy: fail_fast => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "fail_fast" | steps.0.on_parent_failure = "propagate"
            parallel_failure_policy: fastfail => 5:30 bad_value steps[0].parallel_failure_policy: `fastfail` is not a parallel failure policy (use one of: wait_all, fail_fast)
            parallel_failure_policy: fail => 5:30 bad_value steps[0].parallel_failure_policy: `fail` is not a parallel failure policy (did you mean `fail_fast`?)
            on_parent_failure: propagate => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "propagate"
            on_parent_failure: skip => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "skip"
            on_parent_failure: substitute_default => ok | steps.0.on_failure = "halt" | steps.0.parallel_failure_policy = "wait_all" | steps.0.on_parent_failure = "substitute_default"
            on_parent_failure: continue => 5:24 bad_value steps[0].on_parent_failure: `continue` is not a parent failure policy (use one of: propagate, skip, substitute_default)
            on_parent_failure: 3 => 5:24 wrong_type steps[0].on_parent_failure: expected a string, found a number (quote it if it is meant as text)
        "#]],
    );
}

#[test]
fn retry_maps() {
    check_step(
        &["steps.0.retry"],
        &[
            "retry: {}",
            "retry: {attempts: 0}",
            "retry: {attempts: 1}",
            "retry: {attempts: 100}",
            "retry: {attempts: 101}",
            "retry: {backoff_ms: 0}",
            "retry: {backoff_ms: 86400000}",
            "retry: {backoff_ms: 86400001}",
            "retry: {max_backoff_ms: 0}",
            "retry: {max_backoff_ms: 86400000}",
            "retry: {max_backoff_ms: 86400001}",
            "retry: {backoff_ms: 1s}",
            "retry: {retry_on: []}",
            "retry: {retry_on: [timeout, provider_error, rate_limit, contract_violated]}",
            "retry: {retry_on: [time_out, lunch]}",
            "retry: {retry_on: timeout}",
            "retry: {attempt: 2}",
            "retry: 3",
        ],
        expect![[r#"
            retry: {} => ok | steps.0.retry = {"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {attempts: 0} => 5:23 bad_value steps[0].retry.attempts: 0 is not a whole number from 1 to 100
            retry: {attempts: 1} => ok | steps.0.retry = {"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {attempts: 100} => ok | steps.0.retry = {"attempts":100,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {attempts: 101} => 5:23 bad_value steps[0].retry.attempts: 101 is not a whole number from 1 to 100
            retry: {backoff_ms: 0} => ok | steps.0.retry = {"attempts":1,"backoff_ms":0,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {backoff_ms: 86400000} => ok | steps.0.retry = {"attempts":1,"backoff_ms":86400000,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {backoff_ms: 86400001} => 5:25 bad_value steps[0].retry.backoff_ms: 86400001 is not a whole number from 0 to 86400000
            retry: {max_backoff_ms: 0} => ok | steps.0.retry = {"attempts":1,"backoff_ms":500,"max_backoff_ms":0,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {max_backoff_ms: 86400000} => ok | steps.0.retry = {"attempts":1,"backoff_ms":500,"max_backoff_ms":86400000,"retry_on":["timeout","provider_error","rate_limit"]}
            retry: {max_backoff_ms: 86400001} => 5:29 bad_value steps[0].retry.max_backoff_ms: 86400001 is not a whole number from 0 to 86400000
            retry: {backoff_ms: 1s} => 5:25 wrong_type steps[0].retry.backoff_ms: expected a number, found a string
            retry: {retry_on: []} => ok | steps.0.retry = {"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":[]}
            retry: {retry_on: [timeout, provider_error, rate_limit, contract_violated]} => ok | steps.0.retry = {"attempts":1,"backoff_ms":500,"max_backoff_ms":8000,"retry_on":["timeout","provider_error","rate_limit","contract_violated"]}
            retry: {retry_on: [time_out, lunch]} => 5:24 bad_value steps[0].retry.retry_on[0]: `time_out` is not a cause of retry (did you mean `timeout`?) | 5:34 bad_value steps[0].retry.retry_on[1]: `lunch` is not a cause of retry (use one of: timeout, provider_error, rate_limit, contract_violated)
            retry: {retry_on: timeout} => 5:23 wrong_type steps[0].retry.retry_on: expected a list, found a string
            retry: {attempt: 2} => 5:13 unknown_field steps[0].retry.attempt: unknown field `attempt` (did you mean `attempts`?)
            retry: 3 => 5:12 wrong_type steps[0].retry: expected a map, found a number
        "#]],
    );
}

#[test]
fn approvals() {
    check_step(
        &["steps.0.approval", "steps.0.work.kind"],
        &[
            "approval: required",
            "approval: {}",
            "approval: {required: true}",
            "approval: {required: false}",
            "approval: {quorum: 0}",
            "approval: {quorum: 1}",
            "approval: {quorum: 100}",
            "approval: {quorum: 101}",
            "approval: {approvers: [ada, ops], not_initiator: true, expires_in: 2d, summary: 'ok?', covers_retries: true}",
            "approval: {approvers: ada}",
            "approval: {not_initiator: 'yes'}",
            "approval: {expires_in: 0}",
            "approval: {expires_in: later}",
            "approval: {sumary: x}",
            "approval: {summary: '${'}",
            "approval: true",
            "approval: optional",
            "approval: [ada]",
        ],
        expect![[r#"
            approval: required => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":1} | steps.0.work.kind = "command"
            approval: {} => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":1} | steps.0.work.kind = "command"
            approval: {required: true} => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":1} | steps.0.work.kind = "command"
            approval: {required: false} => ok | steps.0.approval = - | steps.0.work.kind = "command"
            approval: {quorum: 0} => 5:24 bad_value steps[0].approval.quorum: 0 is not a whole number from 1 to 100
            approval: {quorum: 1} => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":1} | steps.0.work.kind = "command"
            approval: {quorum: 100} => ok | steps.0.approval = {"covers_retries":false,"not_initiator":false,"quorum":100} | steps.0.work.kind = "command"
            approval: {quorum: 101} => 5:24 bad_value steps[0].approval.quorum: 101 is not a whole number from 1 to 100
            approval: {approvers: [ada, ops], not_initiator: true, expires_in: 2d, summary: 'ok?', covers_retries: true} => ok | steps.0.approval = {"approvers":["ada","ops"],"covers_retries":true,"expires_in_ms":172800000,"not_initiator":true,"quorum":1,"summary":"ok?"} | steps.0.work.kind = "command"
            approval: {approvers: ada} => 5:27 wrong_type steps[0].approval.approvers: expected a list, found a string
            approval: {not_initiator: 'yes'} => 5:31 wrong_type steps[0].approval.not_initiator: expected `true` or `false`, found a string
            approval: {expires_in: 0} => 5:28 bad_duration steps[0].approval.expires_in: a duration cannot be zero
            approval: {expires_in: later} => 5:28 bad_duration steps[0].approval.expires_in: `later` is not a duration (write a number and one of ms, s, m, h, d, as in `90s`; a number alone is seconds)
            approval: {sumary: x} => 5:16 unknown_field steps[0].approval.sumary: unknown field `sumary` (did you mean `summary`?)
            approval: {summary: '${'} => 5:26 bad_template steps[0].approval.summary: unclosed `${` (write `$${` for a literal `${`)
            approval: true => 5:15 wrong_type steps[0].approval: expected `required` or a map, found a boolean (write `approval: required`)
            approval: optional => 5:15 wrong_type steps[0].approval: expected `required` or a map, found a string (write `approval: required`)
            approval: [ada] => 5:15 wrong_type steps[0].approval: expected `required` or a map, found a list (write `approval: required`)
        "#]],
    );
}

#[test]
fn a_list_written_out_is_not_longer_than_max_items() {
    let told = |for_each: &str| {
        let step = format!("{{id: a, agent: mock, command: x, {for_each}}}");
        Script::lobsterx(&format!("name: demo\nsteps: [{step}]\n")).transcript()
    };
    assert_eq!(told("for_each: [1, 2], max_items: 2"), "ok\n");
    assert!(
        told("for_each: [1, 2, 3], max_items: 2").contains("there are 3 items; `max_items` is 2")
    );
    assert!(
        told("for_each: {items: [1, 2], max_items: 1}")
            .contains("there are 2 items; `max_items` is 1")
    );
    let many = vec!["1"; 1001].join(", ");
    assert!(
        told(&format!("for_each: [{many}]")).contains("there are 1001 items; `max_items` is 1000")
    );
}
