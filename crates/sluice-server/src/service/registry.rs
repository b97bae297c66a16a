//! Rows of the registry of a data directory: read, and changed all together or
//! not at all.
//!
//! INVARIANT: what was checked is what is written. A change is refused by the
//! store if another one came since the rows were read; then everything is read,
//! compared and checked again.

use super::document::Findings;
use super::{RowOrigin, Service, policies};
use crate::refused::{
    CHANGE_REFUSED, Done, REGISTRY_BUSY, ROW_IN_USE, ROW_UNKNOWN, ROW_UNREADABLE, Refused,
    SECRET_NOT_NAMED, SECRET_UNKNOWN, STORE_NOT_AUTHENTIC, VERSION_TAKEN,
};
use crate::webhooks::begin;
use serde_json::{Value, json};
use sluice_core::doc::setup::section;
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Change, Changed, Entry, Rows};
use sluice_core::rows::{self, Difference, RowAuthor, RowFault};
use sluice_core::secret::SecretRef;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_govern::decision::Disposition;
use sluice_govern::policy::{self, PolicyFacts};
use sluice_govern::registry::{Kind, Row};

/// How often a change is tried when others come first.
const TRIES: usize = 16;

/// In whose name rows change.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// The principal.
    pub name: &'a str,
    /// Why the policies in force are not asked. Only the owner of the data directory
    /// can set it; the audit says so in category `security`.
    pub break_glass: Option<&'a str>,
}

impl<'a> From<&'a str> for Author<'a> {
    fn from(name: &'a str) -> Author<'a> {
        Author { name, break_glass: None }
    }
}

impl<'a> From<&'a String> for Author<'a> {
    fn from(name: &'a String) -> Author<'a> {
        name.as_str().into()
    }
}

/// Rows as somebody wants them.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Rows that are written.
    pub put: Vec<Row>,
    /// Rows that go.
    pub remove: Vec<(Kind, String)>,
}

/// What somebody wants, or what is wrong with the documents that say it.
pub enum Wanted {
    /// These rows.
    Rows(Asked),
    /// Nothing can be read from the documents.
    Refused(Vec<Findings>),
}

/// What somebody wants of the rows there are.
pub trait Wish {
    /// What they should become.
    fn rows(&self, there: &[Row]) -> Done<Wanted>;

    /// Says where faults stand; those of other rows are given back.
    fn place(&self, faults: Vec<RowFault>) -> (Vec<Findings>, Vec<RowFault>) {
        (Vec::new(), faults)
    }
}

impl<F: Fn(&[Row]) -> Done<Asked>> Wish for F {
    fn rows(&self, there: &[Row]) -> Done<Wanted> {
        self(there).map(Wanted::Rows)
    }
}

/// Whether a change is made or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is made.
    Write,
    /// It is looked at.
    Look,
}

/// What became of a change.
pub enum Outcome {
    /// The rows are so, or would be.
    Done {
        /// What changed.
        differences: Vec<Difference>,
        /// The epoch that began with it.
        epoch: u64,
        /// Whether it was written.
        mode: Mode,
        /// What is allowed, and seldom meant.
        warnings: Warnings,
    },
    /// The documents are refused.
    Refused(Vec<Findings>),
}

/// What a change says that is allowed, and seldom meant.
#[derive(Debug, Default)]
pub struct Warnings {
    /// Those that stand in the documents of the change.
    pub placed: Vec<Findings>,
    /// Those of other rows.
    pub others: Vec<RowFault>,
}

impl Warnings {
    /// What the rows say after a change that they did not say before.
    fn new(there: &[Row], after: &[Row], wish: &impl Wish) -> Warnings {
        let known = rows::cautions(there);
        let mut found = rows::cautions(after);
        found.retain(|one| !known.contains(one));
        let (placed, others) = wish.place(found);
        Warnings { placed, others }
    }

