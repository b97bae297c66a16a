//! `sluice apply`: a file says what rows there are.

use super::rows::change_in;
use super::{tell_people, tell_report, tell_unreadable};
use crate::Exit;
use crate::cli::Reader;
use crate::cli::registry::Apply;
use crate::input;
use crate::out::Out;
use crate::problem::Unreadable;
use crate::refused::unreadable;
use serde_json::json;
use sluice_core::diagnostic::Diagnostic;
use sluice_core::doc::setup::{FileRow, Setup};
use sluice_core::rows::{self, RowFault};
use sluice_govern::registry::{Kind, PolicySet, Row};
use sluice_server::refused::Done;
use sluice_server::refused::Refused;
use sluice_server::service::document::Findings;
use sluice_server::service::document::Input;
use sluice_server::service::registry::{Asked, Mode, Wanted, Wish};
use sluice_server::service::versions::{self, Document};
use std::path::Path;

/// Kinds of rows that `--prune` leaves alone: what runs refer to, and what only
/// operators turn.
const NOT_PRUNED: [Kind; 3] = [Kind::Workflow, Kind::Lens, Kind::Switch];

pub(super) async fn run(args: &Apply, out: &mut Out) -> anyhow::Result<Exit> {
    let reader = args.by.json.reader();
    let Some(wish) = read(args, reader, out)? else { return Ok(Exit::Refused) };
    let mode = if args.dry_run { Mode::Look } else { Mode::Write };
    change_in(&args.by, mode, &wish, out).await
}

/// A setup with everything that stands in other files.
struct Whole {
    input: Input,
    setup: Setup,
    rows: Vec<Row>,
    documents: Vec<Document>,
    rest: Rest,
}

/// What becomes of rows that the file does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Stays,
    Goes,
}

impl Wish for Whole {
    fn rows(&self, there: &[Row]) -> Done<Wanted> {
        let mut put = self.rows.clone();
        put.extend(versions::rows(&self.documents, there)?);
        let mut remove = Vec::new();
        if self.rest == Rest::Goes {
            let spare = |row: &&Row| {
                let named = rows::find(&put, row.kind, &row.name).is_some();
                !named && !NOT_PRUNED.contains(&row.kind)
            };
            remove.extend(there.iter().filter(spare).map(|row| (row.kind, row.name.clone())));
        }
        let refused = versions::check(&self.documents, &rows::with(there, &put, &remove))?;
        if !refused.is_empty() {
            return Ok(Wanted::Refused(refused));
        }
        Ok(Wanted::Rows(Asked { put, remove }))
    }

    fn place(&self, faults: Vec<RowFault>) -> (Vec<Findings>, Vec<RowFault>) {
        let (diagnostics, others) = self.setup.place(faults);
        if diagnostics.is_empty() {
            return (Vec::new(), others);
        }
        (vec![Findings { input: self.input.clone(), diagnostics }], others)
    }
}

/// Reads the file and all it names; nothing if one is refused, which is told.
fn read(args: &Apply, reader: Reader, out: &mut Out) -> anyhow::Result<Option<Whole>> {
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            tell_unreadable(&unreadable, reader, out)?;
            return Ok(None);
        }
    };
    let (setup, diagnostics) = match input.text() {
        Ok(text) => Setup::parse(text),
        Err(diagnostics) => (None, diagnostics),
    };
    let Some(setup) = setup else {
        tell(&input, &diagnostics, reader, out)?;
        return Ok(None);
    };
    if reader == Reader::Person {
        tell_people(&input, &diagnostics, out)?;
    }
    let rest = if args.prune { Rest::Goes } else { Rest::Stays };
    let dir = Path::new(&args.file).parent().unwrap_or(Path::new("")).to_owned();
    let (rows, documents) = (setup.rows.clone(), Vec::new());
    let mut whole = Whole { input, setup, rows, documents, rest };
    for file in whole.setup.files.clone() {
        if !take(&mut whole, &dir, &file, reader, out)? {
            return Ok(None);
        }
    }
    if let Some(policy_dir) = &whole.setup.policy_dir {
        for path in crate::policies::directory(&dir.join(policy_dir))? {
            let (name, text) = crate::policies::one(&path)?;
            let body = json!({"text": text, "set": PolicySet::Active});
            // What the file itself says of a policy is nearer.
            if rows::find(&whole.rows, Kind::Policy, &name).is_none() {
                whole.rows.push(Row { kind: Kind::Policy, name, body });
            }
        }
    }
    Ok(Some(whole))
}

/// Adds what stands in another file; false if it is refused, which is told.
fn take(
    whole: &mut Whole,
    dir: &Path,
    file: &FileRow,
    reader: Reader,
    out: &mut Out,
) -> anyhow::Result<bool> {
    let path = dir.join(&file.path);
    let name = file.name.clone().unwrap_or_default();
    match file.kind {
        Kind::Policy => {
            let (_, text) = crate::policies::one(&path)?;
            let body = json!({"text": text, "set": file.set});
            whole.rows.push(Row { kind: Kind::Policy, name, body });
        }
        Kind::Lens => {
            let input = named(&path)?;
            let (row, diagnostics) = match input.text() {
                Ok(text) => Setup::lens(&name, text),
                Err(diagnostics) => (None, diagnostics),
            };
            let Some(row) = row else {
                tell(&input, &diagnostics, reader, out)?;
                return Ok(false);
            };
            whole.rows.push(row);
        }
        _ => whole.documents.push(Document::new(named(&path)?)),
    }
    Ok(true)
}

/// A file that the setup names.
fn named(path: &Path) -> Result<Input, Refused> {
    input::read(path.as_os_str()).map_err(|file: Unreadable| unreadable(&file))
}

fn tell(
    input: &Input,
    diagnostics: &[Diagnostic],
    reader: Reader,
    out: &mut Out,
) -> anyhow::Result<()> {
    match reader {
        Reader::Person => tell_people(input, diagnostics, out),
        Reader::Program => tell_report(input, diagnostics, out),
    }
}
