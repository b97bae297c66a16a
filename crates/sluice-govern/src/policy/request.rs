//! A decision as Cedar asks about it: a request and the entities it names.

use super::facts::{PolicyFacts, Principal, Resource};
use super::needs::{Needs, Part};
use crate::account::Civil;
use crate::facts::Verb;
use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};

/// Names that Cedar would have to parse each time.
#[derive(Debug, Clone)]
pub(super) struct Names {
    agent: EntityTypeName,
    role: EntityTypeName,
    user: EntityTypeName,
    gateway: EntityTypeName,
    workflow: EntityTypeName,
    tool: EntityTypeName,
    row: EntityTypeName,
    actions: [EntityUid; Verb::ALL.len()],
}

/// A request and what it is about.
pub(super) struct Question {
    pub request: Request,
    pub entities: Entities,
}

/// Cedar would not take the facts; why, for people.
pub(super) type Unasked = String;

impl Names {
    pub(super) fn new() -> Names {
        let kind = |name: &str| -> EntityTypeName { name.parse().expect("a name of the schema") };
        let actions = Verb::ALL.map(|verb| {
            EntityUid::from_type_name_and_id(kind("Action"), EntityId::new(verb.as_str()))
        });
        Names {
            agent: kind("Agent"),
            role: kind("Role"),
            user: kind("User"),
            gateway: kind("Gateway"),
            workflow: kind("Workflow"),
            tool: kind("Tool"),
            row: kind("Row"),
            actions,
        }
    }

    /// Puts the facts into Cedar's words, as far as they are needed.
    pub(super) fn question(
        &self,
        facts: &PolicyFacts<'_>,
        needs: Needs,
    ) -> Result<Question, Unasked> {
        let principal = self.principal(&facts.who, needs)?;
        let resource = self.resource(&facts.what, needs)?;
        let action = self.actions[facts.verb as usize].clone();
        let context = context(facts, needs)?;
        let request = Request::new(principal.uid(), action, resource.uid(), context, None);
        let request = request.map_err(|error| error.to_string())?;
        // Cedar looks for ancestors of ancestors in all that it is given.
        let entities = if needs.entities() {
            Entities::from_entities([principal, resource], None)
        } else {
            Ok(Entities::empty())
        };
        Ok(Question { request, entities: entities.map_err(|error| error.to_string())? })
    }

    fn principal(&self, who: &Principal<'_>, needs: Needs) -> Result<Entity, Unasked> {
        let (name, role, fields) = match who {
            Principal::User { name } => return Ok(Entity::with_uid(uid(&self.user, name))),
            Principal::Agent { name, role, trust, phase, status, model, capabilities } => {
                let mut fields = Fields::new(needs);
                fields.put(Part::PrincipalTrust, "trust_level", || long(u64::from(*trust)));
                fields.put(Part::PrincipalPhase, "phase", || text(phase));
                fields.put(Part::PrincipalStatus, "status", || text(status));
                fields.put(Part::PrincipalCapabilities, "capabilities", || texts(capabilities));
                fields.put_if(Part::PrincipalModel, "model", || model.as_deref().map(text));
                (name, role, fields.all)
            }
        };
        let role = role.iter().filter(|_| needs.has(Part::PrincipalRole));
        let parents = role.map(|role| uid(&self.role, role)).collect();
        Entity::new(uid(&self.agent, name), fields.into_iter().collect(), parents)
            .map_err(|error| error.to_string())
    }

    fn resource(&self, what: &Resource<'_>, needs: Needs) -> Result<Entity, Unasked> {
        let mut fields = Fields::new(needs);
        let uid = match what {
            Resource::Gateway { name, provider, environment, min_trust, capabilities } => {
                fields.put(Part::ResourceProvider, "provider", || text(provider));
                fields.put(Part::ResourceEnvironment, "environment", || text(environment));
                let min_trust = || long(u64::from(*min_trust));
                fields.put(Part::ResourceMinTrust, "min_trust_level", min_trust);
                fields.put(Part::ResourceCapabilities, "capabilities", || texts(capabilities));
                uid(&self.gateway, name)
            }
            Resource::Workflow(name) => uid(&self.workflow, name),
            Resource::Tool(name) => uid(&self.tool, name),
            Resource::Row(name) => {
                let kind = name.split('/').next().unwrap_or_default();
                fields.put(Part::ResourceKind, "kind", || text(kind));
                uid(&self.row, name)
            }
        };
        Entity::new(uid, fields.all.into_iter().collect(), [].into_iter().collect())
            .map_err(|error| error.to_string())
    }
}

