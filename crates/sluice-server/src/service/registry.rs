//! Reads and changes rows of the registry. A change of several rows is atomic.
//!
//! INVARIANT: the rows that were checked are the rows that are written. The store refuses
//! a change if the registry has changed since it was read; then the rows are read,
//! compared and checked again.

use super::document::Findings;
use super::{RowOrigin, Service, policies};
use crate::auth::Caller;
use crate::refused::{
    CHANGE_REFUSED, REGISTRY_BUSY, ROW_IN_USE, ROW_UNKNOWN, ROW_UNREADABLE, Refused,
    SECRET_NOT_NAMED, SECRET_UNKNOWN, STORE_NOT_AUTHENTIC, ServiceResult, VERSION_TAKEN,
};
use crate::webhooks::start_position;
use serde_json::{Value, json};
use sluice_bridge::secret::keyring::Keyring;
use sluice_core::doc::setup::RowFault;
use sluice_core::doc::setup::section;
use sluice_core::port::Clock as _;
use sluice_core::port::ledger::{Change, Changed, Entry, ROLLED_BACK, Rows};
use sluice_core::rows::{self, Difference, RowAuthor};
use sluice_core::secret::SecretRef;
use sluice_core::suggest::suggest;
use sluice_core::visible;
use sluice_engine::world::SystemClock;
use sluice_govern::decision::Disposition;
use sluice_govern::policy::{self, PolicyFacts};
use sluice_govern::registry::{Kind, Row};

/// How often a change is tried when concurrent changes come first.
const TRIES: usize = 16;

/// The principal that changes rows.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// Name of the principal.
    pub name: &'a str,
    /// The reason to skip the policies in force. Only the owner of the data directory can
    /// set it; it is audited in category `security`.
    pub break_glass: Option<&'a str>,
}

impl<'a> From<&'a str> for Author<'a> {
    fn from(name: &'a str) -> Author<'a> {
        Author { name, break_glass: None }
    }
}

impl<'a> From<&'a Caller> for Author<'a> {
    fn from(caller: &'a Caller) -> Author<'a> {
        let glass = caller.operator.as_ref().and_then(|command| command.break_glass.as_deref());
        Author { name: &caller.name, break_glass: glass }
    }
}

impl<'a> From<&'a String> for Author<'a> {
    fn from(name: &'a String) -> Author<'a> {
        name.as_str().into()
    }
}

/// A change of rows.
#[derive(Debug, Clone, Default)]
pub struct RowChange {
    /// Rows to write.
    pub put: Vec<Row>,
    /// Rows to remove.
    pub remove: Vec<(Kind, String)>,
}

/// The change that an edit makes, or the errors of the documents that describe it.
pub enum PlannedChange {
    /// The rows to write and remove.
    Rows(RowChange),
    /// The documents are not valid.
    Refused(Vec<Findings>),
}

/// Computes a change from the stored rows.
pub trait RowEdit {
    /// The change to make.
    fn rows(&self, stored: &[Row]) -> ServiceResult<PlannedChange>;

    /// Locates faults in the documents of the change; returns faults of other rows as they are.
    fn place(&self, faults: Vec<RowFault>) -> (Vec<Findings>, Vec<RowFault>) {
        (Vec::new(), faults)
    }

    /// The change is refused if the registry has another epoch; `None` accepts any epoch.
    fn epoch(&self) -> Option<u64> {
        None
    }
}

impl<F: Fn(&[Row]) -> ServiceResult<RowChange>> RowEdit for F {
    fn rows(&self, stored: &[Row]) -> ServiceResult<PlannedChange> {
        self(stored).map(PlannedChange::Rows)
    }
}

/// Whether a change is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The change is written.
    Write,
    /// Dry run: the change is checked and not written.
    Look,
}

