//! Random events of every type.

use super::{AT_MS, VERSION_1, encode, plan};
use crate::choice::Choice;
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
use crate::violation::{Reason, Violation};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Map, Value};
use sluice_govern::catalog::AnswerFields;
use sluice_govern::decision::Constraints;
use sluice_govern::facts::SeenIn;
use sluice_govern::registry::{Posture, Price};
use std::sync::Arc;

pub(super) fn event() -> BoxedStrategy<Event> {
    prop_oneof![
        1 => run_event(),
        2 => (step_at(), prop_oneof![work(), end(), gate()])
            .prop_map(|(at, event)| Event::Step(at, event)),
    ]
    .boxed()
}

/// What a tool answered, if its adapter reported it.
fn content() -> impl Strategy<Value = Option<ToolContent>> {
    let object = option::of(btree_map(text(), text(), 0..3).prop_map(|map| serde_json::json!(map)));
    option::of(
        (option::of(text()), object, any::<bool>())
            .prop_map(|(text, structured, cut)| ToolContent { text, structured, cut }),
    )
}

/// A frame with some of its bytes changed, or cut short, or just bytes.
pub(super) fn spoilt() -> BoxedStrategy<Vec<u8>> {
    let frame = prop_oneof![
        vec(event(), 1..4).prop_map(|events| encode(&events, AT_MS, &plan()).body),
        Just(VERSION_1.as_bytes().to_vec()),
    ];
    let changes =
        vec((any::<Index>(), prop_oneof![any::<u8>(), select(b"{}[]\",:019-e\\".to_vec())]), 0..4);
    let changed =
        (frame, changes, option::of(any::<Index>())).prop_map(|(mut body, changes, cut)| {
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            body.truncate(cut.map_or(body.len(), |cut| cut.index(body.len())));
            body
        });
    prop_oneof![4 => changed, 1 => vec(any::<u8>(), 0..64)].boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), "\\PC{0,8}", any::<String>()].boxed()
}

fn maybe() -> BoxedStrategy<Option<String>> {
    option::of(text()).boxed()
}

fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
    .boxed()
}

fn map() -> BoxedStrategy<Map<String, Value>> {
    vec((text(), value()), 0..4).prop_map(|pairs| pairs.into_iter().collect()).boxed()
}

fn word<T: Choice + std::fmt::Debug>() -> BoxedStrategy<T> {
    select(T::WORDS.iter().map(|(_, choice)| *choice).collect::<Vec<_>>()).boxed()
}

fn run() -> BoxedStrategy<RunId> {
    any::<u128>().prop_map(RunId).boxed()
}

fn hash() -> BoxedStrategy<Hash> {
    any::<[u8; 32]>().prop_map(Hash).boxed()
}

fn step_at() -> BoxedStrategy<StepAt> {
    (0u32..3, option::of(any::<u32>())).prop_map(|(step, item)| StepAt { step, item }).boxed()
}

fn usage() -> BoxedStrategy<Usage> {
    let tokens = || prop_oneof![Just(0), any::<u64>()];
    (maybe(), tokens(), tokens(), (tokens(), tokens()), tokens(), any::<bool>())
        .prop_map(|(model, i, o, (t, k), cost, unknown)| Usage {
            model,
            input_tokens: i,
            output_tokens: o,
            thinking_tokens: t,
            cached_tokens: k,
            unpriced: false,
            cost: Money::from_micro_cents(cost),
            unknown,
        })
        .boxed()
}

fn money() -> BoxedStrategy<Money> {
    prop_oneof![Just(0), any::<u64>()].prop_map(Money::from_micro_cents).boxed()
}

fn constraints() -> BoxedStrategy<Constraints> {
    let tools = (option::of(vec(text(), 0..3)), vec(text(), 0..3));
    let bounds = (maybe(), option::of(money()), option::of(any::<u64>()));
    (vec(text(), 0..3), tools, bounds)
        .prop_map(|(environments, (tools_allow, tools_deny), bounds)| {
            let (data_access, max_cost, max_output_tokens) = bounds;
            Constraints {
                environments,
                tools_allow,
                tools_deny,
                data_access,
                max_cost,
                max_output_tokens,
            }
        })
        .boxed()
}

