//! The corpus of Dogwood as a judge: policies with temporal clauses, traces of events, and
//! the verdict at each request. `make dogwood` downloads it and runs this.
//!
//! The cases use actions and fields of their own, so this goes below the checks of
//! `Policies::load`: it takes the same clauses through the same parser and evaluator, and
//! lets Cedar evaluate the rest.

use crate::policy::history::eval::{Events, holds};
use crate::policy::history::formula::{UNIT, Value};
use crate::policy::history::{Split, split};
use crate::policy::scan;
use cedar_policy::{Authorizer, Context, Effect, Entities, EntityUid, Policy, PolicyId, PolicySet};
use cedar_policy::{Request, Schema};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// An event of a trace.
struct Traced {
    at_ms: u64,
    action: String,
    kind: String,
    fields: BTreeMap<String, Value>,
    principal: String,
    resource: String,
    context: BTreeMap<String, Value>,
    json: serde_json::Value,
}

/// The trace up to an event.
struct UpTo<'t> {
    events: &'t [Traced],
}

impl Events for UpTo<'_> {
    fn count(&self) -> usize {
        self.events.len()
    }

    fn at_ms(&self, event: usize) -> u64 {
        self.events[event].at_ms
    }

    fn is(&self, event: usize, action: &str, kind: &str) -> bool {
        self.events[event].action == action && self.events[event].kind == kind
    }

    fn has(&self, event: usize, field: &str, value: &Value) -> bool {
        self.events[event].fields.get(field) == Some(value)
    }

    fn value(&self, event: usize, field: &str) -> Option<Value> {
        self.events[event].fields.get(field).cloned()
    }

    fn request(&self, path: &str) -> Option<Value> {
        let now = self.events.last()?;
        match path {
            "principal" => Some(Value::Text(now.principal.as_str().into())),
            "resource" => Some(Value::Text(now.resource.as_str().into())),
            path => now.context.get(path.strip_prefix("context.")?).cloned(),
        }
    }
}

