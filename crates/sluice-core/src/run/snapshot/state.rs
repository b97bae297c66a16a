//! The parts of a run's state, each field under a short key.

use super::part::{Own, Part, Ref, parts, worded};
use crate::choice::{Choice as _, find};
use crate::contract::envelope::Envelope;
use crate::journal::event::{
    Account, ApprovalSource, Asked, Change, DocumentSource, Ending, Origin, Outcome, Path,
    Prepared, Resolution, Ruling, RunStarted, Skip, SkipCause, StepAt, Terms, Whom,
};
use crate::layers::Layer;
use crate::money::Money;
use crate::port::adapter::{Process, Usage};
use crate::port::store::Hash;
use crate::run::id::{ApprovalId, RunId};
use crate::run::label::{Labels, SourceClass};
use crate::run::state::{
    Approval, End, FanOut, GateWait, Grant, Open, Past, Pause, RunClock, Source, StepState,
    ToolCall,
};
use crate::run::status::{RunStatus, StepStatus, Waiting};
use crate::violation::{Reason, Violation};
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use serde_json::Value;
use sluice_govern::registry::Posture;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

parts! {
    StepState {
        status = "s",
        waiting = "w",
        generation = "g",
        attempt = "n",
        reasks = "rn",
        reask = "r",
        dispatch_no = "d",
        path = "at",
        agent = "a",
        gateway = "gw",
        prepared = "p",
        outcome = "o",
        ending = "e",
        skip = "sk",
        placeholder = "ph",
        block_waits = "bw",
        assigned = "as",
        wake_at_ms = "tw",
        deadline_ms = "td",
        left_ms = "tl",
        approval = "ap",
        grant = "gr",
        escalated = "es",
        started_at_ms = "ts",
        attempt_at_ms = "ta",
        first_byte_at_ms = "tf",
        ended_at_ms = "te",
        usage = "u",
        deltas = "dn",
        terms = "tm",
        digest = "dg",
        decided = "dc",
        gate = "ga",
        granted = "gt",
        asked = "ma",
        cleared = "mc",
        process = "pr",
        session = "se",
        continues = "sc",
        calls = "tc",
        used_tools = "tu",
        fan_out = "f",
        sources = "sr",
        past = "pa",
    }
    Source { run = "r", rows = "n", }
    Past { dispatch_no = "d", deltas = "dn", }
    Usage(Usage::default()) {
        model = "m",
        input_tokens = "i",
        output_tokens = "o",
        thinking_tokens = "t",
        cached_tokens = "k",
        cost = "c",
        unpriced = "p",
        unknown = "u",
    }
    Terms {
        slot = "s",
        reserved = "r",
        accounts = "a",
        constraints = "c",
        model = "m",
        max_output_tokens = "o",
        price = "p",
    }
    Account { name = "n", cap = "c", }
    ToolCall { tool = "t", digest = "d", input = "i", ruling = "r", }
    GateWait {
        since_ms = "t",
        tries = "n",
        code = "c",
        hint = "h",
        gateway = "g",
        active = "a",
    }
    Open { terms = "t", until_ms = "u", }
    Asked { action = "a", digest = "d", reasons = "r", changes = "c", }
    Change { path = "p", before = "b", after = "a", }
    Prepared {
        inputs = "i",
        prompt = "p",
        stdin = "in",
        env = "e",
        labels = "l",
        layers = "y",
    }
    Layer { number = "n", source = "s", text = "t", }
    Outcome { outputs = "o", stdout = "s", envelope = "e", labels = "l", }
    Envelope {
        kind = "k",
        artifact_kind = "a",
        output = "o",
        data = "d",
        media = "m",
        metadata = "x",
    }
    Ending {
        code = "c",
        message = "m",
        violations = "v",
        attempts = "n",
        usage = "u",
        answer = "a",
    }
    Violation { field = "f", reason = "r", message = "m", }
    Skip {
        cause = "c",
        reason = "r",
        error = "e",
        violations = "v",
        usage = "u",
        answer = "a",
        carried = "x",
    }
    Process { group = "g", started = "s", }
    Approval {
        at = "at",
        source = "source",
        summary = "summary",
        approvers = "approvers",
        resolution = "resolution",
        requested_at_ms = "requested_at",
        expires_at_ms = "expires_at",
        reminders = "reminders",
        by = "by",
        comment = "comment",
        resolved_at_ms = "resolved_at",
        groups = "groups",
        quorum = "quorum",
        not_initiator = "not_initiator",
        remind_at = "remind_at",
        action = "action",
        votes = "votes",
        tightened = "tightened",
    }
    End { outputs = "outputs", error = "error", }
    RunClock { used_ms = "used", since_ms = "since", }
    RunStarted {
        workflow = "workflow",
        version = "version",
        source = "source",
        definition_hash = "definition_hash",
        definition = "definition",
        children = "children",
        args = "args",
        role_bindings = "role_bindings",
        default_agent = "default_agent",
        default_model = "default_model",
        fallback_model = "fallback_model",
        recursion_depth_max = "recursion_depth_max",
        gateway = "gateway",
        initiator = "initiator",
        on_behalf_of = "on_behalf_of",
        trace_id = "trace_id",
        root_span_id = "root_span_id",
        parent_span_id = "parent_span_id",
        parent = "parent",
        root = "root",
        depth = "depth",
        origin = "origin",
        deployment = "deployment",
        posture = "posture",
        trust_ceiling = "trust_ceiling",
        pins = "pins",
        caps = "caps",
        agreed = "agreed",
    }
    Origin { kind = "kind", run = "run", event = "event", }
}

