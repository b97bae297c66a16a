//! `sluice policies`.

mod check;
mod comparison;
mod diff;
pub(super) mod explain;
mod init;
mod shadow;
mod test;

use super::rows::{list, remove, show};
use crate::Exit;
use crate::cli::OutputFormat;
use crate::cli::registry::Policies;
use crate::cli::rows::RowsList;
use crate::out::Out;
use crate::registry::load_rows;
use sluice_govern::registry::{Kind, PolicySet, Row};
use sluice_server::refused::{POLICIES_REFUSED, Refused};
use sluice_server::service::policies::{self, Files};
use std::ffi::OsString;

pub(super) async fn run(command: &Policies, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Policies::List(args) => all(args, out).await,
        Policies::Show(args) => show(Kind::Policy, args, out).await,
        Policies::Remove(args) => remove(Kind::Policy, args, out).await,
        Policies::Check(args) => check::run(args, out).await,
        Policies::Test(args) => test::run(args, out).await,
        Policies::Diff(args) => diff::run(args, out).await,
        Policies::Explain(args) => explain::run(args, out).await,
        Policies::Shadow(args) => shadow::run(args, out).await,
        Policies::Init(args) => init::run(args, out),
    }
}

async fn all(args: &RowsList, out: &mut Out) -> anyhow::Result<Exit> {
    let stored = policies::stored(&load_rows(&args.target.data).await?, PolicySet::Active)?;
    let exit = list(Kind::Policy, args, out).await?;
    if stored.is_empty() && args.target.output() == OutputFormat::Text {
        out.note("the default set is in force; `sluice policies init` writes it out")?;
    }
    Ok(exit)
}

/// The files of a policy set: `active`, `shadow`, or files and directories.
fn files(named: &[OsString], stored: &[Row]) -> Result<Files, Refused> {
    match named {
        [one] if one == "active" => policies::active(stored),
        [one] if one == "shadow" => {
            let files = policies::stored(stored, PolicySet::Shadow)?;
            if files.is_empty() {
                let message = "no policies are in shadow";
                let remedy = "`sluice policies shadow DIR` puts a set there";
                return Err(Refused::new(POLICIES_REFUSED, message, remedy));
            }
            Ok(files)
        }
        paths => crate::policies::read(paths),
    }
}