fn terms() -> BoxedStrategy<Terms> {
    let account = (text(), money()).prop_map(|(name, cap)| Account { name: name.into(), cap });
    let taken = (maybe(), money(), vec(account, 0..3), vec(history_taken(), 0..3));
    let price = (money(), money(), option::of(money())).prop_map(|(read, written, kept)| Price {
        input_cents_per_mtok: read,
        output_cents_per_mtok: written,
        cached_input_cents_per_mtok: kept,
        max_output_tokens: None,
    });
    let model = (maybe(), option::of(any::<u64>()), option::of(price));
    (taken, constraints(), model)
        .prop_map(|((slot, reserved, accounts, history), constraints, model)| Terms {
            slot,
            reserved,
            accounts,
            constraints,
            model: model.0,
            max_output_tokens: model.1,
            price: model.2,
            history,
        })
        .boxed()
}

fn history_taken() -> BoxedStrategy<HistoryTaken> {
    let amounts = any::<(i64, u64)>();
    (text(), amounts)
        .prop_map(|(counter, (amount, window_ms))| HistoryTaken {
            counter: counter.into(),
            amount,
            window_ms,
        })
        .boxed()
}

fn call_record() -> BoxedStrategy<CallRecord> {
    let numbers = btree_map(text(), any::<i64>(), 0..3);
    (vec(text(), 0..3), numbers, option::of(any::<i64>()), vec(history_taken(), 0..2))
        .prop_map(|(labels, numbers, amount, taken)| CallRecord {
            labels: labels.into_iter().map(Into::into).collect(),
            numbers,
            amount,
            taken,
        })
        .boxed()
}

fn ruling() -> BoxedStrategy<Ruling> {
    let approval = || any::<u128>().prop_map(ApprovalId);
    prop_oneof![
        option::of(approval()).prop_map(Ruling::Allowed),
        text().prop_map(Ruling::Denied),
        approval().prop_map(Ruling::Held),
    ]
    .boxed()
}

fn labels() -> BoxedStrategy<Labels> {
    let all: Vec<SourceClass> = SourceClass::WORDS.iter().map(|(_, class)| *class).collect();
    let classes = subsequence(all.clone(), 0..=all.len());
    (classes, any::<bool>(), any::<bool>(), option::of(any::<u64>()), flow())
        .prop_map(|(classes, untrusted, private, since_ms, flow)| {
            let mut labels: Labels = classes.into_iter().collect();
            (labels.untrusted, labels.private, labels.since_ms) = (untrusted, private, since_ms);
            labels.flow = flow;
            labels
        })
        .boxed()
}

fn flow() -> BoxedStrategy<FlowLabels> {
    let names = |all: &'static [&'static str]| subsequence(all.to_vec(), 0..=all.len());
    let origins = names(&["caller", "unknown", "operator", "web"]);
    (origins, names(&["customer", "payroll"]), any::<bool>())
        .prop_map(|(origins, secrecy, control)| {
            let mut flow = FlowLabels::of(origins, secrecy);
            if control {
                flow.join(&FlowLabels::controlled());
            }
            flow
        })
        .boxed()
}

fn fields() -> BoxedStrategy<FieldLabels> {
    vec((text(), flow()), 0..3).prop_map(|fields| fields.into_iter().collect()).boxed()
}

fn prepared() -> BoxedStrategy<Option<Arc<Prepared>>> {
    let layer =
        (1..=9u8, text(), text()).prop_map(|(number, source, text)| Layer { number, source, text });
    let layers = vec(layer, 0..3);
    let env = vec((text(), text()), 0..3);
    let prepared = (map(), text(), maybe(), env, (labels(), fields()), layers).prop_map(
        |(inputs, prompt, stdin, env, (labels, field_labels), layers)| {
            Arc::new(Prepared { inputs, prompt, stdin, env, labels, field_labels, layers })
        },
    );
    option::of(prepared).boxed()
}

