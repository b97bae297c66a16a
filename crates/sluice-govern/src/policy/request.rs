//! A decision as Cedar asks about it: a request and the entities it names.

use super::facts::{PolicyFacts, Principal, Resource};
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

    /// Puts the facts into Cedar's words.
    pub(super) fn question(&self, facts: &PolicyFacts) -> Result<Question, Unasked> {
        let principal = self.principal(&facts.who)?;
        let resource = self.resource(&facts.what)?;
        let request = Request::new(
            principal.uid(),
            self.actions[facts.verb as usize].clone(),
            resource.uid(),
            context(facts)?,
            None,
        );
        let request = request.map_err(|error| error.to_string())?;
        let entities = Entities::from_entities([principal, resource], None);
        Ok(Question { request, entities: entities.map_err(|error| error.to_string())? })
    }

    fn principal(&self, who: &Principal) -> Result<Entity, Unasked> {
        let Principal::Agent { name, role, trust, phase, status, model, capabilities } = who else {
            let Principal::User { name } = who else { unreachable!("there are two kinds") };
            return Ok(Entity::with_uid(uid(&self.user, name)));
        };
        let mut fields = vec![
            ("trust_level".to_owned(), long(u64::from(*trust))),
            ("phase".to_owned(), text(phase)),
            ("status".to_owned(), text(status)),
            ("capabilities".to_owned(), texts(capabilities)),
        ];
        fields.extend(model.iter().map(|model| ("model".to_owned(), text(model))));
        let parents = role.iter().map(|role| uid(&self.role, role)).collect();
        Entity::new(uid(&self.agent, name), fields.into_iter().collect(), parents)
            .map_err(|error| error.to_string())
    }

    fn resource(&self, what: &Resource) -> Result<Entity, Unasked> {
        let (uid, fields) = match what {
            Resource::Gateway { name, provider, environment, min_trust, capabilities } => (
                uid(&self.gateway, name),
                vec![
                    ("provider".to_owned(), text(provider)),
                    ("environment".to_owned(), text(environment)),
                    ("min_trust_level".to_owned(), long(u64::from(*min_trust))),
                    ("capabilities".to_owned(), texts(capabilities)),
                ],
            ),
            Resource::Workflow(name) => return Ok(Entity::with_uid(uid(&self.workflow, name))),
            Resource::Tool(name) => return Ok(Entity::with_uid(uid(&self.tool, name))),
            Resource::Row(name) => {
                let kind = name.split('/').next().unwrap_or_default();
                (uid(&self.row, name), vec![("kind".to_owned(), text(kind))])
            }
        };
        Entity::new(uid, fields.into_iter().collect(), [].into_iter().collect())
            .map_err(|error| error.to_string())
    }
}

fn uid(kind: &EntityTypeName, name: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(name))
}

fn context(facts: &PolicyFacts) -> Result<Context, Unasked> {
    let run = &facts.run;
    let mut run_fields = vec![
        ("id".to_owned(), text(&run.id)),
        ("workflow".to_owned(), text(&run.workflow)),
        ("initiator".to_owned(), text(&run.initiator)),
        ("depth".to_owned(), long(u64::from(run.depth))),
    ];
    run_fields.extend(run.version.map(|version| ("version".to_owned(), long(version))));
    let inputs = &facts.inputs;
    let mut input_fields = vec![
        ("classes".to_owned(), texts(&inputs.classes)),
        ("untrusted".to_owned(), RestrictedExpression::new_bool(inputs.untrusted)),
        ("private".to_owned(), RestrictedExpression::new_bool(inputs.private)),
    ];
    input_fields.extend(inputs.age_s.map(|age_s| ("age_s".to_owned(), long(age_s))));
    let civil = Civil::at(facts.at);
    let time = vec![
        ("ms".to_owned(), long(facts.at)),
        ("hour".to_owned(), long(u64::from(civil.hour))),
        ("weekday".to_owned(), text(civil.weekday())),
    ];
    let mut pairs = vec![
        ("run".to_owned(), record(run_fields)?),
        ("inputs".to_owned(), record(input_fields)?),
        ("time".to_owned(), record(time)?),
        ("posture".to_owned(), text(facts.posture.as_str())),
        ("tools".to_owned(), texts(&facts.tools)),
    ];
    pairs.extend(facts.cost.map(|cost| ("cost".to_owned(), long(cost))));
    if let Some(step) = &facts.step {
        let fields = vec![
            ("id".to_owned(), text(&step.id)),
            ("kind".to_owned(), text(&step.kind)),
            ("attempt".to_owned(), long(u64::from(step.attempt))),
            ("capabilities".to_owned(), texts(&step.capabilities)),
        ];
        pairs.push(("step".to_owned(), record(fields)?));
    }
    Context::from_pairs(pairs).map_err(|error| error.to_string())
}

fn record(fields: Vec<(String, RestrictedExpression)>) -> Result<RestrictedExpression, Unasked> {
    RestrictedExpression::new_record(fields).map_err(|error| error.to_string())
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

fn texts(values: &[String]) -> RestrictedExpression {
    RestrictedExpression::new_set(values.iter().map(|value| text(value)))
}

/// Cedar counts to 2^63; what is more is as much as it can count.
fn long(value: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(value).unwrap_or(i64::MAX))
}