worded! {
    StepStatus: StepStatus::as_str, find, StepStatus::Pending;
    RunStatus: RunStatus::as_str, find;
    Waiting: Waiting::as_str, find;
    Pause: Pause::as_str, pause;
    Grant: grant_word, grant, Grant::None;
    Path: path_word, path;
    SkipCause: SkipCause::as_str, SkipCause::parse;
    ApprovalSource: ApprovalSource::as_str, ApprovalSource::parse;
    Resolution: Resolution::as_str, Resolution::parse;
    Posture: Posture::as_str, Posture::parse, Posture::default();
    DocumentSource: DocumentSource::as_str, DocumentSource::parse, DocumentSource::default();
    Reason: Reason::as_str, Reason::parse;
    RunId: |id: RunId| id.to_string(), RunId::parse;
    ApprovalId: |id: ApprovalId| id.to_string(), ApprovalId::parse;
    Hash: |hash: Hash| hash.to_string(), Hash::parse;
}

fn pause(word: &str) -> Option<Pause> {
    [Pause::Operator, Pause::Approval].into_iter().find(|pause| pause.as_str() == word)
}

const fn grant_word(grant: Grant) -> &'static str {
    match grant {
        Grant::None => "none",
        Grant::Attempt => "attempt",
        Grant::Retries => "retries",
    }
}

fn grant(word: &str) -> Option<Grant> {
    [Grant::None, Grant::Attempt, Grant::Retries].into_iter().find(|one| grant_word(*one) == word)
}

/// The word of a path; for a child run, its id.
fn path_word(path: Path) -> Cow<'static, str> {
    match path {
        Path::Edge => "edge".into(),
        Path::Bridge => "bridge".into(),
        Path::Sync => "bridge_sync".into(),
        Path::FanOut => "fan_out".into(),
        Path::Child(run) => run.to_string().into(),
    }
}

fn path(word: &str) -> Option<Path> {
    match word {
        "edge" => Some(Path::Edge),
        "bridge" => Some(Path::Bridge),
        "bridge_sync" => Some(Path::Sync),
        "fan_out" => Some(Path::FanOut),
        _ => RunId::parse(word).map(Path::Child),
    }
}

