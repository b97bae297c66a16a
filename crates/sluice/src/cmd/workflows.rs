//! `sluice workflows`.

mod start;

use super::print_unreadable;
use super::rows::{all, change, list, print, remove};
use crate::Exit;
use crate::cli::registry::{Put, Workflows};
use crate::cli::rows::RowsShow;
use crate::input;
use crate::out::Out;
use sluice_core::rows;
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::ServiceResult;
use sluice_server::service::registry::{PlannedChange, RowChange, RowEdit};
use sluice_server::service::versions::{self, Document};

pub(super) async fn run(command: &Workflows, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Workflows::List(args) => list(Kind::Workflow, args, out).await,
        Workflows::Show(args) => show(args, out).await,
        Workflows::Start(args) => start::run(args, out).await,
        Workflows::Put(args) => put(args, out).await,
        Workflows::Remove(args) => remove(Kind::Workflow, args, out).await,
    }
}

async fn show(args: &RowsShow, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.target.data).await?;
    print(versions::find(&rows, &args.row.name)?, args.target.output(), out)?;
    Ok(Exit::Done)
}

/// Registers documents as versions.
struct Versions(Vec<Document>);

impl RowEdit for Versions {
    fn rows(&self, stored: &[Row]) -> ServiceResult<PlannedChange> {
        let put = versions::rows(&self.0, stored)?;
        let refused = versions::check(&self.0, &rows::with(stored, &put, &[]))?;
        if !refused.is_empty() {
            return Ok(PlannedChange::Refused(refused));
        }
        Ok(PlannedChange::Rows(RowChange { put, remove: Vec::new() }))
    }
}

async fn put(args: &Put, out: &mut Out) -> anyhow::Result<Exit> {
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, args.by.json.output(), out)?;
            return Ok(Exit::Refused);
        }
    };
    change(&args.by, &Versions(vec![Document::new(input)]), out).await
}
