//! The condition of a policy as far as it is known before anything runs.

use serde_json::Value;

/// An expression of Cedar. What only a run knows is [`Term::Unknown`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Term {
    Flag(bool),
    Text(String),
    /// An entity: its type and its id.
    Entity(String, String),
    Set(Vec<Term>),
    /// The origins of the action, or of one of its arguments.
    Origins,
    /// Its secrets.
    Secrecy,
    /// Whether a condition that read an untrusted value decided about it.
    Control,
    Principal,
    Resource,
    /// Where the resource sends data.
    SendsTo,
    ReadOnly,
    /// The workflow of the run.
    Workflow,
    /// The id of the step.
    Step,
    Not(Box<Term>),
    All(Vec<Term>),
    Any(Vec<Term>),
    If(Box<[Term; 3]>),
    Equal(Box<[Term; 2]>),
    In(Box<[Term; 2]>),
    Is(Box<Term>, String),
    Contains(Box<[Term; 2]>),
    ContainsAll(Box<[Term; 2]>),
    ContainsAny(Box<[Term; 2]>),
    IsEmpty(Box<Term>),
    Unknown,
}

impl Term {
    /// Reads a policy in Cedar's JSON: its scope and its conditions.
    pub(super) fn of_policy(policy: &Value) -> Term {
        let mut all = Vec::new();
        for (key, variable) in [("principal", Term::Principal), ("resource", Term::Resource)] {
            all.push(scope(&policy[key], variable));
        }
        for condition in policy["conditions"].as_array().into_iter().flatten() {
            let body = Term::read(&condition["body"]);
            let unless = condition["kind"] == "unless";
            all.push(if unless { Term::Not(Box::new(body)) } else { body });
        }
        Term::All(all)
    }

    /// Reads an expression. Its depth is bounded, because the policy was measured.
    fn read(tree: &Value) -> Term {
        let Some((key, inside)) = tree.as_object().and_then(|map| map.iter().next()) else {
            return Term::Unknown;
        };
        let arg = || Box::new(Term::read(&inside["arg"]));
        let left = || Term::read(&inside["left"]);
        let pair = || Box::new([left(), Term::read(&inside["right"])]);
        match key.as_str() {
            "Value" => literal(inside),
            "Var" => match inside.as_str() {
                Some("principal") => Term::Principal,
                Some("resource") => Term::Resource,
                _ => Term::Unknown,
            },
            "Set" => Term::Set(inside.as_array().into_iter().flatten().map(Term::read).collect()),
            "!" => Term::Not(arg()),
            "&&" => Term::All((*pair()).into()),
            "||" => Term::Any((*pair()).into()),
            "==" => Term::Equal(pair()),
            "!=" => Term::Not(Box::new(Term::Equal(pair()))),
            "in" => Term::In(pair()),
            "contains" => Term::Contains(pair()),
            "containsAll" => Term::ContainsAll(pair()),
            "containsAny" => Term::ContainsAny(pair()),
            "isEmpty" => Term::IsEmpty(arg()),
            "is" => is(inside),
            "if-then-else" => {
                Term::If(Box::new(["if", "then", "else"].map(|part| Term::read(&inside[part]))))
            }
            "." => attribute(inside),
            "has" => has(inside),
            _ => Term::Unknown,
        }
    }

    /// Whether the term, or a part of it, fits.
    pub(super) fn has(&self, fits: &impl Fn(&Term) -> bool) -> bool {
        let within = |parts: &[Term]| parts.iter().any(|part| part.has(fits));
        fits(self)
            || match self {
                Term::Set(parts) | Term::All(parts) | Term::Any(parts) => within(parts),
                Term::Not(one) | Term::Is(one, _) | Term::IsEmpty(one) => one.has(fits),
                Term::If(parts) => within(&**parts),
                Term::Equal(pair)
                | Term::In(pair)
                | Term::Contains(pair)
                | Term::ContainsAll(pair)
                | Term::ContainsAny(pair) => within(&**pair),
                _ => false,
            }
    }
}

fn literal(value: &Value) -> Term {
    match value {
        Value::Bool(flag) => Term::Flag(*flag),
        Value::String(text) => Term::Text(text.clone()),
        Value::Object(_) => entity(&value["__entity"]),
        _ => Term::Unknown,
    }
}

fn entity(value: &Value) -> Term {
    match (value["type"].as_str(), value["id"].as_str()) {
        (Some(kind), Some(id)) => Term::Entity(kind.to_owned(), id.to_owned()),
        _ => Term::Unknown,
    }
}

/// The constraint of a scope on the principal or the resource.
fn scope(tree: &Value, variable: Term) -> Term {
    match tree["op"].as_str() {
        Some("All") => Term::Flag(true),
        Some("==") => Term::Equal(Box::new([variable, entity(&tree["entity"])])),
        Some("in") => Term::In(Box::new([variable, entity(&tree["entity"])])),
        Some("is") => {
            let kind = tree["entity_type"].as_str().unwrap_or_default().to_owned();
            let mut all = vec![Term::Is(Box::new(variable.clone()), kind)];
            if !tree["in"].is_null() {
                all.push(Term::In(Box::new([variable, entity(&tree["in"]["entity"])])));
            }
            Term::All(all)
        }
        _ => Term::Unknown,
    }
}

fn is(inside: &Value) -> Term {
    let (left, kind) = (Term::read(&inside["left"]), inside["entity_type"].as_str());
    let is = Term::Is(Box::new(left.clone()), kind.unwrap_or_default().to_owned());
    match inside.get("in") {
        Some(tree) => Term::All(vec![is, Term::In(Box::new([left, Term::read(tree)]))]),
        None => is,
    }
}

/// An attribute by its path: `context.flow.origins`.
fn attribute(inside: &Value) -> Term {
    let path = path(inside);
    match path.as_deref() {
        Some("context.flow.origins") => Term::Origins,
        Some("context.flow.secrecy") => Term::Secrecy,
        Some("context.flow.control") => Term::Control,
        Some("context.run.workflow") => Term::Workflow,
        Some("context.step.id") => Term::Step,
        Some("resource.sends_to") => Term::SendsTo,
        Some("resource.read_only") => Term::ReadOnly,
        // The labels of an argument are among those of the whole call.
        _ => match (is_of_call(&inside["left"]), inside["attr"].as_str()) {
            (true, Some("origins")) => Term::Origins,
            (true, Some("secrecy")) => Term::Secrecy,
            _ => Term::Unknown,
        },
    }
}

/// A test for an attribute that is always there.
fn has(inside: &Value) -> Term {
    match path(inside).as_deref() {
        Some("context.flow" | "context.step" | "resource.sends_to") => Term::Flag(true),
        _ => Term::Unknown,
    }
}

/// `context.flow.origins` of the node `{left, attr}`; none if it does not begin at a variable.
fn path(inside: &Value) -> Option<String> {
    let (left, attr) = (&inside["left"], inside["attr"].as_str()?);
    let above = match left.get("Var").and_then(Value::as_str) {
        Some(variable) => variable.to_owned(),
        None => path(left.get(".")?)?,
    };
    Some(format!("{above}.{attr}"))
}

/// Whether an expression is an argument of `context.call`.
fn is_of_call(tree: &Value) -> bool {
    let inside = tree.get(".").or_else(|| tree.get("getTag"));
    inside.is_some_and(|inside| {
        path(inside).as_deref() == Some("context.call") || is_of_call(&inside["left"])
    })
}
