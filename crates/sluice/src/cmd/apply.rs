//! `sluice apply`: applies a setup file to the registry.

use super::{print_diagnostics, print_report, print_unreadable};
use crate::Exit;
use crate::cli::OutputFormat;
use crate::cli::registry::Apply;
use crate::input;
use crate::out::Out;
use crate::problem::Unreadable;
use crate::refused::unreadable;
use crate::registry::change;
use serde_json::json;
use sluice_core::diagnostic::Diagnostic;
use sluice_core::doc::setup::{FileRow, RowFault, Setup};
use sluice_core::rows;
use sluice_govern::registry::{Kind, PolicySet, Row};
use sluice_server::refused::Refused;
use sluice_server::refused::ServiceResult;
use sluice_server::service::document::Findings;
use sluice_server::service::document::Input;
use sluice_server::service::registry::{Mode, PlannedChange, RowChange, RowEdit};
use sluice_server::service::versions::{self, Document};
use std::path::Path;

/// Kinds of rows that `--prune` keeps: runs refer to them, or only operators set them.
const NOT_PRUNED: [Kind; 3] = [Kind::Workflow, Kind::Lens, Kind::Switch];

pub(super) async fn run(args: &Apply, out: &mut Out) -> anyhow::Result<Exit> {
    let output = args.by.json.output();
    let Some(edit) = read(args, output, out)? else { return Ok(Exit::Refused) };
    let mode = if args.dry_run { Mode::Look } else { Mode::Write };
    change(&args.by, mode, &edit, out).await
}

/// A setup with the files that it names.
struct SetupChange {
    input: Input,
    setup: Setup,
    rows: Vec<Row>,
    documents: Vec<Document>,
    rest: UnnamedRows,
}

/// What happens to rows that the file does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnnamedRows {
    Keep,
    Remove,
}

impl RowEdit for SetupChange {
    fn rows(&self, stored: &[Row]) -> ServiceResult<PlannedChange> {
        let mut put = self.rows.clone();
        put.extend(versions::rows(&self.documents, stored)?);
        let mut remove = Vec::new();
        if self.rest == UnnamedRows::Remove {
            let spare = |row: &&Row| {
                let named = rows::find(&put, row.kind, &row.name).is_some();
                !named && !NOT_PRUNED.contains(&row.kind)
            };
            remove.extend(stored.iter().filter(spare).map(|row| (row.kind, row.name.clone())));
        }
        let refused = versions::check(&self.documents, &rows::with(stored, &put, &remove))?;
        if !refused.is_empty() {
            return Ok(PlannedChange::Refused(refused));
        }
        Ok(PlannedChange::Rows(RowChange { put, remove }))
    }

    fn place(&self, faults: Vec<RowFault>) -> (Vec<Findings>, Vec<RowFault>) {
        let (diagnostics, others) = self.setup.place(faults);
        if diagnostics.is_empty() {
            return (Vec::new(), others);
        }
        (vec![Findings { input: self.input.clone(), diagnostics }], others)
    }
}

/// Reads the file and all it names; none if one is refused, which is reported.
fn read(args: &Apply, output: OutputFormat, out: &mut Out) -> anyhow::Result<Option<SetupChange>> {
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, output, out)?;
            return Ok(None);
        }
    };
    let (setup, diagnostics) = match input.text() {
        Ok(text) => Setup::parse(text),
        Err(diagnostics) => (None, diagnostics),
    };
    let Some(setup) = setup else {
        print(&input, &diagnostics, output, out)?;
        return Ok(None);
    };
    if output == OutputFormat::Text {
        print_diagnostics(&input, &diagnostics, out)?;
    }
    let rest = if args.prune { UnnamedRows::Remove } else { UnnamedRows::Keep };
    let dir = Path::new(&args.file).parent().unwrap_or(Path::new("")).to_owned();
    let (rows, documents) = (setup.rows.clone(), Vec::new());
    let mut whole = SetupChange { input, setup, rows, documents, rest };
    for file in whole.setup.files.clone() {
        if !add_file(&mut whole, &dir, &file, output, out)? {
            return Ok(None);
        }
    }
    if let Some(policy_dir) = &whole.setup.policy_dir {
        for path in crate::policies::directory(&dir.join(policy_dir))? {
            let (name, text) = crate::policies::read_file(&path)?;
            let body = json!({"text": text, "set": PolicySet::Active});
            // A policy in the setup takes precedence over the directory.
            if rows::find(&whole.rows, Kind::Policy, &name).is_none() {
                whole.rows.push(Row { kind: Kind::Policy, name, body });
            }
        }
    }
    Ok(Some(whole))
}

/// Adds a file that the setup names; false if it is refused, which is reported.
fn add_file(
    whole: &mut SetupChange,
    dir: &Path,
    file: &FileRow,
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<bool> {
    let path = dir.join(&file.path);
    let name = file.name.clone().unwrap_or_default();
    match file.kind {
        Kind::Policy => {
            let (_, text) = crate::policies::read_file(&path)?;
            let body = json!({"text": text, "set": file.set});
            whole.rows.push(Row { kind: Kind::Policy, name, body });
        }
        Kind::Lens => {
            let input = read_named(&path)?;
            let (row, diagnostics) = match input.text() {
                Ok(text) => Setup::lens(&name, text),
                Err(diagnostics) => (None, diagnostics),
            };
            let Some(row) = row else {
                print(&input, &diagnostics, output, out)?;
                return Ok(false);
            };
            whole.rows.push(row);
        }
        _ => whole.documents.push(Document::new(read_named(&path)?)),
    }
    Ok(true)
}

fn read_named(path: &Path) -> Result<Input, Refused> {
    input::read(path.as_os_str()).map_err(|file: Unreadable| unreadable(&file))
}

fn print(
    input: &Input,
    diagnostics: &[Diagnostic],
    output: OutputFormat,
    out: &mut Out,
) -> anyhow::Result<()> {
    match output {
        OutputFormat::Text => print_diagnostics(input, diagnostics, out),
        OutputFormat::Json => print_report(input, diagnostics, out),
    }
}
