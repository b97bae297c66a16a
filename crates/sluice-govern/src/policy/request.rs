//! Converts a decision to a Cedar request and its entities.

use super::call::CallView;
use super::facts::{PolicyFacts, Principal, Resource};
use super::input::{InputType, Mismatch};
use super::needs::{Needs, RequestAttribute};
use crate::account::Civil;
use crate::facts::{SendsTo, Verb};
use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Cedar names, parsed once.
#[derive(Debug, Clone)]
pub(super) struct Names {
    agent: EntityTypeName,
    role: EntityTypeName,
    user: EntityTypeName,
    gateway: EntityTypeName,
    workflow: EntityTypeName,
    tool: EntityTypeName,
    label: EntityTypeName,
    server: EntityTypeName,
    call: EntityUid,
    row: EntityTypeName,
    actions: [EntityUid; Verb::ALL.len()],
}

/// A request and its entities.
pub(super) struct CedarRequest {
    pub request: Request,
    pub entities: Entities,
    /// The argument that does not have its declared type, so that there is no
    /// `context.input`.
    pub mismatch: Option<Mismatch>,
}

/// The message of Cedar when it rejects the facts.
pub(super) type RequestError = String;

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
            label: kind("Label"),
            server: kind("ToolServer"),
            call: EntityUid::from_type_name_and_id(kind("Call"), EntityId::new("call")),
            row: kind("Row"),
            actions,
        }
    }

    /// Converts the facts to Cedar values, as far as they are needed.
    pub(super) fn request(
        &self,
        facts: &PolicyFacts<'_>,
        needs: Needs,
        inputs: &BTreeMap<String, InputType>,
    ) -> Result<CedarRequest, RequestError> {
        let principal = self.principal(&facts.who, needs)?;
        let resource = self.resource(facts, needs)?;
        let call = if needs.has(RequestAttribute::Call) { self.call(facts)? } else { None };
        let action = self.actions[facts.verb as usize].clone();
        let typed = if needs.has(RequestAttribute::Input) { typed(facts, inputs) } else { None };
        let (input, mismatch) = match typed {
            Some(Ok(input)) => (Some(input), None),
            Some(Err(mismatch)) => (None, Some(mismatch)),
            None => (None, None),
        };
        let context = context(facts, call.as_ref().map(Entity::uid), input, needs)?;
        let request = Request::new(principal.uid(), action, resource.uid(), context, None);
        let request = request.map_err(|error| error.to_string())?;
        // Cedar follows ancestors only through the given entities.
        let entities = if needs.entities() {
            Entities::from_entities([principal, resource].into_iter().chain(call), None)
        } else {
            Ok(Entities::empty())
        };
        let entities = entities.map_err(|error| error.to_string())?;
        Ok(CedarRequest { request, entities, mismatch })
    }

    fn principal(&self, who: &Principal<'_>, needs: Needs) -> Result<Entity, RequestError> {
        let (name, role, fields) = match who {
            Principal::User { name } => return Ok(Entity::with_uid(uid(&self.user, name))),
            Principal::Agent { name, role, trust, phase, status, model, capabilities } => {
                let mut fields = RequestFields::new(needs);
                fields.put(RequestAttribute::PrincipalTrust, "trust_level", || {
                    long(u64::from(*trust))
                });
                fields.put(RequestAttribute::PrincipalPhase, "phase", || text(phase));
                fields.put(RequestAttribute::PrincipalStatus, "status", || text(status));
                fields.put(RequestAttribute::PrincipalCapabilities, "capabilities", || {
                    texts(capabilities)
                });
                fields.put_if(RequestAttribute::PrincipalModel, "model", || {
                    model.as_deref().map(text)
                });
                (name, role, fields.all)
            }
        };
        let role = role.iter().filter(|_| needs.has(RequestAttribute::PrincipalRole));
        let parents = role.map(|role| uid(&self.role, role)).collect();
        Entity::new(uid(&self.agent, name), fields.into_iter().collect(), parents)
            .map_err(|error| error.to_string())
    }

    /// The entity of the action's values.
    fn call(&self, facts: &PolicyFacts<'_>) -> Result<Option<Entity>, RequestError> {
        let Some(view) = CallView::new(facts) else { return Ok(None) };
        let (attributes, tags) = (view.attributes()?, view.tags()?);
        let entity = Entity::new_with_tags(self.call.clone(), attributes, [], tags);
        entity.map(Some).map_err(|error| error.to_string())
    }

    fn resource(&self, facts: &PolicyFacts<'_>, needs: Needs) -> Result<Entity, RequestError> {
        let mut fields = RequestFields::new(needs);
        let mut parents = Vec::new();
        let uid = match &facts.what {
            Resource::Gateway {
                name,
                provider,
                environment,
                min_trust,
                capabilities,
                sends_to,
            } => {
                fields.put(RequestAttribute::ResourceProvider, "provider", || text(provider));
                fields.put(RequestAttribute::ResourceEnvironment, "environment", || {
                    text(environment)
                });
                let min_trust = || long(u64::from(*min_trust));
                fields.put(RequestAttribute::ResourceMinTrust, "min_trust_level", min_trust);
                fields.put(RequestAttribute::ResourceCapabilities, "capabilities", || {
                    texts(capabilities)
                });
                fields.sends_to(*sends_to);
                uid(&self.gateway, name)
            }
            Resource::Workflow(name) => uid(&self.workflow, name),
            Resource::Tool(name) => {
                let tool = facts.tool.as_deref();
                let read_only = tool.is_some_and(|tool| tool.read_only);
                fields.put(RequestAttribute::ResourceReadOnly, "read_only", || {
                    RestrictedExpression::new_bool(read_only)
                });
                fields.sends_to(tool.and_then(|tool| tool.sends_to));
                if needs.has(RequestAttribute::ResourceLabels) {
                    let labels = tool.into_iter().flat_map(|tool| &tool.labels);
                    parents.extend(labels.map(|label| uid(&self.label, label)));
                }
                if needs.has(RequestAttribute::ResourceServer) {
                    parents.extend(facts.tool_server().map(|server| uid(&self.server, server)));
                }
                uid(&self.tool, name)
            }
            Resource::Row(name) => {
                let kind = name.split('/').next().unwrap_or_default();
                fields.put(RequestAttribute::ResourceKind, "kind", || text(kind));
                uid(&self.row, name)
            }
        };
        Entity::new(uid, fields.all.into_iter().collect(), parents.into_iter().collect())
            .map_err(|error| error.to_string())
    }
}

