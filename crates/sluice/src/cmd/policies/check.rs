//! `sluice policies check`.

use crate::Exit;
use crate::cli::OutputFormat;
use crate::cli::registry::CheckPolicies;
use crate::cmd::count;
use crate::out::{Layout, Out};
use crate::registry::load_rows;
use serde_json::{Value, json};
use sluice_govern::catalog::Catalog;
use sluice_govern::policy::{Policies, PolicyError};
use sluice_govern::registry::PolicySet;
use sluice_server::service::policies::{self, Files};

/// The set that is evaluated and never enforced.
const SHADOW: &str = "shadow";

pub(super) async fn run(args: &CheckPolicies, out: &mut Out) -> anyhow::Result<Exit> {
    let catalog = crate::policies::catalog(&args.target.data)?;
    let mut sets: Vec<(&str, Files)> = Vec::new();
    if args.paths.is_empty() {
        let stored = load_rows(&args.target.data).await?;
        sets.push(("active", policies::active(&stored)?));
        let shadow = policies::stored(&stored, PolicySet::Shadow)?;
        if !shadow.is_empty() {
            sets.push((SHADOW, shadow));
        }
    } else {
        sets.push(("files", crate::policies::read(&args.paths)?));
    }
    let mut exit = Exit::Done;
    for (name, files) in &sets {
        let loaded = load(name, files, catalog.as_ref());
        if loaded.is_err() {
            exit = Exit::Refused;
        }
        match (args.target.output(), loaded) {
            (OutputFormat::Json, loaded) => out.json(Layout::Line, &report(name, loaded))?,
            (OutputFormat::Text, Ok(loaded)) => {
                let policies = match loaded.rules().len() {
                    1 => "1 policy".to_owned(),
                    several => format!("{several} policies"),
                };
                out.print(&format!("{name}: ok, {policies} in {}\n", count(files.len(), "file")))?;
            }
            (OutputFormat::Text, Err(errors)) => return Err(policies::refused(&errors).into()),
        }
    }
    Ok(exit)
}

/// Loads a set as if it were stored now: a shadow set has fewer requirements.
fn load(
    name: &str,
    files: &Files,
    catalog: Option<&Catalog>,
) -> Result<Policies, Vec<PolicyError>> {
    match name {
        SHADOW => policies::load_new(files, catalog),
        _ => policies::load_for_force(files, catalog, []),
    }
}

fn report(name: &str, loaded: Result<Policies, Vec<PolicyError>>) -> Value {
    match loaded {
        Ok(loaded) => {
            let count = loaded.rules().len();
            json!({"set": name, "ok": true, "policies": count, "hash": loaded.hash(), "errors": []})
        }
        Err(errors) => {
            let errors = errors.iter().map(
                |error| json!({"file": error.file, "line": error.line, "message": error.message}),
            );
            json!({"set": name, "ok": false, "errors": errors.collect::<Vec<_>>()})
        }
    }
}