/// Fields that somebody needs.
struct Fields {
    needs: Needs,
    /// Whether somebody looks here, found or not.
    wanted: bool,
    all: Vec<(String, RestrictedExpression)>,
}

impl Fields {
    fn new(needs: Needs) -> Fields {
        Fields { needs, wanted: false, all: Vec::new() }
    }

    fn put(&mut self, part: Part, name: &str, value: impl FnOnce() -> RestrictedExpression) {
        self.put_if(part, name, || Some(value()));
    }

    /// A field that may be absent.
    fn put_if(
        &mut self,
        part: Part,
        name: &str,
        value: impl FnOnce() -> Option<RestrictedExpression>,
    ) {
        if self.needs.has(part) {
            self.wanted = true;
            self.all.extend(value().map(|value| (name.to_owned(), value)));
        }
    }

    /// A field made of fields, if somebody needs any of them.
    fn nest(&mut self, name: &str, inner: Fields) -> Result<(), Unasked> {
        if inner.wanted {
            let record = RestrictedExpression::new_record(inner.all);
            self.all.push((name.to_owned(), record.map_err(|error| error.to_string())?));
        }
        Ok(())
    }
}

fn uid(kind: &EntityTypeName, name: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(name))
}

fn context(facts: &PolicyFacts<'_>, needs: Needs) -> Result<Context, Unasked> {
    let mut all = Fields::new(needs);
    all.nest("run", run(facts, needs))?;
    all.nest("inputs", inputs(facts, needs))?;
    all.nest("time", time(facts, needs))?;
    all.put(Part::Posture, "posture", || text(facts.posture.as_str()));
    all.put(Part::Tools, "tools", || texts(&facts.tools));
    all.put_if(Part::Cost, "cost", || facts.cost.map(long));
    if let Some(step) = &facts.step {
        let mut fields = Fields::new(needs);
        fields.wanted = needs.has(Part::Step);
        fields.put(Part::StepId, "id", || text(&step.id));
        fields.put(Part::StepKind, "kind", || text(&step.kind));
        fields.put(Part::StepAttempt, "attempt", || long(u64::from(step.attempt)));
        fields.put(Part::StepCapabilities, "capabilities", || texts(&step.capabilities));
        all.nest("step", fields)?;
    }
    Context::from_pairs(all.all).map_err(|error| error.to_string())
}

fn run(facts: &PolicyFacts<'_>, needs: Needs) -> Fields {
    let run = &facts.run;
    let mut fields = Fields::new(needs);
    fields.put(Part::RunId, "id", || text(&run.id));
    fields.put(Part::RunWorkflow, "workflow", || text(&run.workflow));
    fields.put(Part::RunInitiator, "initiator", || text(&run.initiator));
    fields.put(Part::RunDepth, "depth", || long(u64::from(run.depth)));
    fields.put_if(Part::RunVersion, "version", || run.version.map(long));
    let registered = || RestrictedExpression::new_bool(run.registered);
    fields.put(Part::RunRegistered, "registered", registered);
    fields.put(Part::RunDefinition, "definition_hash", || text(&run.definition));
    fields
}

fn inputs(facts: &PolicyFacts<'_>, needs: Needs) -> Fields {
    let inputs = &facts.inputs;
    let mut fields = Fields::new(needs);
    let flag = RestrictedExpression::new_bool;
    fields.put(Part::InputClasses, "classes", || texts(&inputs.classes));
    fields.put(Part::InputUntrusted, "untrusted", || flag(inputs.untrusted));
    fields.put(Part::InputPrivate, "private", || flag(inputs.private));
    fields.put_if(Part::InputAge, "age_s", || inputs.age_s.map(long));
    fields
}

fn time(facts: &PolicyFacts<'_>, needs: Needs) -> Fields {
    let civil = Civil::at(facts.at);
    let mut fields = Fields::new(needs);
    fields.put(Part::TimeMs, "ms", || long(facts.at));
    fields.put(Part::TimeHour, "hour", || long(u64::from(civil.hour)));
    fields.put(Part::TimeWeekday, "weekday", || text(civil.weekday()));
    fields
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

fn texts(values: &[impl AsRef<str>]) -> RestrictedExpression {
    RestrictedExpression::new_set(values.iter().map(|value| text(value.as_ref())))
}

/// Cedar counts to 2^63; what is more is as much as it can count.
fn long(value: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(value).unwrap_or(i64::MAX))
}
