//! The `team` of a document, whose members share its steps.
//!
//! Every policy has an effect, and a policy without one is an error: rules that are written
//! down but not followed are worse than no rules.

mod named;

pub(crate) use named::{TeamField, TeamRow, named};

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::{Millis, WholeNumber};
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, document};
use crate::doc::shared::RetryDoc;
use crate::limits::TEAM_MEMBERS_MAX;
use crate::plan::policy::{FailureMode, OnFailure, QueueOrder};
use crate::plan::step::{Approval, Retry};
use crate::plan::{APPROVAL_POLICY, Member, QUEUE_POLICY, RETRY_POLICY, Team};
use crate::span::Spanned;
use indexmap::IndexMap;
use serde_json::{Value, json};

document! {
    /// The members that share the steps, and their common policies.
    pub(crate) struct TeamDoc {
        /// The members that execute steps; a step that fits no member waits for a
        /// person.
        required "members" members: Vec<MemberDoc>,
        /// What a failed branch does to other branches.
        optional "failure_policy" failure_policy: FailurePolicyDoc,
        /// The order in which ready steps start.
        optional "queue_policy" queue_policy: QueuePolicyDoc,
        /// When a member's steps need an approval.
        optional "approval_policy" approval_policy: ApprovalPolicyDoc,
        /// The `retry` of every step without a retry policy of its own.
        optional "retry_policy" retry_policy: RetryDoc,
    }
}

document! {
    /// The order in which ready steps start.
    pub(crate) struct QueuePolicyDoc {
        /// `id` (default), or `lane`: by the lane of the step's member, then by id.
        optional "order" order: QueueOrder,
    }
}

document! {
    /// When a member's steps need an approval.
    pub(crate) struct ApprovalPolicyDoc {
        /// Whether every step of a member needs an approval (false), not only those
        /// with `requires_approval`.
        optional "required" required: bool,
        /// Users or roles that may decide.
        optional "approvers" approvers: Vec<String>,
        /// The number of approvals required (1).
        optional "quorum" quorum: WholeNumber<1, 100>,
        /// Whether the initiator of the run is excluded from deciding.
        optional "not_initiator" not_initiator: bool,
        /// How long the approval request stays open.
        optional "expires_in" expires_in: Millis,
        /// Whether an approval also covers retries.
        optional "covers_retries" covers_retries: bool,
    }
}

document! {
    /// What a failed branch does to other branches.
    pub(crate) struct FailurePolicyDoc {
        /// `isolate` (default) or `halt`.
        optional "mode" mode: FailureMode,
    }
}

document! {
    /// One member of a team.
    pub(crate) struct MemberDoc {
        /// Unique in the team.
        required "id" id: Spanned<String>,
        /// The agent that executes the steps.
        optional "agent" agent: String,
        /// Its role in the team.
        optional "role" role: String,
        /// Members with a lower lane come first (0).
        optional "lane" lane: i64,
        /// Order within a lane (0).
        optional "sort_order" sort_order: i64,
        /// Whether it executes steps (true).
        optional "is_active" is_active: bool,
        /// The tools it may use.
        optional "tool_profile" tool_profile: ToolProfileDoc,
        /// The tier of work its model supports.
        optional "model_profile" model_profile: ModelProfileDoc,
        /// Its personality.
        optional "personality_profile" personality_profile: PersonalityDoc,
        /// The memory it loads.
        optional "memory_profile" memory_profile: String,
    }
}

document! {
    /// The tools a member may use.
    pub(crate) struct ToolProfileDoc {
        /// Tools it may use.
        optional "allow_tools" allow_tools: Vec<String>,
        /// Tools it may never use.
        optional "deny_tools" deny_tools: Vec<String>,
        /// Whether each of its nodes needs an approval.
        optional "requires_approval" requires_approval: bool,
    }
}

document! {
    /// The abilities of a member's model.
    pub(crate) struct ModelProfileDoc {
        /// The tier of work it supports.
        optional "support_level" support_level: String,
    }
}

document! {
    /// The personality of a member.
    pub(crate) struct PersonalityDoc {
        /// A text added to the system prompt.
        optional "system_prompt_patch" system_prompt_patch: String,
    }
}

