//! Parts that both formats share.

use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::{Millis, WholeNumber};
use crate::doc::names;
use crate::doc::read::{DocumentReader, PathPart, document};
use crate::doc::registry::Registry;
use crate::limits::ATTEMPTS_MAX;
use crate::money::Money;
use crate::plan::policy::{OnFailure, RetryCause};
use crate::plan::step::Retry;
use crate::plan::{Plan, Recovery, Role, TrustedContext};
use crate::span::Spanned;

document! {
    /// The budget of the whole run.
    pub(crate) struct BudgetDoc {
        /// The maximum cost in cents; fractions are allowed.
        optional "max_cost_cents" max_cost_cents: Money,
    }
}

document! {
    /// How often a failed run is retried automatically.
    pub(crate) struct RecoveryDoc {
        /// The maximum number of retries.
        required "max" max: WholeNumber<0, 100>,
        /// The delay after the failure (none).
        optional "after" after: Millis,
    }
}

impl From<RecoveryDoc> for Recovery {
    fn from(written: RecoveryDoc) -> Recovery {
        Recovery {
            max: written.max.map_or(0, WholeNumber::small),
            after_ms: written.after.map_or(0, |after| after.0),
        }
    }
}

/// Longest delay between attempts: a day.
const BACKOFF_MS_MAX: u64 = 24 * 60 * 60 * 1000;

document! {
    /// When and how often a failed attempt is retried.
    pub(crate) struct RetryDoc {
        /// The total number of attempts (1).
        optional "attempts" attempts: WholeNumber<1, { ATTEMPTS_MAX as u64 }>,
        /// The first delay; it doubles with each attempt (500).
        optional "backoff_ms" backoff_ms: WholeNumber<0, BACKOFF_MS_MAX>,
        /// The longest delay (8000).
        optional "max_backoff_ms" max_backoff_ms: WholeNumber<0, BACKOFF_MS_MAX>,
        /// The errors that are retried (timeout, provider_error, rate_limit).
        optional "retry_on" retry_on: Vec<RetryCause>,
    }
}

impl From<RetryDoc> for Retry {
    fn from(written: RetryDoc) -> Retry {
        let default = Retry::default();
        Retry {
            attempts: written.attempts.map_or(default.attempts, WholeNumber::small),
            backoff_ms: written.backoff_ms.map_or(default.backoff_ms, |ms| ms.0),
            max_backoff_ms: written.max_backoff_ms.map_or(default.max_backoff_ms, |ms| ms.0),
            retry_on: written.retry_on.unwrap_or(default.retry_on),
        }
    }
}

document! {
    /// An abstract actor that a deployment binds to an agent.
    pub(crate) struct RoleDoc {
        /// A description for people.
        optional "description" description: String,
        /// Skills an agent in this role must have.
        optional "required_skills" required_skills: Vec<String>,
        /// The maximum cost of its steps in one run, in cents.
        optional "max_spend_cents" max_spend_cents: Money,
        /// Environments in which its steps may run.
        optional "allowed_environments" allowed_environments: Vec<String>,
        /// Requirements for its inputs.
        optional "trusted_context" trusted_context: TrustedContextDoc,
    }
}

document! {
    /// Requirements for the inputs of a role.
    pub(crate) struct TrustedContextDoc {
        /// Source classes of acceptable inputs.
        optional "accepted_source_classes" accepted_source_classes: Vec<String>,
        /// The maximum age of an input, in seconds.
        optional "max_age_s" max_age_s: WholeNumber<0, 4_000_000_000>,
    }
}

impl RoleDoc {
    pub(crate) fn into_role(self) -> Role {
        Role {
            description: self.description,
            required_skills: self.required_skills.unwrap_or_default(),
            max_spend: self.max_spend_cents,
            allowed_environments: self.allowed_environments.unwrap_or_default(),
            trusted_context: self.trusted_context.map(|written| TrustedContext {
                accepted_source_classes: written.accepted_source_classes.unwrap_or_default(),
                max_age_s: written.max_age_s.map(|age| age.0),
            }),
        }
    }
}