    /// All of them in the words of an API.
    pub fn shown(&self) -> Vec<Value> {
        let placed = self.placed.iter().flat_map(|found| &found.diagnostics).map(
            |one| json!({"code": one.code.as_str(), "message": one.message, "hint": one.hint}),
        );
        let others = self.others.iter().map(
            |one| json!({"code": one.code.as_str(), "message": one.message, "hint": one.hint}),
        );
        placed.chain(others).collect()
    }
}

/// The time.
pub fn now_ms() -> u64 {
    SystemClock.now_ms()
}

/// The row of a kind and name; a refusal if there is none.
pub fn row<'r>(there: &'r [Row], kind: Kind, name: &str) -> Result<&'r Row, Refused> {
    rows::find(there, kind, name).ok_or_else(|| {
        let shown = visible::brief(name);
        let message = format!("there is no {} `{shown}`", kind.as_str());
        let near = suggest(name, rows::names(there, kind));
        let remedy = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("`sluice {} list` shows those there are", section(kind)),
        };
        Refused::new(ROW_UNKNOWN, message, remedy)
    })
}

/// Changes rows to what is wished.
pub async fn change<'a>(
    service: &Service,
    by: impl Into<Author<'a>>,
    mode: Mode,
    wish: &impl Wish,
) -> Done<Outcome> {
    let by: Author<'a> = by.into();
    for _ in 0..TRIES {
        let there = service.store.registry(None).await?;
        let asked = match wish.rows(&there.rows)? {
            Wanted::Rows(asked) => asked,
            Wanted::Refused(findings) => return Ok(Outcome::Refused(findings)),
        };
        authentic(&there, &asked)?;
        let after = settled(service, &there.rows, &asked, by.name)?;
        let differences = rows::diff(&there.rows, &after);
        if let Some(findings) = check(&there.rows, &after, &asked, wish)? {
            return Ok(Outcome::Refused(findings));
        }
        if differences.is_empty() {
            let warnings = Warnings::default();
            return Ok(Outcome::Done { differences, epoch: there.epoch, mode, warnings });
        }
        let warnings = Warnings::new(&there.rows, &after, wish);
        policies::usable(&there.rows, &after, by.name)?;
        if by.break_glass.is_none() {
            permitted(service, &there.rows, &differences, by.name).await?;
        }
        if mode == Mode::Look {
            return Ok(Outcome::Done { differences, epoch: there.epoch, mode, warnings });
        }
        let feed_end = service.store.feed_end().await?;
        if let Some(epoch) = write(service, &there, &differences, by).await? {
            let (store, before) = (&*service.store, &there.rows);
            // The rows are so by now: a webhook that is not told where it begins
            // begins when it is next looked after.
            if let Err(error) = begin::follow(store, before, &after, feed_end).await {
                tracing::warn!(%error, "webhooks could not be told where they begin");
            }
            return Ok(Outcome::Done { differences, epoch, mode, warnings });
        }
    }
    let message = "others kept changing the registry at the same time";
    Err(Refused::new(REGISTRY_BUSY, message, "try again").into())
}

/// Refuses to change rows while a policy is not authentic: what it says of changes is
/// not known. The only change is the one that writes or removes it.
fn authentic(there: &Rows, asked: &Asked) -> Result<(), Refused> {
    let is_asked = |kind: Kind, name: &str| {
        rows::find(&asked.put, kind, name).is_some()
            || asked.remove.iter().any(|(other, gone)| *other == kind && gone == name)
    };
    let policy = Kind::Policy.as_str();
    let foreign = there.foreign.iter().filter(|(kind, _)| kind == policy);
    let mut left = foreign.filter(|(_, name)| !is_asked(Kind::Policy, name));
    let Some((_, name)) = left.next() else { return Ok(()) };
    let message = format!(
        "the policy `{}` is not authentic: no process with the key of this store wrote it",
        visible::brief(name)
    );
    let remedy = "apply the file that the policy came from again, and find out who can write to \
                  the store";
    Err(Refused::new(STORE_NOT_AUTHENTIC, message, remedy))
}

