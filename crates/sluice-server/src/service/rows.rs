//! Shows and changes single rows of the registry.

use super::Service;
use super::registry::{self, Author, ChangeOutcome, Mode, RowChange, now_ms};
use crate::pages;
use crate::refused::{ROW_UNREADABLE, Refused, ServiceResult};
use serde_json::{Map, Value, json};
use sluice_core::doc::setup::{self, Setup, section};
use sluice_core::money::Money;
use sluice_core::port::ledger::Counter;
use sluice_core::rows::{find, kept};
use sluice_core::visible;
use sluice_govern::account;
use sluice_govern::registry::{Agent, Budget, Kind, PolicyFile, Row};

/// Longest name of a policy, in bytes.
const POLICY_NAME_MAX: usize = 200;

/// A row as a JSON object: kind, id and fields.
pub fn object(row: &Row) -> Value {
    let mut fields = Map::new();
    fields.insert("kind".to_owned(), row.kind.as_str().into());
    fields.insert("id".to_owned(), row.name.clone().into());
    fields.extend(row.body.as_object().cloned().unwrap_or_default());
    Value::Object(fields)
}

/// A row as it is effective at a time: an expired trial is over, and a lens names its
/// newest version as head.
pub fn at(row: &Row, now_ms: u64) -> Row {
    let mut row = row.clone();
    if row.kind == Kind::Agent
        && let Ok(agent) = serde_json::from_value::<Agent>(row.body.clone())
    {
        row.body["phase"] = agent.phase_at(now_ms).as_str().into();
    }
    if row.kind == Kind::Lens
        && let Some(versions) = row.body.get("versions").and_then(Value::as_object)
    {
        let head = sluice_core::doc::newest_version(versions.keys().map(String::as_str));
        row.body["head"] = head.into();
    }
    row
}

/// Parses a row with the rules of a setup file.
pub fn read(kind: Kind, name: &str, body: &Map<String, Value>) -> Result<Vec<Row>, Refused> {
    let (setup, diagnostics) = Setup::parse(&setup::of_one(kind, name, body));
    if let Some(setup) = setup {
        return Ok(setup.rows);
    }
    let errors: Vec<_> = diagnostics.iter().filter(|one| one.is_error()).collect();
    let code = errors.first().map_or("bad_value", |one| one.code.as_str());
    let within = format!("{}.{name}.", section(kind));
    let notes = errors.iter().map(|one| {
        let field = one.path.strip_prefix(&within).unwrap_or_default();
        let colon = if field.is_empty() { "" } else { ": " };
        let hint = one.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{field}{colon}{}{hint}", one.message)
    });
    let message = format!("`{}` is not a valid {}", visible::brief(name), kind.noun());
    let remedy = pages::remedy(code).unwrap_or_default();
    Err(Refused::new(code, message, remedy).with_notes(notes.collect()))
}

/// Whether a write replaces a row or updates some of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Replaces the row.
    Whole,
    /// Updates the fields that are sent; `null` removes a field.
    Parts,
}

/// The change that writes a row.
pub(crate) fn write_of(
    stored: &[Row],
    (kind, name): (Kind, &str),
    sent: &Map<String, Value>,
    manner: Manner,
) -> ServiceResult<RowChange> {
    let before = find(stored, kind, name).and_then(|row| row.body.as_object());
    let before = match manner {
        Manner::Parts => {
            registry::row(stored, kind, name)?;
            before.cloned().unwrap_or_default()
        }
        Manner::Whole => Map::new(),
    };
    // Fields that commands and the engine maintain are not part of a setup. They keep their
    // value unless they are sent.
    let is_kept = |field: &String| kept(kind).any(|name| name == field);
    let mut body = before;
    body.retain(|field, _| !is_kept(field));
    let (own, rest): (Vec<_>, Vec<_>) = sent.iter().partition(|(field, _)| is_kept(field));
    body.extend(rest.into_iter().map(|(field, value)| (field.clone(), value.clone())));
    let mut put = match kind {
        Kind::Policy => vec![policy(name, body)?],
        _ => read(kind, name, &body)?,
    };
    for row in &mut put {
        if let Value::Object(body) = &mut row.body {
            body.extend(own.iter().map(|(field, value)| ((*field).clone(), (*value).clone())));
        }
    }
    Ok(RowChange { put, remove: Vec::new() })
}

