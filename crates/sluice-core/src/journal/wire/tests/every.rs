//! One event of every type, with all fields set and with all fields empty.

use crate::contract::envelope::Envelope;
use crate::hash::Hash;
use crate::id::{ApprovalId, RunId};
use crate::journal::event::*;
use crate::layers::Layer;
use crate::money::Money;
use crate::origin::{FieldLabels, FlowLabels, Labels, PassedLabels, SourceClass};
use crate::outputs::coerce::Coercion;
use crate::outputs::schema::FieldType;
use crate::plan::policy::ModerationPhase;
use crate::port::adapter::{Process, ToolContent, ToolEnded, Usage};
use crate::status::{RunStatus, Waiting};
use crate::violation::{Reason, Violation};
use serde_json::{Map, Value, json};
use sluice_govern::catalog::AnswerFields;
use sluice_govern::decision::Constraints;
use sluice_govern::registry::Posture;
use std::collections::BTreeMap;
use std::sync::Arc;

const RUN: RunId = RunId(0x10);
const APPROVAL: ApprovalId = ApprovalId(0x20);

fn text(text: &str) -> String {
    text.to_owned()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn at_first(event: StepEvent) -> Event {
    Event::Step(StepAt::whole(0), event)
}

fn usage() -> Usage {
    Usage {
        model: some("m"),
        input_tokens: 1,
        output_tokens: 2,
        thinking_tokens: 3,
        cached_tokens: 0,
        unpriced: false,
        cost: Money::from_micro_cents(210_000),
        unknown: true,
    }
}

fn prepared() -> Arc<Prepared> {
    Arc::new(Prepared {
        inputs: map(&json!({"z": 1, "a": null})),
        prompt: text("do \"it\"\n"),
        stdin: some(""),
        env: vec![(text("B"), text("1")), (text("A"), text("2"))],
        labels: labels(),
        field_labels: fields(),
        layers: vec![Layer { number: 2, source: text("house"), text: text("Be \"kind\"") }],
    })
}

fn labels() -> Labels {
    let mut labels: Labels = [SourceClass::Human, SourceClass::Caller].into_iter().collect();
    (labels.untrusted, labels.private, labels.since_ms) = (true, true, Some(9));
    labels.flow = FlowLabels::of(["web", "unknown"], ["customer"]);
    labels.flow.join(&FlowLabels::controlled());
    labels
}

fn fields() -> FieldLabels {
    [(text("z"), FlowLabels::of(["caller"], ["payroll"]))].into_iter().collect()
}

fn violations() -> Arc<Vec<Violation>> {
    Arc::new(vec![Violation::new("a.b[0]", Reason::TooLong, "is long")])
}

fn ending() -> Box<Ending> {
    Box::new(Ending {
        code: text("provider_error"),
        message: text("no answer"),
        violations: violations(),
        attempts: 2,
        usage: usage(),
        answer: None,
    })
}

fn run_started() -> RunStarted {
    let hash = Hash([0x22; 32]);
    RunStarted {
        workflow: text("w"),
        version: Some(3),
        source: DocumentSource::Registered,
        definition_hash: text("ab"),
        definition: Some(hash),
        children: BTreeMap::from([(text("c"), hash), (text("c@2"), hash)]),
        args: Arc::new(map(&json!({"n": 1.5}))),
        role_bindings: BTreeMap::from([(text("role"), text("agent"))]),
        default_agent: some("a"),
        default_model: some("m"),
        fallback_model: some("f"),
        recursion_depth_max: Some(2),
        gateway: text("mock"),
        initiator: text("ada"),
        on_behalf_of: vec![text("ben")],
        trace_id: text("t"),
        root_span_id: text("s"),
        parent_span_id: some("p"),
        parent: Some(ParentStep { run: RUN, step: text("step[1]") }),
        root: Some(RUN),
        depth: 1,
        origin: Some(Origin { kind: text("branch"), run: RUN, event: 7 }),
        deployment: some("live"),
        posture: Posture::ApprovalRequired,
        trust_ceiling: Some(4),
        pins: BTreeMap::from([(text("agent"), text("gw"))]),
        caps: vec![(RUN, Money::from_micro_cents(5))],
        agreed: BTreeMap::from([(text("step"), json!({"command": "x"}))]),
        passed: PassedLabels { labels: labels(), field_labels: fields() },
        args_seen: BTreeMap::new(),
    }
}

fn dispatch() -> Dispatch {
    Dispatch {
        attempt: 1,
        dispatch_no: 2,
        wave: 0,
        agent: some("a"),
        gateway: text("mock"),
        path: Path::Child(RUN),
        deadline_ms: Some(99),
        prepared: Some(prepared()),
        digest: some("d1"),
        terms: Arc::new(Terms {
            slot: some("a"),
            reserved: Money::from_micro_cents(7),
            accounts: vec![Account { name: "run/x".into(), cap: Money::from_micro_cents(9) }],
            constraints: constraints(),
            model: some("m"),
            max_output_tokens: Some(12),
            price: None,
            history: Vec::new(),
        }),
        session: None,
    }
}

fn completed() -> Completed {
    let envelope = Envelope {
        kind: some("text"),
        artifact_kind: some("page"),
        output: json!("x"),
        data: Some(Value::Null),
        media: Some(json!([])),
        metadata: Some(json!({"a": 1})),
    };
    let outcome =
        StepOutcome { field_labels: fields(), ..StepOutcome::from_envelope(envelope, labels()) };
    let coercion = Coercion { field: text("b"), from: "string", to: FieldType::Integer };
    Completed {
        outcome: Arc::new(outcome),
        attempts: 2,
        duration_ms: 12,
        usage: usage(),
        coercions: vec![coercion],
        session: some("talk"),
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: Some(RUN),
    }
}

fn approval_requested() -> ApprovalRequested {
    ApprovalRequested {
        approval: APPROVAL,
        source: ApprovalSource::Escalation,
        summary: text("may I?"),
        approvers: vec![text("ada")],
        expires_at_ms: 99,
        error: Some((text("timeout"), text("too long"))),
        prepared: Some(prepared()),
        usage: usage(),
        answer: None,
        groups: vec![vec![text("ada"), text("legal")]],
        quorum: 2,
        not_initiator: true,
        reminders: Some(vec![(5, text("normal"))]),
        action: Some(Arc::new(ApprovalSubject {
            action: json!({"command": "go"}),
            digest: text("d1"),
            reasons: vec![text("policy p")],
            changes: vec![ChangedValue {
                path: text("/command"),
                before: json!("stay"),
                after: json!("go"),
            }],
            arguments: Vec::new(),
            asked_for: None,
        })),
    }
}

fn constraints() -> Constraints {
    Constraints { tools_deny: vec![text("mail")], ..Constraints::default() }
}

fn full_wait() -> Wait {
    Wait {
        reason: Waiting::RetryBackoff,
        attempt: 2,
        cause: some("timeout"),
        delay_ms: 5,
        until_ms: 10,
        code: some("budget"),
        hint: some("wait"),
    }
}

/// Every event, every field set.
pub(in crate::journal) fn full() -> Vec<Event> {
    let mut events = full_of_runs();
    let skip = Skip {
        cause: SkipCause::Condition,
        reason: text("is false"),
        error: Some((text("timeout"), text("too long"))),
        violations: Arc::default(),
        usage: usage(),
        answer: None,
        carried: Some(RUN),
        control: true,
    };
    let provenance = Provenance {
        source_run: Some(RUN),
        source_node: text("second"),
        source_output_path: text("a.b"),
        target_input_path: text("c"),
        transform: some("concat"),
    };
    let retried = Retried {
        attempt: 1,
        cause: text("timeout"),
        message: text("too long"),
        delay_ms: 5,
        reask: true,
        usage: usage(),
        answer: None,
        session: None,
    };
    let media = DeltaPart::Media { url: text("u"), mime: text("image/png") };
    let process = LogLine::Process(Process { group: 7, started: text("123") });
    let resolved = ApprovalResolved {
        approval: APPROVAL,
        resolution: Resolution::Approved,
        by: some("ada"),
        comment: some("fine"),
        roles: vec![text("legal")],
        tightened: Some(Tightened { constraints: constraints(), digest: text("d2") }),
    };
    let steps = [
        StepEvent::Queued { items: Some(Arc::new(vec![json!(1), Value::Null])) },
        StepEvent::Assigned(Box::new(Assigned {
            assignee: Assignee::Member(text("m")),
            by: some("me"),
        })),
        StepEvent::Waiting(Box::new(full_wait())),
        StepEvent::Started(Box::new(dispatch())),
        StepEvent::Delta(Box::new(Delta { index: 3, attempt: 1, dispatch_no: 0, part: media })),
        StepEvent::Log { dispatch_no: 2, line: process },
        StepEvent::Retried(Box::new(retried)),
        StepEvent::Completed(Box::new(completed())),
        StepEvent::Failed(ending()),
        StepEvent::TimedOut(ending()),
        StepEvent::Cancelled {
            code: text("run_halted"),
            reason: text("the run stopped"),
            usage: Usage::default(),
        },
        StepEvent::Skipped(skip),
        StepEvent::Blocked {
            code: text("missing_value"),
            message: text("has no value"),
            placeholder: some("label"),
            waits: true,
        },
        StepEvent::Invalidated,
        StepEvent::Provenance(Box::new(provenance)),
        StepEvent::Endorsed(Box::new(Endorsed {
            output: text("n"),
            origins: vec![text("web")],
            approval: Some(APPROVAL),
        })),
        StepEvent::ModerationFlagged {
            phase: ModerationPhase::Input,
            decision: json!({"flagged": true}),
        },
        StepEvent::ContractViolated { phase: ContractSide::Output, errors: violations() },
        StepEvent::GovernanceDecided(Record::new(r#"{"disposition":"allow","gates":[]}"#)),
        StepEvent::ApprovalRequested(Box::new(approval_requested())),
        StepEvent::ApprovalReminded { approval: APPROVAL, level: text("warning") },
        StepEvent::ApprovalResolved(Box::new(resolved)),
    ];
    let instance = StepAt::instance(1, 3);
    events.extend(steps.into_iter().map(|event| Event::Step(instance, event)));
    events
}

fn full_of_runs() -> Vec<Event> {
    vec![
        Event::RunStarted(Box::new(run_started())),
        Event::RunStatusChanged {
            status: RunStatus::Paused,
            reason: text("operator"),
            by: some("ada"),
        },
        Event::RunCompleted { outputs: Arc::new(json!({"x": 1})) },
        Event::RunFailed { code: text("step_failed"), message: text("a step failed") },
        Event::RunCancelled { reason: text("enough") },
        Event::RunTimedOut { timeout_ms: 1000 },
        Event::RunRecovered,
        Event::BudgetAlert(BudgetFigures(map(&json!({"budget": "b", "spent": 0.5})))),
    ]
}

/// Every event, every field empty.
pub(in crate::journal) fn bare() -> Vec<Event> {
    let mut events = vec![
        Event::RunStarted(Box::default()),
        Event::RunStatusChanged { status: RunStatus::Running, reason: text(""), by: None },
        Event::RunCompleted { outputs: Arc::default() },
        Event::RunFailed { code: text(""), message: text("") },
        Event::RunCancelled { reason: text("") },
        Event::RunTimedOut { timeout_ms: 0 },
        Event::RunRecovered,
        Event::BudgetAlert(BudgetFigures(Map::new())),
    ];
    events.extend(bare_work().into_iter().chain(bare_ends()).map(at_first));
    events
}

fn bare_work() -> Vec<StepEvent> {
    let wait = Wait {
        reason: Waiting::Gate,
        attempt: 0,
        cause: None,
        delay_ms: 0,
        until_ms: 0,
        code: None,
        hint: None,
    };
    let dispatch = Dispatch {
        attempt: 1,
        dispatch_no: 1,
        wave: 0,
        agent: None,
        gateway: text(""),
        path: Path::Edge,
        deadline_ms: None,
        prepared: None,
        digest: None,
        terms: Arc::default(),
        session: None,
    };
    let given = Dispatch { prepared: Some(Arc::default()), path: Path::FanOut, ..dispatch.clone() };
    let retried = Retried {
        attempt: 1,
        cause: text(""),
        message: text(""),
        delay_ms: 0,
        reask: false,
        usage: Usage::default(),
        answer: None,
        session: None,
    };
    vec![
        StepEvent::Queued { items: None },
        StepEvent::Assigned(Box::new(Assigned { assignee: Assignee::Agent(text("a")), by: None })),
        StepEvent::Queued { items: Some(Arc::default()) },
        StepEvent::Waiting(Box::new(wait)),
        StepEvent::Started(Box::new(dispatch)),
        StepEvent::Started(Box::new(given)),
        StepEvent::Delta(Box::new(Delta {
            index: 0,
            attempt: 1,
            dispatch_no: 0,
            part: DeltaPart::Text(text("")),
        })),
        StepEvent::Log { dispatch_no: 1, line: LogLine::Text(text("")) },
        StepEvent::Log {
            dispatch_no: 1,
            line: LogLine::Process(Process { group: 0, started: text("") }),
        },
        StepEvent::Retried(Box::new(retried)),
    ]
}

fn ended_call() -> EndedCall {
    let content = ToolContent::new(text("said"), Some(json!({"id": 7})));
    EndedCall {
        ended: ToolEnded {
            id: text("1"),
            tool: text("crm.find"),
            failed: false,
            bytes: 4,
            duration_ms: 2,
            content: Some(content),
        },
        fields: AnswerFields { records: vec![text("id")], ..AnswerFields::default() },
    }
}

/// Log lines about the moderator, a tool and a child run. Not in the list above, whose hash is pinned.
pub(super) fn moderated() -> Vec<Event> {
    let digest = || text("5e1f");
    let prepared = dispatch().prepared;
    let lines = [
        LogLine::ModerationAsked { digest: digest(), prepared },
        LogLine::ModerationAsked { digest: digest(), prepared: None },
        LogLine::ModerationCleared { phase: ModerationPhase::Input, digest: digest() },
        LogLine::ModerationCleared { phase: ModerationPhase::Output, digest: digest() },
        LogLine::ToolEnded(Arc::new(ended_call())),
        LogLine::Child { child: RUN, pace: ChildPace::Paused, at_ms: 7 },
        LogLine::Child { child: RUN, pace: ChildPace::Resumed, at_ms: 8 },
    ];
    let log = |line| Event::Step(StepAt::whole(0), StepEvent::Log { dispatch_no: 0, line });
    lines.into_iter().map(log).collect()
}

/// Failed attempts with their answers. Not in the list above, whose hash is pinned.
pub(super) fn refused() -> Vec<Event> {
    let answer = Some(Arc::new(json!({"text": "a \"b\"\n", "outputs": {"z": 1, "a": null}})));
    let ending = Box::new(Ending { answer: answer.clone(), ..*ending() });
    let failure = Some((text("timeout"), text("too long")));
    let skip =
        Skip { error: failure, answer: answer.clone(), ..Skip::new(SkipCause::Failure, "x") };
    let retried = Retried {
        attempt: 1,
        cause: text("contract_violated"),
        message: text("does not fit"),
        delay_ms: 0,
        reask: false,
        usage: Usage::default(),
        answer: answer.clone(),
        session: some("s1"),
    };
    let request = ApprovalRequested { answer, ..approval_requested() };
    let events = [
        StepEvent::Retried(Box::new(retried)),
        StepEvent::Failed(ending.clone()),
        StepEvent::TimedOut(ending),
        StepEvent::Skipped(skip),
        StepEvent::ApprovalRequested(Box::new(request)),
    ];
    events.into_iter().map(|event| Event::Step(StepAt::whole(0), event)).collect()
}

fn bare_ends() -> Vec<StepEvent> {
    let completed = Completed {
        outcome: Arc::default(),
        attempts: 1,
        duration_ms: 0,
        usage: Usage::default(),
        coercions: Vec::new(),
        session: None,
        conversation: Vec::new(),
        artefacts: Vec::new(),
        carried: None,
    };
    let ending = Ending {
        code: text(""),
        message: text(""),
        violations: Arc::default(),
        attempts: 1,
        usage: Usage::default(),
        answer: None,
    };
    let provenance = Provenance {
        source_run: None,
        source_node: text(""),
        source_output_path: text(""),
        target_input_path: text(""),
        transform: None,
    };
    let request = ApprovalRequested {
        approval: APPROVAL,
        source: ApprovalSource::Step,
        summary: text(""),
        approvers: Vec::new(),
        expires_at_ms: 0,
        error: None,
        prepared: None,
        usage: Usage::default(),
        answer: None,
        groups: Vec::new(),
        quorum: 1,
        not_initiator: false,
        reminders: None,
        action: None,
    };
    let resolution = Resolution::Expired;
    let resolved = ApprovalResolved::new(APPROVAL, resolution);
    let skip = Skip::new(SkipCause::Decision, "");
    vec![
        StepEvent::Completed(Box::new(completed)),
        StepEvent::Failed(Box::new(ending.clone())),
        StepEvent::TimedOut(Box::new(ending)),
        StepEvent::Cancelled { code: text(""), reason: text(""), usage: Usage::default() },
        StepEvent::Skipped(skip),
        StepEvent::Blocked { code: text(""), message: text(""), placeholder: None, waits: false },
        StepEvent::Invalidated,
        StepEvent::Provenance(Box::new(provenance)),
        StepEvent::Endorsed(Box::new(Endorsed {
            output: text("n"),
            origins: Vec::new(),
            approval: None,
        })),
        StepEvent::ModerationFlagged { phase: ModerationPhase::Output, decision: Value::Null },
        StepEvent::ContractViolated { phase: ContractSide::Instructions, errors: Arc::default() },
        StepEvent::GovernanceDecided(Record::new("{}")),
        StepEvent::ApprovalRequested(Box::new(request)),
        StepEvent::ApprovalReminded { approval: APPROVAL, level: text("") },
        StepEvent::ApprovalResolved(Box::new(resolved)),
    ]
}