/// The result of a change.
pub enum ChangeOutcome {
    /// The change is valid: written, or checked in a dry run.
    Done {
        /// The rows that change.
        differences: Vec<Difference>,
        /// The epoch after the change.
        epoch: u64,
        /// Whether the change was written.
        mode: Mode,
        /// What is allowed, but probably a mistake.
        warnings: Warnings,
    },
    /// The documents are not valid.
    Refused(Vec<Findings>),
}

/// What a change contains that is allowed, but probably a mistake.
#[derive(Debug, Default)]
pub struct Warnings {
    /// Warnings that have a location in the documents of the change.
    pub placed: Vec<Findings>,
    /// Warnings about other rows.
    pub others: Vec<RowFault>,
}

impl Warnings {
    /// The warnings that the change adds.
    fn new(stored: &[Row], after: &[Row], edit: &impl RowEdit) -> Warnings {
        let known = rows::cautions(stored);
        let mut found = rows::cautions(after);
        found.retain(|one| !known.contains(one));
        let (placed, others) = edit.place(found);
        Warnings { placed, others }
    }

    /// All warnings as JSON objects.
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

/// The current time, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemClock.now_ms()
}

/// Finds a row by kind and name, or refuses with a suggestion.
pub fn row<'r>(stored: &'r [Row], kind: Kind, name: &str) -> Result<&'r Row, Refused> {
    rows::find(stored, kind, name).ok_or_else(|| {
        let shown = visible::brief(name);
        let message = format!("there is no {} `{shown}`", kind.noun());
        let near = suggest(name, rows::names(stored, kind));
        let remedy = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("`sluice {} list` lists them", section(kind)),
        };
        Refused::new(ROW_UNKNOWN, message, remedy)
    })
}

/// Applies an edit to the registry.
pub async fn change<'a>(
    service: &Service,
    by: impl Into<Author<'a>>,
    mode: Mode,
    edit: &impl RowEdit,
) -> ServiceResult<ChangeOutcome> {
    let by: Author<'a> = by.into();
    for _ in 0..TRIES {
        let stored = service.store.registry(None).await?;
        current(&stored)?;
        if edit.epoch().is_some_and(|epoch| epoch != stored.epoch) {
            break;
        }
        let change = match edit.rows(&stored.rows)? {
            PlannedChange::Rows(change) => change,
            PlannedChange::Refused(findings) => return Ok(ChangeOutcome::Refused(findings)),
        };
        authentic(&stored, &change)?;
        let author = (service.origin, &service.secrets);
        let after = settled(author, &stored.rows, &change, by.name)?;
        let differences = rows::diff(&stored.rows, &after);
        if let Some(findings) = check(&stored.rows, &after, &change, edit)? {
            return Ok(ChangeOutcome::Refused(findings));
        }
        if differences.is_empty() {
            let warnings = Warnings::default();
            return Ok(ChangeOutcome::Done { differences, epoch: stored.epoch, mode, warnings });
        }
        let warnings = Warnings::new(&stored.rows, &after, edit);
        policies::usable(&stored.rows, &after, Some(&service.engine.catalog()), by.name)?;
        if by.break_glass.is_none() {
            permitted(service, &stored.rows, &differences, by.name).await?;
        }
        if mode == Mode::Look {
            return Ok(ChangeOutcome::Done { differences, epoch: stored.epoch, mode, warnings });
        }
        let feed_end = service.store.feed_end().await?;
        if let Some(epoch) = write(service, &stored, &differences, by).await? {
            let (store, before) = (&*service.store, &stored.rows);
            // The rows are already written: a webhook without a position begins at the end
            // of the feed when the delivery task first sees it.
            if let Err(error) = start_position::update(store, before, &after, feed_end).await {
                tracing::warn!(%error, "positions of new webhooks could not be stored");
            }
            return Ok(ChangeOutcome::Done { differences, epoch, mode, warnings });
        }
    }
    let message = "concurrent changes of the registry kept coming first";
    Err(Refused::new(REGISTRY_BUSY, message, "try again").into())
}

