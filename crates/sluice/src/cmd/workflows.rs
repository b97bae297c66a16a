//! `sluice workflows`.

mod start;

use super::rows::{all, change, list, remove, tell};
use super::tell_unreadable;
use crate::Exit;
use crate::cli::registry::{Put, Workflows};
use crate::cli::rows::Show;
use crate::input;
use crate::out::Out;
use sluice_core::rows;
use sluice_govern::registry::{Kind, Row};
use sluice_server::refused::Done;
use sluice_server::service::registry::{Asked, Wanted, Wish};
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

async fn show(args: &Show, out: &mut Out) -> anyhow::Result<Exit> {
    let rows = all(&args.data).await?;
    tell(versions::find(&rows, &args.row.name)?, args.json.reader(), out)?;
    Ok(Exit::Done)
}

/// Documents that become versions.
struct Versions(Vec<Document>);

impl Wish for Versions {
    fn rows(&self, there: &[Row]) -> Done<Wanted> {
        let put = versions::rows(&self.0, there)?;
        let refused = versions::check(&self.0, &rows::with(there, &put, &[]))?;
        if !refused.is_empty() {
            return Ok(Wanted::Refused(refused));
        }
        Ok(Wanted::Rows(Asked { put, remove: Vec::new() }))
    }
}

async fn put(args: &Put, out: &mut Out) -> anyhow::Result<Exit> {
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            tell_unreadable(&unreadable, args.by.json.reader(), out)?;
            return Ok(Exit::Refused);
        }
    };
    change(&args.by, &Versions(vec![Document::new(input)]), out).await
}