/// The rows as they will be.
fn settled(
    service: &Service,
    there: &[Row],
    asked: &Asked,
    who: &str,
) -> Result<Vec<Row>, Refused> {
    let now_ms = now_ms();
    let mut put = Vec::new();
    for row in &asked.put {
        let before = rows::find(there, row.kind, &row.name);
        if let [version, ..] = rows::changed_versions(row, before)[..] {
            let (lens, version) = (visible::brief(&row.name), visible::brief(version));
            let message = format!(
                "version `{version}` of the lens `{lens}` is there already, with another content"
            );
            let remedy = "a version never changes: write what is new under another id";
            return Err(Refused::new(VERSION_TAKEN, message, remedy));
        }
        let mut settled = rows::settle(row.clone(), before, now_ms).map_err(|why| {
            let message = format!("the {} `{}` makes no sense: {why}", row.kind.as_str(), row.name);
            Refused::new(ROW_UNREADABLE, message, "write the row anew")
        })?;
        entrust(service, &mut settled, before)?;
        rows::sign(&mut settled, before, who);
        put.push(settled);
    }
    Ok(rows::with(there, &put, &asked.remove))
}

/// Refuses a row that names a secret which its author may not name.
fn entrust(service: &Service, row: &mut Row, before: Option<&Row>) -> Result<(), Refused> {
    let author = match service.origin {
        RowOrigin::Operator => RowAuthor::Operator,
        RowOrigin::Server | RowOrigin::Client => RowAuthor::Organisation,
    };
    rows::entrust(row, before, author).map_err(|refused| {
        let (kind, name) = (refused.kind.as_str(), visible::brief(&refused.name));
        let message = format!(
            "`{}` of the {kind} `{name}` names a variable or a file of the server, which only \
             the operator may do",
            refused.field
        );
        let remedy = "write `secret:NAME`, a secret that the operator declares under \
                      `[secrets.NAME]` in sluice.toml; or change the row of the first \
                      organisation on the server's machine, with `--data DIR`";
        Refused::new(SECRET_NOT_NAMED, message, remedy)
    })?;
    let unchanged = before.is_some_and(|before| rows::secret_of(before) == rows::secret_of(row));
    match rows::secret_of(row) {
        Some(SecretRef::Named(secret))
            if service.origin == RowOrigin::Server
                && !unchanged
                && !service.secrets.has(&secret) =>
        {
            let (kind, name) = (row.kind.as_str(), visible::brief(&row.name));
            let message = format!(
                "the {kind} `{name}` names the secret `{secret}`, which is not declared for this \
                 organisation"
            );
            let remedy = "ask the operator to declare it under `[secrets]` in sluice.toml, with \
                          this organisation among its `organisations`";
            Err(Refused::new(SECRET_UNKNOWN, message, remedy))
        }
        _ => Ok(()),
    }
}

/// Looks for what rows say of each other. What was wrong before is not held
/// against a change that has nothing to do with it.
fn check(
    there: &[Row],
    after: &[Row],
    asked: &Asked,
    wish: &impl Wish,
) -> Result<Option<Vec<Findings>>, Refused> {
    let known = rows::faults(there);
    let mut faults = rows::faults(after);
    faults.retain(|fault| !known.contains(fault));
    if faults.is_empty() {
        return Ok(None);
    }
    let (findings, others) = wish.place(faults);
    if !findings.is_empty() {
        return Ok(Some(findings));
    }
    let own = |fault: &&RowFault| rows::find(&asked.put, fault.kind, &fault.name).is_some();
    let notes = others.iter().map(|fault| {
        let (kind, name, path) = (fault.kind.as_str(), &fault.name, fault.path.join("."));
        format!("{kind} `{name}`, {path}: {}", fault.message)
    });
    let notes = notes.collect();
    let refused = match others.iter().find(own) {
        Some(fault) => {
            let remedy = fault.hint.clone();
            let remedy = remedy.unwrap_or_else(|| "put the row there first".to_owned());
            Refused::new(fault.code.as_str(), "the row does not fit the others", remedy)
        }
        None => {
            let remedy = "change those rows first, or in the same file";
            Refused::new(ROW_IN_USE, "other rows still need what would go", remedy)
        }
    };
    Err(refused.with_notes(notes))
}