/// What a change would do to these rows. Only the server that has them evaluates its
/// policies, and knows its secrets and tools.
pub fn preview(
    stored: &[Row],
    origin: RowOrigin,
    by: &str,
    edit: &impl RowEdit,
) -> ServiceResult<ChangeOutcome> {
    let change = match edit.rows(stored)? {
        PlannedChange::Rows(change) => change,
        PlannedChange::Refused(findings) => return Ok(ChangeOutcome::Refused(findings)),
    };
    let after = settled((origin, &Keyring::default()), stored, &change, by)?;
    if let Some(findings) = check(stored, &after, &change, edit)? {
        return Ok(ChangeOutcome::Refused(findings));
    }
    let differences = rows::diff(stored, &after);
    let mut warnings = Warnings::default();
    if !differences.is_empty() {
        warnings = Warnings::new(stored, &after, edit);
        policies::usable(stored, &after, None, by)?;
    }
    Ok(ChangeOutcome::Done { differences, epoch: 0, mode: Mode::Look, warnings })
}

/// Refuses to change rows that another process rolled back.
fn current(stored: &Rows) -> Result<(), Refused> {
    if !stored.is_rolled_back {
        return Ok(());
    }
    let remedy = "`sluice audit verify` names the rows; restore a backup, or accept the rows as \
                  they are with `sluice audit adopt`, and find out who can write to the store";
    Err(Refused::new(STORE_NOT_AUTHENTIC, ROLLED_BACK, remedy))
}