fn violations() -> BoxedStrategy<Arc<Vec<Violation>>> {
    let one = (text(), word::<Reason>(), text()).prop_map(|(field, reason, message)| Violation {
        field,
        reason,
        message,
    });
    vec(one, 0..3).prop_map(Arc::new).boxed()
}

fn error() -> BoxedStrategy<Option<(String, String)>> {
    option::of((text(), text())).boxed()
}

fn run_started() -> BoxedStrategy<RunStarted> {
    let origin =
        (text(), run(), any::<u64>()).prop_map(|(kind, run, event)| Origin { kind, run, event });
    let sources = word::<DocumentSource>();
    let definition = ((text(), sources), option::of(any::<u64>()), text(), option::of(hash()));
    let given = (btree_map(text(), hash(), 0..3), map(), btree_map(text(), text(), 0..3));
    let about = (maybe(), text(), (text(), vec(text(), 0..3)), (text(), text(), maybe()));
    let above = (
        option::of((run(), text()).prop_map(|(run, step)| ParentStep { run, step })),
        option::of(run()),
        any::<u32>(),
        option::of(origin),
    );
    let postures = vec![Posture::BoundedAutonomous, Posture::ApprovalRequired, Posture::Advisory];
    let governed = (
        (maybe(), select(postures), option::of(any::<u8>())),
        (maybe(), maybe(), option::of(any::<u32>())),
        btree_map(text(), text(), 0..3),
        vec((run(), money()), 0..3),
        (
            (btree_map(text(), value(), 0..3), labels(), fields()),
            btree_map(text(), vec(select(vec![SeenIn::Prompt, SeenIn::Nowhere]), 0..3), 0..3),
        ),
    );
    (definition, given, about, above, governed)
        .prop_map(|(definition, given, about, above, governed)| {
            let ((deployment, posture, trust_ceiling), asked, pins, caps, passed) = governed;
            let ((agreed, labels, field_labels), args_seen) = passed;
            let (default_model, fallback_model, recursion_depth_max) = asked;
            let ((workflow, source), version, definition_hash, definition) = definition;
            let (children, args, role_bindings) = given;
            let (default_agent, gateway, (initiator, on_behalf_of), traced) = about;
            let (trace_id, root_span_id, parent_span_id) = traced;
            let (parent, root, depth, origin) = above;
            RunStarted {
                workflow,
                version,
                source,
                definition_hash,
                definition,
                children,
                args: Arc::new(args),
                role_bindings,
                default_agent,
                default_model,
                fallback_model,
                recursion_depth_max,
                gateway,
                initiator,
                on_behalf_of,
                trace_id,
                root_span_id,
                parent_span_id,
                parent,
                root,
                depth,
                origin,
                deployment,
                posture,
                trust_ceiling,
                pins,
                caps,
                agreed,
                passed: PassedLabels { labels, field_labels },
                args_seen,
            }
        })
        .boxed()
}

fn run_event() -> BoxedStrategy<Event> {
    prop_oneof![
        run_started().prop_map(|started| Event::RunStarted(Box::new(started))),
        (word(), text(), maybe()).prop_map(|(status, reason, by)| Event::RunStatusChanged {
            status,
            reason,
            by
        }),
        value().prop_map(|outputs| Event::RunCompleted { outputs: Arc::new(outputs) }),
        (text(), text()).prop_map(|(code, message)| Event::RunFailed { code, message }),
        text().prop_map(|reason| Event::RunCancelled { reason }),
        any::<u64>().prop_map(|timeout_ms| Event::RunTimedOut { timeout_ms }),
        Just(Event::RunRecovered),
        map().prop_map(|figures| Event::BudgetAlert(BudgetFigures(figures))),
    ]
    .boxed()
}