/// Fields that some policy uses.
struct RequestFields {
    needs: Needs,
    /// Whether some policy uses this record, even if all fields are absent.
    is_used: bool,
    all: Vec<(String, RestrictedExpression)>,
}

impl RequestFields {
    fn new(needs: Needs) -> RequestFields {
        RequestFields { needs, is_used: false, all: Vec::new() }
    }

    fn put(
        &mut self,
        attribute: RequestAttribute,
        name: &str,
        value: impl FnOnce() -> RestrictedExpression,
    ) {
        self.put_if(attribute, name, || Some(value()));
    }

    /// Adds a field that may be absent.
    fn put_if(
        &mut self,
        attribute: RequestAttribute,
        name: &str,
        value: impl FnOnce() -> Option<RestrictedExpression>,
    ) {
        if self.needs.has(attribute) {
            self.is_used = true;
            self.all.extend(value().map(|value| (name.to_owned(), value)));
        }
    }

    /// What declares nothing sends its input out of the organisation.
    fn sends_to(&mut self, declared: Option<SendsTo>) {
        let sends_to = declared.unwrap_or(SendsTo::External);
        self.put(RequestAttribute::ResourceSendsTo, "sends_to", || text(sends_to.as_str()));
    }

    /// Adds a record, if some policy uses any of its fields.
    fn nest(&mut self, name: &str, inner: RequestFields) -> Result<(), RequestError> {
        if inner.is_used {
            let record = RestrictedExpression::new_record(inner.all);
            self.all.push((name.to_owned(), record.map_err(|error| error.to_string())?));
        }
        Ok(())
    }
}

fn uid(kind: &EntityTypeName, name: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(name))
}

/// The arguments of a tool with the types of its definition; `None` if they are not known.
fn typed(
    facts: &PolicyFacts<'_>,
    inputs: &BTreeMap<String, InputType>,
) -> Option<Result<RestrictedExpression, Mismatch>> {
    let Resource::Tool(name) = &facts.what else { return None };
    Some(inputs.get(&**name)?.value(facts.input.as_deref()?))
}