/// The row of a policy file. A setup names the file and does not contain its text.
fn policy(name: &str, body: Map<String, Value>) -> Result<Row, Refused> {
    let refused = |why: String| {
        let message = format!("`{}` is not a valid policy: {why}", visible::brief(name));
        Refused::new(ROW_UNREADABLE, message, "name it like its file, and send `text` and `set`")
    };
    let body = Value::Object(body);
    let file: PolicyFile =
        serde_json::from_value(body.clone()).map_err(|error| refused(error.to_string()))?;
    let bare = name.strip_prefix("shadow/").unwrap_or(name);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = (1..=POLICY_NAME_MAX).contains(&bare.len()) && bare.bytes().all(plain);
    if !fits || bare.starts_with('.') || file.set.row(bare) != name {
        return Err(refused("its name does not fit its set".to_owned()));
    }
    Ok(Row { kind: Kind::Policy, name: name.to_owned(), body })
}

/// Writes a row.
pub async fn put(
    service: &Service,
    by: impl Into<Author<'_>>,
    row: (Kind, &str),
    sent: &Map<String, Value>,
    manner: Manner,
) -> ServiceResult<ChangeOutcome> {
    let edit = |stored: &[Row]| write_of(stored, row, sent, manner);
    registry::change(service, by, Mode::Write, &edit).await
}

/// Removes a row.
pub async fn remove(
    service: &Service,
    by: impl Into<Author<'_>>,
    kind: Kind,
    name: &str,
) -> ServiceResult<ChangeOutcome> {
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let row = registry::row(stored, kind, name)?;
        Ok(RowChange { put: Vec::new(), remove: vec![(kind, row.name.clone())] })
    };
    registry::change(service, by, Mode::Write, &edit).await
}

/// A budget with the amounts of its current period.
#[derive(Debug)]
pub struct Figures {
    /// Name of the budget.
    pub name: String,
    /// Configuration of the budget.
    pub budget: Budget,
    /// Spent plus reserved.
    pub held: Money,
    /// Spent so far.
    pub spent: Money,
    /// Spent above the cap.
    pub over: Money,
}

impl Figures {
    /// Reserved for steps in progress.
    pub fn reserved(&self) -> Money {
        less(self.held, self.spent)
    }

    /// Available for new steps.
    pub fn left(&self) -> Money {
        less(self.budget.amount_cents, self.held)
    }

    /// Whether an overrun that has not been accepted closes the budget.
    pub fn is_closed(&self) -> bool {
        self.over > self.budget.accepted_overrun_cents
    }

    /// The budget and its amounts as a JSON object. Amounts are in dollars, as in all JSON.
    pub fn object(&self, row: &Row) -> Value {
        let mut fields = object(row);
        fields["spent"] = self.spent.to_string().into();
        fields["reserved"] = self.reserved().to_string().into();
        fields["left"] = self.left().to_string().into();
        fields["overrun"] = self.over.to_string().into();
        fields["closed"] = self.is_closed().into();
        fields
    }
}

fn less(from: Money, taken: Money) -> Money {
    Money::from_micro_cents(from.micro_cents().saturating_sub(taken.micro_cents()))
}

/// The amounts of a budget in the current period.
pub async fn figures(service: &Service, row: &Row) -> ServiceResult<Figures> {
    let budget: Budget = serde_json::from_value(row.body.clone()).map_err(|error| {
        let message = format!("the budget `{}` cannot be read: {error}", row.name);
        Refused::new(ROW_UNREADABLE, message, "set it again")
    })?;
    let account = account::of_budget(&row.name, budget.period, now_ms());
    let names = [account::held(&account), account::spent(&account), account::over(&account)];
    let counts = service.store.counts(names.map(Counter::plain).to_vec()).await?;
    let money = |at: usize| {
        let count = counts.get(at).copied().unwrap_or_default();
        Money::from_micro_cents(u64::try_from(count).unwrap_or(0))
    };
    let name = row.name.clone();
    Ok(Figures { name, budget, held: money(0), spent: money(1), over: money(2) })
}

/// Accepts the overruns of a budget, so that they no longer close it.
pub async fn reopen(service: &Service, by: Author<'_>, name: &str) -> ServiceResult<ChangeOutcome> {
    let stored = service.store.registry(None).await?.rows;
    let over = figures(service, registry::row(&stored, Kind::Budget, name)?).await?.over;
    let edit = |stored: &[Row]| -> ServiceResult<RowChange> {
        let mut row = registry::row(stored, Kind::Budget, name)?.clone();
        let mut budget: Budget = serde_json::from_value(row.body)
            .map_err(|error| Refused::new(ROW_UNREADABLE, error.to_string(), "set it again"))?;
        budget.accepted_overrun_cents = over;
        row.body = json!(budget);
        // A zero amount is not serialized, and a missing field would keep its old value.
        if let Value::Object(body) = &mut row.body {
            body.entry("accepted_overrun_cents").or_insert(0.into());
        }
        Ok(RowChange { put: vec![row], remove: Vec::new() })
    };
    registry::change(service, by, Mode::Write, &edit).await
}