/// Refuses to change rows while a policy is not authentic, because what it would decide
/// about the change is unknown. Only a change that writes or removes that policy passes.
fn authentic(stored: &Rows, change: &RowChange) -> Result<(), Refused> {
    let is_asked = |kind: Kind, name: &str| {
        rows::find(&change.put, kind, name).is_some()
            || change.remove.iter().any(|(other, gone)| *other == kind && gone == name)
    };
    let policy = Kind::Policy.as_str();
    let foreign = stored.foreign.iter().filter(|(kind, _)| kind == policy);
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

/// The rows after the change.
fn settled(
    author: (RowOrigin, &Keyring),
    stored: &[Row],
    change: &RowChange,
    who: &str,
) -> Result<Vec<Row>, Refused> {
    let now_ms = now_ms();
    let mut put = Vec::new();
    for row in &change.put {
        let before = rows::find(stored, row.kind, &row.name);
        if let [version, ..] = rows::changed_versions(row, before)[..] {
            let (lens, version) = (visible::brief(&row.name), visible::brief(version));
            let message = format!(
                "version `{version}` of the lens `{lens}` exists already, with different content"
            );
            let remedy = "a version never changes: write the new content under another id";
            return Err(Refused::new(VERSION_TAKEN, message, remedy));
        }
        let mut settled = rows::settle(row.clone(), before, now_ms).map_err(|why| {
            let message = format!("the {} `{}` is not valid: {why}", row.kind.noun(), row.name);
            Refused::new(ROW_UNREADABLE, message, "write the row again")
        })?;
        entrust(author, &mut settled, before)?;
        rows::sign(&mut settled, before, who);
        put.push(settled);
    }
    Ok(rows::with(stored, &put, &change.remove))
}

/// Refuses a row that names a secret which its author may not name.
fn entrust(
    (origin, secrets): (RowOrigin, &Keyring),
    row: &mut Row,
    before: Option<&Row>,
) -> Result<(), Refused> {
    let author = match origin {
        RowOrigin::Operator => RowAuthor::Operator,
        RowOrigin::Server | RowOrigin::Client => RowAuthor::Organisation,
    };
    rows::entrust(row, before, author).map_err(|refused| {
        let (kind, name) = (refused.kind.noun(), visible::brief(&refused.name));
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
            if origin == RowOrigin::Server && !unchanged && !secrets.has(&secret) =>
        {
            let (kind, name) = (row.kind.noun(), visible::brief(&row.name));
            let message = format!(
                "the {kind} `{name}` names the secret `{secret}`, which is not declared for this \
                 organisation"
            );
            let remedy = "let the operator declare it under `[secrets]` in sluice.toml, with \
                          this organisation among its `organisations`";
            Err(Refused::new(SECRET_UNKNOWN, message, remedy))
        }
        _ => Ok(()),
    }
}

/// Checks references between rows. Faults that existed before the change are ignored.
fn check(
    stored: &[Row],
    after: &[Row],
    change: &RowChange,
    edit: &impl RowEdit,
) -> Result<Option<Vec<Findings>>, Refused> {
    let known = rows::faults(stored);
    let mut faults = rows::faults(after);
    faults.retain(|fault| !known.contains(fault));
    if faults.is_empty() {
        return Ok(None);
    }
    let (findings, others) = edit.place(faults);
    if !findings.is_empty() {
        return Ok(Some(findings));
    }
    let own = |fault: &&RowFault| rows::find(&change.put, fault.kind, &fault.name).is_some();
    let notes = others.iter().map(|fault| {
        let (kind, name, path) = (fault.kind.noun(), &fault.name, fault.path.join("."));
        format!("{kind} `{name}`, {path}: {}", fault.message)
    });
    let notes = notes.collect();
    let refused = match others.iter().find(own) {
        Some(fault) => {
            let remedy = fault.hint.clone();
            let remedy = remedy.unwrap_or_else(|| "create that row first".to_owned());
            Refused::new(fault.code.as_str(), "the row does not fit the other rows", remedy)
        }
        None => {
            let remedy = "change those rows first, or in the same file";
            Refused::new(ROW_IN_USE, "other rows still refer to what would be removed", remedy)
        }
    };
    Err(refused.with_notes(notes))
}

/// Whether policies decide about a change. Signing in changes no configuration, and a
/// token can always be revoked.
fn is_governed(one: &Difference) -> bool {
    let session = |after: &Value| after["session"] == true;
    one.kind != Kind::Token || one.after.as_ref().is_some_and(|after| !session(after))
}

/// Lets the policies in force decide about a change. A refusal is audited.
async fn permitted(
    service: &Service,
    stored: &[Row],
    differences: &[Difference],
    who: &str,
) -> ServiceResult<()> {
    let governed: Vec<&Difference> = differences.iter().filter(|one| is_governed(one)).collect();
    if governed.is_empty() {
        return Ok(());
    }
    let active = policies::load(&policies::active(stored)?, &service.engine.catalog())?;
    let at = now_ms();
    let mut notes = Vec::new();
    let mut entries = Vec::new();
    for one in governed {
        let what = row_id(one);
        let decided = policy::replay(&active, &PolicyFacts::of_change(at, who, &what));
        let why = match decided.disposition {
            Disposition::Allow => continue,
            Disposition::Block => decided.because.unwrap_or_default(),
            Disposition::Hold => "a policy requires an approval".to_owned(),
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
            detail: json!({"why": why, "matched": decided.matched, "policyHash": active.hash()}),
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

/// A row as policies and the audit identify it.
fn row_id(one: &Difference) -> String {
    format!("{}/{}", one.kind.as_str(), one.name)
}

/// The audit entry of a change that skipped the policies.
fn broken_glass(differences: &[Difference], who: &str, reason: &str, at_ms: u64) -> Entry {
    let rows: Vec<String> = differences.iter().map(row_id).collect();
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

/// Writes the differences; `None` if a concurrent change came first.
async fn write(
    service: &Service,
    stored: &Rows,
    differences: &[Difference],
    by: Author<'_>,
) -> ServiceResult<Option<u64>> {
    let at_ms = now_ms();
    let mut entries = rows::entries(differences, by.name, at_ms);
    entries.extend(by.break_glass.map(|why| broken_glass(differences, by.name, why, at_ms)));
    let put = differences.iter().filter_map(|one| {
        let body = one.after.clone()?;
        Some(Row { kind: one.kind, name: one.name.clone(), body })
    });
    let gone = differences.iter().filter(|one| one.after.is_none());
    let change = Change {
        expect: Some(stored.epoch),
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