fn dispatch() -> BoxedStrategy<Dispatch> {
    let path = prop_oneof![
        Just(Path::Edge),
        Just(Path::Bridge),
        run().prop_map(Path::Child),
        Just(Path::FanOut),
    ];
    let counts = any::<(u32, u32, u32)>();
    let governed = (maybe(), terms(), maybe());
    (counts, maybe(), text(), path, option::of(any::<u64>()), prepared(), governed)
        .prop_map(|(counts, agent, gateway, path, deadline_ms, prepared, governed)| {
            let (attempt, dispatch_no, wave) = counts;
            let (digest, terms, session) = governed;
            let terms = Arc::new(terms);
            Dispatch {
                attempt,
                dispatch_no,
                wave,
                agent,
                gateway,
                path,
                deadline_ms,
                prepared,
                digest,
                terms,
                session,
            }
        })
        .boxed()
}

fn work() -> BoxedStrategy<StepEvent> {
    let wait = (word(), any::<(u32, u64, u64)>(), maybe(), maybe(), maybe()).prop_map(
        |(reason, (attempt, delay_ms, until_ms), cause, code, hint)| Wait {
            reason,
            attempt,
            cause,
            delay_ms,
            until_ms,
            code,
            hint,
        },
    );
    let part = prop_oneof![
        text().prop_map(DeltaPart::Text),
        (text(), text()).prop_map(|(url, mime)| DeltaPart::Media { url, mime }),
    ];
    let delta =
        (any::<(u64, u32, u32)>(), part).prop_map(|((index, attempt, dispatch_no), part)| Delta {
            index,
            attempt,
            dispatch_no,
            part,
        });
    let line = prop_oneof![
        text().prop_map(LogLine::Text),
        (any::<u32>(), text())
            .prop_map(|(group, started)| LogLine::Process(Process { group, started })),
        (text(), text(), text(), value(), (ruling(), flow()), call_record()).prop_map(
            |(id, tool, digest, input, (ruling, flow), record)| {
                let labels = match ruling {
                    Ruling::Allowed(_) => flow,
                    Ruling::Denied(_) | Ruling::Held(_) => FlowLabels::default(),
                };
                LogLine::Tool(Box::new(ToolRequest {
                    id,
                    tool,
                    input,
                    digest,
                    ruling,
                    labels,
                    record,
                }))
            }
        ),
        (text(), text(), any::<(bool, u64, u64)>(), content(), vec(text(), 0..3)).prop_map(
            |(id, tool, (failed, bytes, duration_ms), content, names)| {
                let ended = ToolEnded { id, tool, failed, bytes, duration_ms, content };
                LogLine::ToolEnded(Arc::new(EndedCall {
                    ended,
                    fields: AnswerFields {
                        records: names.clone(),
                        private: names.clone(),
                        lists: names.clone(),
                    },
                }))
            }
        ),
        (text(), prepared())
            .prop_map(|(digest, prepared)| LogLine::ModerationAsked { digest, prepared }),
        (any::<bool>(), text()).prop_map(|(out, digest)| {
            let phase = if out { ModerationPhase::Output } else { ModerationPhase::Input };
            LogLine::ModerationCleared { phase, digest }
        }),
        (run(), any::<(bool, u64)>()).prop_map(|(child, (paused, at_ms))| {
            let pace = if paused { ChildPace::Paused } else { ChildPace::Resumed };
            LogLine::Child { child, pace, at_ms }
        }),
    ];
    let said = (answer(), maybe());
    let retried = (any::<(u32, u64, bool)>(), text(), text(), usage(), said).prop_map(
        |((attempt, delay_ms, reask), cause, message, usage, (answer, session))| Retried {
            attempt,
            cause,
            message,
            delay_ms,
            reask,
            usage,
            answer,
            session,
        },
    );
    prop_oneof![
        option::of(vec(value(), 0..3))
            .prop_map(|items| StepEvent::Queued { items: items.map(Arc::new) }),
        wait.prop_map(|wait| StepEvent::Waiting(Box::new(wait))),
        dispatch().prop_map(|dispatch| StepEvent::Started(Box::new(dispatch))),
        delta.prop_map(|delta| StepEvent::Delta(Box::new(delta))),
        (any::<u32>(), line).prop_map(|(dispatch_no, line)| StepEvent::Log { dispatch_no, line }),
        retried.prop_map(|retried| StepEvent::Retried(Box::new(retried))),
    ]
    .boxed()
}