/// Whether policies are asked about a change. Signing in changes no configuration,
/// and a token can always be revoked.
fn is_asked(one: &Difference) -> bool {
    let session = |after: &Value| after["session"] == true;
    one.kind != Kind::Token || one.after.as_ref().is_some_and(|after| !session(after))
}

/// Asks the policies in force whether the rows may be changed. A no is recorded.
async fn permitted(
    service: &Service,
    there: &[Row],
    differences: &[Difference],
    who: &str,
) -> Done<()> {
    let asked: Vec<&Difference> = differences.iter().filter(|one| is_asked(one)).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let active = policies::load(&policies::active(there)?)?;
    let at = now_ms();
    let mut notes = Vec::new();
    let mut entries = Vec::new();
    for one in asked {
        let what = named(one);
        let said = policy::replay(&active, &PolicyFacts::of_change(at, who, &what));
        let why = match said.disposition {
            Disposition::Allow => continue,
            Disposition::Block => said.because.unwrap_or_default(),
            Disposition::Hold => "a policy wants a person to agree first".to_owned(),
        };
        notes.push(format!("{what}: {why}"));
        entries.push(Entry {
            at_ms: at,
            category: "governance",
            what: "change_refused".to_owned(),
            actor: who.to_owned(),
            resource_type: one.kind.as_str().to_owned(),
            resource_id: one.name.clone(),
            event: None,
            detail: json!({"why": why, "matched": said.matched, "policyHash": active.hash()}),
        });
    }
    if notes.is_empty() {
        return Ok(());
    }
    service.store.record(service.engine.node(), entries).await?;
    let message = format!("policies do not let {} change this", visible::brief(who));
    let remedy = "`sluice policies list` shows the policies in force";
    Err(Refused::new(CHANGE_REFUSED, message, remedy).with_notes(notes).into())
}

/// A row as policies and the audit name it.
fn named(one: &Difference) -> String {
    format!("{}/{}", one.kind.as_str(), one.name)
}

/// What the audit says of a change that the policies were not asked about.
fn broken_glass(differences: &[Difference], who: &str, reason: &str, at_ms: u64) -> Entry {
    let rows: Vec<String> = differences.iter().map(named).collect();
    Entry {
        at_ms,
        category: "security",
        what: "break_glass".to_owned(),
        actor: who.to_owned(),
        resource_type: "registry".to_owned(),
        resource_id: rows.first().cloned().unwrap_or_default(),
        event: None,
        detail: json!({"reason": reason, "rows": rows}),
    }
}

/// Writes the differences; no epoch if another change came first.
async fn write(
    service: &Service,
    there: &Rows,
    differences: &[Difference],
    by: Author<'_>,
) -> Done<Option<u64>> {
    let at_ms = now_ms();
    let mut entries = rows::entries(differences, by.name, at_ms);
    entries.extend(by.break_glass.map(|why| broken_glass(differences, by.name, why, at_ms)));
    let put = differences.iter().filter_map(|one| {
        let body = one.after.clone()?;
        Some(Row { kind: one.kind, name: one.name.clone(), body })
    });
    let gone = differences.iter().filter(|one| one.after.is_none());
    let change = Change {
        expect: Some(there.epoch),
        put: put.collect(),
        remove: gone.map(|one| (one.kind, one.name.clone())).collect(),
        node: service.engine.node(),
        entries,
    };
    match service.store.change(change).await? {
        Changed::Done { epoch } => Ok(Some(epoch)),
        Changed::Stale { .. } => Ok(None),
    }
}
