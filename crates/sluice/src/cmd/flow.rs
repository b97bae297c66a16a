//! What the commands about the flow of data know besides a document.

use super::tools;
use crate::cli::run::Data;
use crate::input;
use crate::referenced_documents::gather;
use crate::refused::unreadable;
use crate::registry::load_rows;
use sluice_core::doc::Registry;
use sluice_core::doc::setup::Setup;
use sluice_core::flow::FlowDocument;
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::Policies;
use sluice_govern::registry::{Fabric, Row};
use sluice_server::refused::Refused;
use sluice_server::service::document::Input;
use sluice_server::service::flow::FlowDocuments;
use sluice_server::service::policies;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The code of a document with errors.
const REFUSED: &str = "document_refused";
/// The word for the policies and rows in force.
const ACTIVE: &str = "active";

/// Rows and tools.
pub(super) struct FlowSetting {
    rows: Vec<Row>,
    pub(super) fabric: Fabric,
    pub(super) catalog: Catalog,
}

impl FlowSetting {
    /// The rows of a setup, or else those in force.
    pub(super) async fn load(setup: Option<&OsString>, data: &Data) -> anyhow::Result<FlowSetting> {
        let rows = match setup {
            Some(name) => rows_of(name)?,
            None => load_rows(data).await.unwrap_or_default(),
        };
        Ok(FlowSetting {
            fabric: Fabric::read(0, &rows),
            catalog: tools::catalog(data).unwrap_or_default(),
            rows,
        })
    }

    /// The policies that a command names: `active`, or a file or directory.
    pub(super) async fn policies(named: &OsStr, data: &Data) -> anyhow::Result<Policies> {
        let files = if named == ACTIVE {
            policies::active(&load_rows(data).await?)?
        } else {
            crate::policies::read(&[named.to_owned()])?
        };
        Ok(Policies::load(&files).map_err(|errors| policies::refused(&errors))?)
    }

    /// A document with its sub-workflows, in its directory or in the registry.
    pub(super) fn documents(
        &self,
        input: Input,
        registry: Registry,
    ) -> Result<FlowDocuments, Refused> {
        let name = input.name.clone();
        let (documents, findings) = gather(input, registry, &self.rows)?;
        let Some(documents) = documents else {
            let refused = findings.last().map_or("", |found| &found.input.name);
            let message = format!("`{refused}` has errors");
            return Err(Refused::new(REFUSED, message, "`sluice validate` shows them"));
        };
        let found = findings.iter().skip(1).zip(&documents.bring);
        let names: BTreeMap<_, &str> =
            found.map(|(one, stored)| (stored.hash, one.input.name.as_str())).collect();
        let mut children = BTreeMap::new();
        for (reference, hash) in &documents.children {
            if let Some(stored) = documents.bring.iter().find(|one| one.hash == *hash) {
                let name = names.get(hash).copied().unwrap_or(reference).to_owned();
                let definition = stored.definition.clone();
                children.insert(reference.clone(), FlowDocument { name, definition });
            }
        }
        let main = FlowDocument { name, definition: documents.main.definition };
        Ok(FlowDocuments { main, children })
    }
}

/// The rows of a setup file.
fn rows_of(name: &OsStr) -> Result<Vec<Row>, Refused> {
    let input = input::read(name).map_err(|file| unreadable(&file))?;
    let text = input.lossy();
    let (setup, diagnostics) = Setup::parse(&text);
    let rows = setup.map(|setup| setup.rows);
    rows.ok_or_else(|| {
        let message = format!("the setup `{}` has errors", input.name);
        let place = |one: &sluice_core::diagnostic::Diagnostic| {
            format!("{}:{}: {}", one.line, one.column, one.message)
        };
        let notes = diagnostics.iter().filter(|one| one.is_error()).map(place).collect();
        let remedy = "`sluice apply --dry-run` shows them with their places";
        Refused::new(REFUSED, message, remedy).with_notes(notes)
    })
}