/// A refused answer; null means no answer.
fn answer() -> BoxedStrategy<Option<Arc<Value>>> {
    option::of(
        value()
            .prop_filter("null stands for no answer", |value| !value.is_null())
            .prop_map(Arc::new),
    )
    .boxed()
}

fn outcome() -> BoxedStrategy<StepOutcome> {
    let part = || option::of(value());
    let envelope = (maybe(), maybe(), value(), part(), part(), part()).prop_map(
        |(kind, artifact_kind, output, data, media, metadata)| Envelope {
            kind,
            artifact_kind,
            output,
            data,
            media,
            metadata,
        },
    );
    (value(), maybe(), option::of(envelope), labels(), fields())
        .prop_map(|(outputs, stdout, envelope, labels, field_labels)| match envelope {
            Some(envelope) => {
                StepOutcome { field_labels, ..StepOutcome::from_envelope(envelope, labels) }
            }
            None => StepOutcome { outputs, stdout, envelope: None, labels, field_labels },
        })
        .boxed()
}

fn completed() -> BoxedStrategy<Completed> {
    let from = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let coercion = (text(), from, word::<FieldType>()).prop_map(|(field, from, to)| Coercion {
        field,
        from,
        to,
    });
    let rest = (vec(coercion, 0..3), maybe(), option::of(run()));
    (outcome(), any::<(u32, u64)>(), usage(), rest)
        .prop_map(|(outcome, (attempts, duration_ms), usage, (coercions, session, carried))| {
            Completed {
                outcome: Arc::new(outcome),
                attempts,
                duration_ms,
                usage,
                coercions,
                session,
                conversation: Vec::new(),
                artefacts: Vec::new(),
                carried,
            }
        })
        .boxed()
}

fn end() -> BoxedStrategy<StepEvent> {
    let ending = || {
        (text(), text(), violations(), any::<u32>(), usage(), answer()).prop_map(
            |(code, message, violations, attempts, usage, answer)| {
                Box::new(Ending { code, message, violations, attempts, usage, answer })
            },
        )
    };
    let cost = (usage(), answer());
    let whence = (option::of(run()), any::<bool>());
    let skip = (word::<SkipCause>(), text(), error(), violations(), cost, whence).prop_map(
        |(cause, reason, error, violations, (usage, answer), (carried, control))| Skip {
            cause,
            reason,
            error,
            violations,
            usage,
            answer,
            carried,
            control,
        },
    );
    prop_oneof![
        completed().prop_map(|completed| StepEvent::Completed(Box::new(completed))),
        ending().prop_map(StepEvent::Failed),
        ending().prop_map(StepEvent::TimedOut),
        (text(), text(), usage()).prop_map(|(code, reason, usage)| StepEvent::Cancelled {
            code,
            reason,
            usage
        }),
        skip.prop_map(StepEvent::Skipped),
        (text(), text(), maybe(), any::<bool>()).prop_map(|(code, message, placeholder, waits)| {
            StepEvent::Blocked { code, message, placeholder, waits }
        }),
        Just(StepEvent::Invalidated),
    ]
    .boxed()
}