/// As `[word, what follows]`.
impl Part for Ruling {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rest = match self {
            Ruling::Allowed(approval) => approval.map(|id| id.to_string()),
            Ruling::Denied(reason) => Some(reason.clone()),
            Ruling::Held(approval) => Some(approval.to_string()),
        };
        (self.as_str(), rest).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ruling, D::Error> {
        let (word, rest) = <(String, Option<String>)>::deserialize(deserializer)?;
        let approval = rest.as_deref().and_then(ApprovalId::parse);
        match (word.as_str(), rest, approval) {
            ("allowed", _, approval) => Ok(Ruling::Allowed(approval)),
            ("denied", Some(reason), _) => Ok(Ruling::Denied(reason)),
            ("held", _, Some(approval)) => Ok(Ruling::Held(approval)),
            _ => Err(D::Error::custom("an unknown ruling")),
        }
    }
}

/// As `[step]` or `[step, item]`.
impl Part for StepAt {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(std::iter::once(self.step).chain(self.item))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StepAt, D::Error> {
        match Vec::<u32>::deserialize(deserializer)?[..] {
            [step] => Ok(StepAt::whole(step)),
            [step, item] => Ok(StepAt::instance(step, item)),
            _ => Err(D::Error::custom("no step is there")),
        }
    }
}

impl Part for Money {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.micro_cents())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        u64::deserialize(deserializer).map(Money::from_micro_cents)
    }

    fn blank() -> Option<Money> {
        Some(Money::ZERO)
    }

    fn is_blank(&self) -> bool {
        *self == Money::ZERO
    }
}

/// As `[a bit for each class, untrusted, private, since]`.
impl Part for Labels {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let classes = (0u32..).zip(SourceClass::WORDS).filter(|(_, (_, one))| self.has(*one));
        let classes = classes.fold(0, |bits, (place, _)| bits | 1u32 << place);
        (classes, self.untrusted, self.private, self.since_ms).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
        let (bits, untrusted, private, since_ms) =
            <(u32, bool, bool, Option<u64>)>::deserialize(deserializer)?;
        let classes = (0u32..).zip(SourceClass::WORDS);
        let classes = classes.filter(|(place, _)| bits & 1 << place != 0);
        let mut labels: Labels = classes.map(|(_, (_, class))| *class).collect();
        labels.untrusted = untrusted;
        labels.private = private;
        labels.since_ms = since_ms;
        Ok(labels)
    }

    fn blank() -> Option<Labels> {
        Some(Labels::default())
    }

    fn is_blank(&self) -> bool {
        *self == Labels::default()
    }
}

/// As `{"member": name}` or `{"agent": name}`.
impl Part for Whom {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = match self {
            Whom::Member(name) => ("member", name),
            Whom::Agent(name) => ("agent", name),
        };
        serializer.collect_map([pair])
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Whom, D::Error> {
        let mut pairs = BTreeMap::<String, String>::deserialize(deserializer)?;
        let member = pairs.remove("member").map(Whom::Member);
        let agent = pairs.remove("agent").map(Whom::Agent);
        member.or(agent).ok_or_else(|| D::Error::custom("nobody is there"))
    }
}

/// As `[items, instances]`; how many are open follows from the instances.
impl Part for FanOut {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let FanOut { items, instances, unsettled: _, in_flight: _ } = self;
        (&**items, Ref(instances)).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FanOut, D::Error> {
        let (items, Own(instances)) =
            <(Vec<Value>, Own<Vec<StepState>>)>::deserialize(deserializer)?;
        let nested = instances.iter().any(|one| one.fan_out.is_some());
        if items.len() != instances.len() || nested {
            return Err(D::Error::custom("an item has one plain instance"));
        }
        let count = |of: fn(&StepState) -> bool| {
            let count = instances.iter().filter(|one| of(one)).count();
            u32::try_from(count).map_err(|_| D::Error::custom("too many instances"))
        };
        Ok(FanOut {
            unsettled: count(|one| !one.is_settled())?,
            in_flight: count(|one| one.status.is_dispatched() && one.path != Some(Path::FanOut))?,
            items: Arc::new(items),
            instances,
        })
    }
}