/// Reports a `retry` together with an `on_failure` that retries as well.
pub(crate) fn check_retry(
    on_failure: Option<&Spanned<OnFailure>>,
    retry: Option<&Spanned<RetryDoc>>,
    cx: &mut DocumentReader<'_, '_>,
) {
    let (Some(policy), Some(retry)) = (on_failure, retry) else { return };
    if policy.value.retries() {
        let message = format!("`retry` and `on_failure: {}` both define retries", policy.value);
        let problem = Problem::new(Code::ConflictingFields, retry.span, message);
        cx.within(PathPart::Key("retry"), |cx| cx.add(problem));
    }
}

/// Sorts each step's dependencies, explicit and implied, in document order.
pub(crate) fn order_dependencies(plan: &mut Plan) {
    for at in 0..plan.steps.len() {
        let dependencies = plan.graph.dependencies(at).iter();
        let ids = dependencies.map(|on| plan.steps[*on as usize].id.clone()).collect();
        plan.steps[at].depends_on = ids;
    }
}

/// Reports the cycles of a graph, each at the step that closes it.
pub(crate) fn report_cycles<'n>(
    cycles: &crate::plan::graph::Cycles,
    ids: &[(&str, crate::span::Span)],
    path: impl Fn(usize) -> (PathPart<'n>, PathPart<'n>),
    cx: &mut DocumentReader<'n, '_>,
) {
    for cycle in &cycles.0 {
        let mut trail = String::new();
        for at in cycle.iter().chain(cycle.first()) {
            if !trail.is_empty() {
                trail.push_str(" -> ");
            }
            trail.push_str(ids[*at].0);
        }
        let message =
            format!("the dependencies form a cycle: {}", crate::visible::shorten_to(&trail, 400));
        let problem = Problem::new(Code::CycleDetected, ids[cycle[0]].1, message).with_hint(
            "each step in the list waits for the next one; remove one of the dependencies",
        );
        let (outer, inner) = path(cycle[0]);
        cx.within(outer, |cx| cx.within(inner, |cx| cx.add(problem)));
    }
}

/// Checks the syntax of a reference to a workflow and, if the registry is loaded, that the
/// workflow exists.
pub(crate) fn check_workflow_ref(
    written: &Spanned<String>,
    registry: &Registry,
    cx: &mut DocumentReader<'_, '_>,
) {
    let (name, version) = match workflow_ref(&written.value) {
        Ok(parts) => parts,
        Err(message) => {
            let problem = Problem::new(Code::BadReference, written.span, message);
            return cx.add(problem.with_hint("write `name` or `name@3`"));
        }
    };
    names::kebab(name, written.span, cx);
    if registry.has_beside(name, version) {
        return;
    }
    let Some(workflows) = &registry.workflows else {
        let message = format!("workflow `{name}` cannot be checked: no registry is loaded");
        return cx.add(Problem::new(Code::UnresolvedReference, written.span, message));
    };
    let problem = match (workflows.get(name), version) {
        (None, _) => {
            let message = format!("the registry has no workflow `{name}`");
            Problem::new(Code::UnknownWorkflow, written.span, message)
                .with_suggestion(cx.suggest(name, workflows.keys().map(String::as_str)))
        }
        (Some(versions), Some(version)) if !versions.contains(&version) => {
            let message = format!("the registry has no version {version} of `{name}`");
            Problem::new(Code::UnknownWorkflow, written.span, message)
        }
        _ => return,
    };
    cx.add(problem);
}

/// The name and version in a valid reference.
pub(crate) fn split_workflow_ref(written: &str) -> (&str, Option<u64>) {
    workflow_ref(written).unwrap_or((written, None))
}

/// `name` or `name@version`.
fn workflow_ref(written: &str) -> Result<(&str, Option<u64>), String> {
    let Some((name, version)) = written.split_once('@') else { return Ok((written, None)) };
    let digits = version.bytes().all(|b| b.is_ascii_digit());
    match version.parse().ok().filter(|_| digits) {
        Some(version) => Ok((name, Some(version))),
        None => Err(format!("`{}` is not a version number", crate::visible::shorten(version))),
    }
}