/// Why a case does not apply, or what went wrong.
enum Trouble {
    OutOfScope(&'static str),
    Wrong(String),
}

#[expect(clippy::needless_pass_by_value, reason = "errors are passed on as they are")]
fn wrong(why: impl ToString) -> Trouble {
    Trouble::Wrong(why.to_string())
}

struct Rule {
    split: Split,
    set: PolicySet,
    effect: Effect,
}

#[expect(clippy::disallowed_methods, reason = "the corpus is read from a directory")]
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[test]
#[ignore = "needs the corpus: make dogwood"]
#[expect(clippy::print_stdout, reason = "the figures are the result")]
fn verdicts_are_those_of_the_corpus() {
    #[expect(clippy::disallowed_methods, reason = "`make dogwood` says where the corpus is")]
    let root = std::env::var("DOGWOOD_CORPUS").expect("make dogwood sets DOGWOOD_CORPUS");
    let root = Path::new(&root);
    let shared = read(&root.join("shared_schema.cedarschema")).expect("the shared schema");
    let mut cases: Vec<_> = std::fs::read_dir(root.join("corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    let (mut passed, mut verdicts) = (0, 0);
    let (mut reasons, mut failures) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for case in &cases {
        match judge(case, &shared) {
            Ok(count) => (passed, verdicts) = (passed + 1, verdicts + count),
            Err(Trouble::OutOfScope(reason)) => *reasons.entry(reason).or_default() += 1,
            Err(Trouble::Wrong(why)) => failures.push(format!("{}: {why}", case.display())),
        }
    }
    println!("{} cases, {passed} agree with {verdicts} verdicts", cases.len());
    for (reason, count) in reasons {
        println!("{count} do not apply: {reason}");
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

fn judge(case: &Path, shared: &str) -> Result<usize, Trouble> {
    let events = read(&case.join("event.dwschema")).unwrap_or_default();
    let declares = |word: &str| {
        events.lines().any(|line| line.split("//").next().is_some_and(|code| code.contains(word)))
    };
    if declares("pin ") {
        return Err(Trouble::OutOfScope("pins in a schema of events: clauses name their scope"));
    }
    let decided = if declares("::attempt") { "attempt" } else { "request" };
    let schema = read(&case.join("schema.cedarschema")).unwrap_or_else(|| shared.to_owned());
    let (schema, _) = Schema::from_cedarschema_str(&schema).map_err(wrong)?;
    let entities = schema.action_entities().map_err(wrong)?;
    let rules = rules(case)?;
    let mut verdicts = 0;
    for number in 1.. {
        let Some(trace) = read(&case.join(format!("trace_{number}.log"))) else { break };
        let expected = read(&case.join(format!("expected_{number}.out"))).unwrap_or_default();
        let trace = trace.lines().filter(|line| !line.trim().is_empty());
        let trace: Vec<Traced> = trace.map(traced).collect::<Result<_, _>>()?;
        let mut found = Vec::new();
        for (at, event) in trace.iter().enumerate().filter(|(_, event)| event.kind == decided) {
            let allowed = allows(&rules, &UpTo { events: &trace[..=at] }, event, &entities)?;
            found.push(format!("@{} (time point {at}): {allowed}", event.at_ms / 1000));
        }
        let expected: Vec<&str> =
            expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if found != expected {
            return Err(wrong(format!("trace {number}: found {found:?}, expected {expected:?}")));
        }
        verdicts += found.len();
    }
    Ok(verdicts)
}

fn rules(case: &Path) -> Result<Vec<Rule>, Trouble> {
    let mut rules = Vec::new();
    for number in 1.. {
        let Some(text) = read(&case.join(format!("policy_{number}.dw"))) else { break };
        for piece in scan::pieces(&text).map_err(|too_much| wrong(too_much.message))? {
            if piece.text.starts_with("def ") {
                return Err(Trouble::OutOfScope("macros that a policy defines"));
            }
            let split = split(piece.text).map_err(|(_, why)| {
                if why.contains("stands right after") {
                    Trouble::OutOfScope("`temporal` inside a Cedar expression")
                } else if why.contains("lists cannot") {
                    Trouble::OutOfScope("lists as values")
                } else if why.contains("do not calculate") {
                    Trouble::OutOfScope("arithmetic, which Dogwood has as an experiment")
                } else {
                    wrong(why)
                }
            })?;
            let rest = split.rest.as_deref().unwrap_or(piece.text);
            let policy = Policy::parse(Some(PolicyId::new("p")), rest).map_err(wrong)?;
            let effect = policy.effect();
            let set = PolicySet::from_policies([policy]).map_err(wrong)?;
            rules.push(Rule { split, set, effect });
        }
    }
    Ok(rules)
}

fn allows(
    rules: &[Rule],
    events: &UpTo<'_>,
    event: &Traced,
    entities: &Entities,
) -> Result<bool, Trouble> {
    let context = Context::from_json_value(event.json.clone(), None).map_err(wrong)?;
    let (who, what) = (entity(&event.principal)?, entity(&event.resource)?);
    let request = Request::new(who, entity(&event.action)?, what, context, None).map_err(wrong)?;
    let (mut permitted, mut forbidden) = (false, false);
    for rule in rules {
        let answer = Authorizer::new().is_authorized(&request, &rule.set, entities);
        let mut matches = answer.diagnostics().reason().next().is_some();
        for clause in &rule.split.written {
            let found = holds(&clause.formula, events).map_err(|_| wrong("out of fuel"))?;
            matches &= found != clause.unless;
        }
        match rule.effect {
            Effect::Permit => permitted |= matches,
            Effect::Forbid => forbidden |= matches,
        }
    }
    Ok(permitted && !forbidden)
}

/// An entity. Cedar wants a quote escaped that our parser does not escape.
fn entity(text: &str) -> Result<EntityUid, Trouble> {
    text.replace('\'', "\\'").parse().map_err(wrong)
}

/// Reads a line: `@12 scope(..) request_context(..) Action::"x"::request(..)`.
fn traced(line: &str) -> Result<Traced, Trouble> {
    let mut reader = Reader { rest: line.trim() };
    reader.take("@")?;
    let digits = reader.while_is(|c| c.is_ascii_digit());
    let at_ms = digits.parse::<u64>().map_err(wrong)? * 1000;
    let mut event = Traced {
        at_ms,
        action: String::new(),
        kind: String::new(),
        fields: BTreeMap::new(),
        principal: String::new(),
        resource: String::new(),
        context: BTreeMap::new(),
        json: json!({}),
    };
    while !reader.blank().rest.is_empty() {
        let name = reader.name()?;
        reader.take("(")?;
        if name == "entities" {
            return Err(Trouble::OutOfScope("attributes and parents of entities in a trace"));
        }
        let (fields, json) = reader.fields(")")?;
        let text = |name: &str| match fields.get(name) {
            Some(Value::Text(text)) => text.to_string(),
            _ => String::new(),
        };
        match name.as_str() {
            "scope" => (event.principal, event.resource) = (text("principal"), text("resource")),
            "request_context" => (event.context, event.json) = (fields, json),
            name => {
                let (action, kind) = name.rsplit_once("::").unwrap_or((name, ""));
                (event.action, event.kind, event.fields) =
                    (action.to_owned(), kind.to_owned(), fields);
            }
        }
    }
    Ok(event)
}

struct Reader<'t> {
    rest: &'t str,
}

type Record = (BTreeMap<String, Value>, serde_json::Value);

impl<'t> Reader<'t> {
    fn blank(&mut self) -> &mut Self {
        self.rest = self.rest.trim_start();
        self
    }

    fn is(&mut self, sign: &str) -> bool {
        let found = self.blank().rest.strip_prefix(sign);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn take(&mut self, sign: &str) -> Result<(), Trouble> {
        if self.is(sign) { Ok(()) } else { Err(wrong(format!("no {sign} at {}", self.rest))) }
    }

    fn while_is(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let (part, rest) =
            self.rest.split_at(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        part
    }

    /// `A::B::"x"::kind`, with the string as our parser writes it.
    fn name(&mut self) -> Result<String, Trouble> {
        let mut name = String::new();
        self.blank();
        loop {
            if self.rest.starts_with('"') {
                name.push_str(&format!("{:?}", self.string()?));
            } else {
                name.push_str(self.while_is(|c| c.is_ascii_alphanumeric() || c == '_'));
            }
            match self.rest.strip_prefix("::") {
                Some(rest) => {
                    self.rest = rest;
                    name.push_str("::");
                }
                None => return Ok(name),
            }
        }
    }

    fn string(&mut self) -> Result<String, Trouble> {
        let policy = format!("{} == 0", self.rest);
        let mut ends = policy.char_indices().skip(1);
        let mut escaped = false;
        let end = ends.find(|(_, c)| {
            let is_end = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            is_end
        });
        let (end, _) = end.ok_or_else(|| wrong("a string does not end"))?;
        let (text, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        let tokens = super::super::lexer::tokens(text).map_err(|(_, why)| wrong(why))?;
        match tokens.into_iter().next().map(|token| token.kind) {
            Some(super::super::lexer::TokenKind::Text(text)) => Ok(text.to_string()),
            other => Err(wrong(format!("{other:?} is not a string"))),
        }
    }

    fn fields(&mut self, close: &str) -> Result<Record, Trouble> {
        let (mut fields, mut whole) = (BTreeMap::new(), serde_json::Map::new());
        while !self.is(close) {
            let name =
                if self.blank().rest.starts_with('"') { self.string()? } else { self.name()? };
            self.take(":")?;
            if self.is("{") {
                let (inner, value) = self.fields("}")?;
                fields.extend(inner.into_iter().map(|(path, one)| (format!("{name}.{path}"), one)));
                whole.insert(name, value);
            } else if !self.is("null") {
                let (value, json) = self.value()?;
                fields.insert(name.clone(), value);
                whole.insert(name, json);
            }
            self.is(",");
        }
        Ok((fields, serde_json::Value::Object(whole)))
    }

    fn value(&mut self) -> Result<(Value, serde_json::Value), Trouble> {
        let rest = self.blank().rest;
        if rest.starts_with('"') {
            let text = self.string()?;
            return Ok((Value::Text(text.as_str().into()), json!(text)));
        }
        if rest.starts_with('[') {
            return Err(Trouble::OutOfScope("lists as values"));
        }
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let text = self.while_is(|c| c.is_ascii_digit() || c == '-' || c == '.');
            let number = crate::policy::history::read_number(text).ok_or_else(|| wrong(text))?;
            let json = match i64::try_from(number / UNIT) {
                Ok(whole) if !text.contains('.') => json!(whole),
                _ => json!({"__extn": {"fn": "decimal", "arg": text}}),
            };
            return Ok((Value::Number(number), json));
        }
        let name = self.name()?;
        match name.as_str() {
            "true" => Ok((Value::Bool(true), json!(true))),
            "false" => Ok((Value::Bool(false), json!(false))),
            uid => {
                let parsed = entity(uid)?;
                let kind = parsed.type_name().to_string();
                let json = json!({"__entity": {"type": kind, "id": parsed.id().unescaped()}});
                Ok((Value::Text(uid.into()), json))
            }
        }
    }
}