impl TeamDoc {
    pub(crate) fn check(&self, cx: &mut DocumentReader<'_, '_>) {
        let count = self.members.as_ref().map_or(0, Vec::len);
        let first = self.members.iter().flatten().find_map(|member| member.id.as_ref());
        if let (true, Some(first)) = (count > TEAM_MEMBERS_MAX, first) {
            let message = format!("there are {count} members; the limit is {TEAM_MEMBERS_MAX}");
            let problem = Problem::new(Code::BadValue, first.span, message);
            cx.within(PathPart::Key("members"), |cx| cx.add(problem));
        }
        let ids = self.members.iter().flatten().filter_map(|member| member.id.as_ref());
        cx.within(PathPart::Key("members"), |cx| names::unique("member", ids, cx));
    }

    pub(crate) fn into_team(self) -> Team {
        let mut policies = IndexMap::new();
        let mut keep = |name: &str, policy: Option<Value>| {
            policies.extend(policy.map(|policy| (name.to_owned(), policy)));
        };
        let order = self.queue_policy.map(|policy| policy.order.unwrap_or(QueueOrder::Id));
        keep(QUEUE_POLICY, order.map(|order| json!({ "order": order })));
        keep(APPROVAL_POLICY, self.approval_policy.map(ApprovalPolicyDoc::into_value));
        keep(RETRY_POLICY, self.retry_policy.map(|retry| json!(Retry::from(retry))));
        Team {
            members: self.members.into_iter().flatten().map(MemberDoc::into_member).collect(),
            failure_mode: self
                .failure_policy
                .and_then(|policy| policy.mode)
                .unwrap_or(FailureMode::Isolate),
            policies,
        }
    }
}

impl ApprovalPolicyDoc {
    fn into_value(self) -> Value {
        let approval = Approval {
            approvers: self.approvers.unwrap_or_default(),
            covers_retries: self.covers_retries.unwrap_or(false),
            expires_in_ms: self.expires_in.map(|time| time.0),
            not_initiator: self.not_initiator.unwrap_or(false),
            quorum: self.quorum.map_or(1, WholeNumber::small),
            summary: None,
        };
        let mut value = json!(approval);
        value["required"] = self.required.unwrap_or(false).into();
        value
    }
}

/// What a failure does to the run if a step does not say so: the team's policy, else the
/// default of the format.
pub(crate) fn on_failure(
    written: Option<OnFailure>,
    team: Option<&Team>,
    otherwise: Option<OnFailure>,
) -> Option<OnFailure> {
    let shared = |team: &Team| match team.failure_mode {
        FailureMode::Isolate => None,
        FailureMode::Halt => Some(OnFailure::Halt),
    };
    match (written, team) {
        (Some(written), _) => Some(written),
        (None, Some(team)) => shared(team),
        (None, None) => otherwise,
    }
}

/// The retry policy of a step: its own, else that of its team. An `on_failure` that retries is
/// a policy of its own.
pub(crate) fn retry(
    written: Option<RetryDoc>,
    on_failure: Option<OnFailure>,
    team: Option<&Team>,
) -> Retry {
    let shared = || {
        let tries = on_failure.is_some_and(OnFailure::retries);
        team.filter(|_| !tries).and_then(Team::retry)
    };
    written.map(Retry::from).or_else(shared).unwrap_or_default()
}

impl MemberDoc {
    fn into_member(self) -> Member {
        let tools = self.tool_profile.unwrap_or_default();
        Member {
            id: self.id.map(|id| id.value).unwrap_or_default(),
            agent: self.agent,
            role: self.role,
            lane: self.lane.unwrap_or(0),
            sort_order: self.sort_order.unwrap_or(0),
            is_active: self.is_active.unwrap_or(true),
            allow_tools: tools.allow_tools.unwrap_or_default(),
            deny_tools: tools.deny_tools.unwrap_or_default(),
            requires_approval: tools.requires_approval.unwrap_or(false),
            support_level: self.model_profile.and_then(|profile| profile.support_level),
            system_prompt_patch: self.personality_profile.and_then(|p| p.system_prompt_patch),
            memory_profile: self.memory_profile,
        }
    }
}
