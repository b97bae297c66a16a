//! The words of enumerations in rows.

use crate::choice::Choice;
use crate::code::Code;
use crate::contract::url::is_url;
use crate::diagnostic::Problem;
use crate::doc::read::{DocumentReader, Read};
use crate::doc::schema::Defs;
use crate::node::Node;
use serde_json::Value;
use sluice_govern::registry::{
    AgentStatus, Missed, Overlap, Period, Phase, PolicySet, Posture, Scope, SessionMode,
};

impl Choice for AgentStatus {
    const WHAT: &'static str = "a status of an agent";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("idle", AgentStatus::Idle),
        ("running", AgentStatus::Running),
        ("paused", AgentStatus::Paused),
        ("terminated", AgentStatus::Terminated),
        ("error", AgentStatus::Error),
        ("deprecated", AgentStatus::Deprecated),
    ];
}

impl Choice for SessionMode {
    const WHAT: &'static str = "a use of sessions";
    const WORDS: &'static [(&'static str, Self)] =
        &[("new", SessionMode::New), ("continue", SessionMode::Continue)];
}

impl Choice for Phase {
    const WHAT: &'static str = "a phase of an agent";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("poc", Phase::Poc),
        ("staging", Phase::Staging),
        ("production", Phase::Production),
        ("sunset", Phase::Sunset),
    ];
}

impl Choice for Overlap {
    const WHAT: &'static str = "a policy for overlapping runs";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("skip", Overlap::Skip),
        ("queue", Overlap::Queue),
        ("cancel_previous", Overlap::CancelPrevious),
    ];
}

impl Choice for Missed {
    const WHAT: &'static str = "a policy for missed slots";
    const WORDS: &'static [(&'static str, Self)] =
        &[("skip", Missed::Skip), ("run_once", Missed::RunOnce), ("backfill", Missed::Backfill)];
}

impl Choice for Posture {
    const WHAT: &'static str = "a posture";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("bounded_autonomous", Posture::BoundedAutonomous),
        ("approval_required", Posture::ApprovalRequired),
        ("retrieval", Posture::Retrieval),
        ("advisory", Posture::Advisory),
    ];
}

impl Choice for Scope {
    const WHAT: &'static str = "a scope of a budget";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("global", Scope::Global),
        ("gateway", Scope::Gateway),
        ("agent", Scope::Agent),
        ("workflow", Scope::Workflow),
        ("run", Scope::Run),
    ];
}

impl Choice for Period {
    const WHAT: &'static str = "a period of a budget";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("daily", Period::Daily),
        ("weekly", Period::Weekly),
        ("monthly", Period::Monthly),
        ("total", Period::Total),
    ];
}

impl Choice for PolicySet {
    const WHAT: &'static str = "a set of policies";
    const WORDS: &'static [(&'static str, Self)] =
        &[("active", PolicySet::Active), ("shadow", PolicySet::Shadow)];
}

/// Where an agent's steps are executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExecutionTarget;

impl Choice for ExecutionTarget {
    const WHAT: &'static str = "an execution target";
    const WORDS: &'static [(&'static str, Self)] =
        &[("native", ExecutionTarget), ("cloud", ExecutionTarget)];
}

/// The URL of a gateway.
#[derive(Debug, Clone)]
pub(crate) struct GatewayUrl;

impl Read for GatewayUrl {
    fn read<'n>(node: &'n Node<'n>, cx: &mut DocumentReader<'n, '_>) -> Option<GatewayUrl> {
        let text = cx.text(node)?;
        if is_url(text) {
            return Some(GatewayUrl);
        }
        let message = format!("`{}` is not a valid URL", crate::visible::shorten(text));
        let problem = Problem::new(Code::BadValue, node.span, message);
        cx.add(problem.with_hint("write it like `https://gateway.example:8443`"));
        None
    }

    fn schema(_: &mut Defs) -> Value {
        serde_json::json!({ "type": "string", "format": "uri" })
    }
}