fn gate() -> BoxedStrategy<StepEvent> {
    let provenance = (option::of(run()), text(), text(), text(), maybe()).prop_map(
        |(source_run, source_node, source_output_path, target_input_path, transform)| Provenance {
            source_run,
            source_node,
            source_output_path,
            target_input_path,
            transform,
        },
    );
    prop_oneof![
        provenance.prop_map(|provenance| StepEvent::Provenance(Box::new(provenance))),
        (text(), vec(text(), 0..3), option::of(any::<u128>())).prop_map(
            |(output, origins, approval)| {
                let approval = approval.map(ApprovalId);
                StepEvent::Endorsed(Box::new(Endorsed { output, origins, approval }))
            }
        ),
        (word(), value())
            .prop_map(|(phase, decision)| StepEvent::ModerationFlagged { phase, decision }),
        (word(), violations())
            .prop_map(|(phase, errors)| StepEvent::ContractViolated { phase, errors }),
        map().prop_map(|mut decided| {
            // The envelope has these fields.
            decided.shift_remove("runId");
            decided.shift_remove("nodeId");
            let text = Value::Object(decided).to_string();
            StepEvent::GovernanceDecided(Record::new(text))
        }),
        approval_requested().prop_map(|request| StepEvent::ApprovalRequested(Box::new(request))),
        (any::<u128>(), text()).prop_map(|(id, level)| StepEvent::ApprovalReminded {
            approval: ApprovalId(id),
            level
        }),
        approval_resolved().prop_map(|resolved| StepEvent::ApprovalResolved(Box::new(resolved))),
        (any::<u32>(), usage())
            .prop_map(|(dispatch_no, usage)| StepEvent::Reconciled { dispatch_no, usage }),
    ]
    .boxed()
}

fn approval_requested() -> BoxedStrategy<ApprovalRequested> {
    let asked = (text(), vec(text(), 0..3), any::<u64>());
    let reminders = option::of(vec(any::<(u64, String)>(), 0..3));
    let who = (vec(vec(text(), 0..3), 0..3), 1u32..9, any::<bool>(), reminders);
    let change = (text(), value(), value()).prop_map(|(path, before, after)| ChangedValue {
        path,
        before,
        after,
    });
    let seen = || vec(select(vec![SeenIn::Prompt, SeenIn::Stranger]), 0..2);
    let argument = (text(), seen(), seen(), seen()).prop_map(|(path, seen, mentions, carries)| {
        ShownArgument { path, seen, mentions, carries }
    });
    let call = (vec(argument, 0..3), maybe());
    let action = (value(), text(), vec(text(), 0..3), vec(change, 0..3), call).prop_map(
        |(action, digest, reasons, changes, (arguments, asked_for))| {
            let subject =
                ApprovalSubject { action, digest, reasons, changes, arguments, asked_for };
            Arc::new(subject)
        },
    );
    let bound = (who, option::of(action));
    let cost = (usage(), answer());
    (any::<u128>(), word::<ApprovalSource>(), asked, error(), prepared(), cost, bound)
        .prop_map(|(id, source, asked, error, prepared, (usage, answer), (who, action))| {
            let (summary, approvers, expires_at_ms) = asked;
            let (groups, quorum, not_initiator, reminders) = who;
            ApprovalRequested {
                approval: ApprovalId(id),
                source,
                summary,
                approvers,
                expires_at_ms,
                error,
                prepared,
                usage,
                answer,
                groups,
                quorum,
                not_initiator,
                reminders,
                action,
            }
        })
        .boxed()
}

fn approval_resolved() -> BoxedStrategy<ApprovalResolved> {
    let how = (
        vec(text(), 0..3),
        option::of(
            (constraints(), text())
                .prop_map(|(constraints, digest)| Tightened { constraints, digest }),
        ),
    );
    (any::<u128>(), word::<Resolution>(), maybe(), maybe(), how)
        .prop_map(|(id, resolution, by, comment, (roles, tightened))| ApprovalResolved {
            approval: ApprovalId(id),
            resolution,
            by,
            comment,
            roles,
            tightened,
        })
        .boxed()
}