fn context(
    facts: &PolicyFacts<'_>,
    call: Option<EntityUid>,
    input: Option<RestrictedExpression>,
    needs: Needs,
) -> Result<Context, RequestError> {
    let mut all = RequestFields::new(needs);
    all.nest("run", run(facts, needs))?;
    all.nest("inputs", inputs(facts, needs))?;
    all.nest("time", time(facts, needs))?;
    all.put(RequestAttribute::Posture, "posture", || text(facts.posture.as_str()));
    all.put(RequestAttribute::Tools, "tools", || texts(&facts.tools));
    all.put_if(RequestAttribute::Cost, "cost", || facts.cost.map(long));
    if let Some(step) = &facts.step {
        let mut fields = RequestFields::new(needs);
        fields.is_used = needs.has(RequestAttribute::Step);
        fields.put(RequestAttribute::StepId, "id", || text(&step.id));
        fields.put(RequestAttribute::StepKind, "kind", || text(&step.kind));
        fields.put(RequestAttribute::StepAttempt, "attempt", || long(u64::from(step.attempt)));
        fields
            .put(RequestAttribute::StepCapabilities, "capabilities", || texts(&step.capabilities));
        all.nest("step", fields)?;
    }
    if matches!(facts.verb, Verb::DispatchStep | Verb::StartRun | Verb::UseTool) {
        all.nest("flow", flow(facts, needs))?;
        all.put_if(RequestAttribute::Input, "input", || input);
        all.put_if(RequestAttribute::Call, "call", || {
            call.map(RestrictedExpression::new_entity_uid)
        });
    }
    Context::from_pairs(all.all).map_err(|error| error.to_string())
}

fn run(facts: &PolicyFacts<'_>, needs: Needs) -> RequestFields {
    let run = &facts.run;
    let mut fields = RequestFields::new(needs);
    fields.put(RequestAttribute::RunId, "id", || text(&run.id));
    fields.put(RequestAttribute::RunWorkflow, "workflow", || text(&run.workflow));
    fields.put(RequestAttribute::RunInitiator, "initiator", || text(&run.initiator));
    fields.put(RequestAttribute::RunDepth, "depth", || long(u64::from(run.depth)));
    fields.put_if(RequestAttribute::RunVersion, "version", || run.version.map(long));
    let registered = || RestrictedExpression::new_bool(run.registered);
    fields.put(RequestAttribute::RunRegistered, "registered", registered);
    fields.put(RequestAttribute::RunDefinition, "definition_hash", || text(&run.definition));
    fields
}

fn inputs(facts: &PolicyFacts<'_>, needs: Needs) -> RequestFields {
    let inputs = &facts.inputs;
    let mut fields = RequestFields::new(needs);
    let flag = RestrictedExpression::new_bool;
    fields.put(RequestAttribute::InputClasses, "classes", || texts(&inputs.classes));
    fields.put(RequestAttribute::InputUntrusted, "untrusted", || flag(inputs.untrusted));
    fields.put(RequestAttribute::InputPrivate, "private", || flag(inputs.private));
    fields.put_if(RequestAttribute::InputAge, "age_s", || inputs.age_s.map(long));
    fields
}

fn flow(facts: &PolicyFacts<'_>, needs: Needs) -> RequestFields {
    let flow = &facts.flow;
    let mut fields = RequestFields::new(needs);
    let names = |names: &BTreeSet<Arc<str>>| {
        RestrictedExpression::new_set(names.iter().map(|name| text(name)))
    };
    fields.put(RequestAttribute::FlowOrigins, "origins", || names(&flow.origins));
    fields.put(RequestAttribute::FlowSecrecy, "secrecy", || names(&flow.secrecy));
    let control = || RestrictedExpression::new_bool(flow.control);
    fields.put(RequestAttribute::FlowControl, "control", control);
    fields
}

fn time(facts: &PolicyFacts<'_>, needs: Needs) -> RequestFields {
    let civil = Civil::at(facts.at);
    let mut fields = RequestFields::new(needs);
    fields.put(RequestAttribute::TimeMs, "ms", || long(facts.at));
    fields.put(RequestAttribute::TimeHour, "hour", || long(u64::from(civil.hour)));
    fields.put(RequestAttribute::TimeWeekday, "weekday", || text(civil.weekday()));
    fields
}

pub(super) fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

pub(super) fn texts(values: &[impl AsRef<str>]) -> RestrictedExpression {
    RestrictedExpression::new_set(values.iter().map(|value| text(value.as_ref())))
}

/// Cedar integers are 64-bit signed; larger values saturate.
fn long(value: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(value).unwrap_or(i64::MAX))
}
