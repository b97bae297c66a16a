//! `sluice policies diff`.

use super::{comparison, files};
use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::registry::Diff;
use crate::out::{Layout, Out};
use crate::registry::load_rows;
use serde_json::{Value, json};
use sluice_core::visible;
use sluice_govern::choice::choices;
use sluice_govern::policy::{Policies, Rule};
use sluice_server::service::policies;
use std::collections::BTreeMap;
use std::slice;

pub(super) async fn run(args: &Diff, out: &mut Out) -> anyhow::Result<Exit> {
    let stored = load_rows(&args.target.data).await?;
    let old = files(slice::from_ref(&args.before), &stored)?;
    let new = files(slice::from_ref(&args.after), &stored)?;
    let catalog = crate::policies::catalog(&args.target.data)?.unwrap_or_default();
    let (before, after) = (policies::load(&old, &catalog)?, policies::load(&new, &catalog)?);
    let changes = changes(&before, &after);
    let compared = if args.decisions {
        let client = backend::read(&args.target.data).await?;
        let compared = comparison::request(&client, &new, Some(&old), &args.past).await?;
        client.close().await;
        Some(compared)
    } else {
        None
    };
    let output = args.target.output();
    if output == OutputFormat::Json {
        let policies: Vec<Value> = changes
            .iter()
            .map(|(name, change)| json!({"policy": name, "change": change}))
            .collect();
        out.json(Layout::Line, &json!({"policies": policies, "decisions": compared}))?;
        return Ok(Exit::Done);
    }
    for (name, change) in &changes {
        out.print(&format!("{} policy {}\n", change.sign(), visible::brief(name)))?;
    }
    if changes.is_empty() {
        out.print("no policy differs\n")?;
    }
    if let Some(compared) = compared {
        comparison::print(&compared, output, out)?;
    }
    Ok(Exit::Done)
}

choices! {
    /// How a policy changed.
    enum PolicyChange, "a change of a policy" {
        /// It is new.
        Added = "added",
        /// Its text is different.
        Changed = "changed",
        /// It is gone.
        Removed = "removed",
    }
}

impl PolicyChange {
    const fn sign(self) -> &'static str {
        match self {
            PolicyChange::Added => "+",
            PolicyChange::Changed => "~",
            PolicyChange::Removed => "-",
        }
    }
}

/// Changed policies, by name.
fn changes<'p>(before: &'p Policies, after: &'p Policies) -> BTreeMap<&'p str, PolicyChange> {
    let by_name = |set: &'p Policies| -> BTreeMap<&'p str, &'p Rule> {
        set.rules().iter().map(|rule| (rule.name.as_str(), rule)).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut changes = BTreeMap::new();
    for (name, rule) in &new {
        match old.get(name) {
            None => {
                changes.insert(*name, PolicyChange::Added);
            }
            Some(was) if was.digest != rule.digest => {
                changes.insert(*name, PolicyChange::Changed);
            }
            Some(_) => {}
        }
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    changes.extend(gone.map(|name| (*name, PolicyChange::Removed)));
    changes
}
