//! `sluice policies diff`.

use super::{files, told};
use crate::Exit;
use crate::cli::Reader;
use crate::cli::registry::Diff;
use crate::desk::Desk;
use crate::out::{Layout, Out};
use crate::registry::known;
use serde_json::{Value, json};
use sluice_core::visible;
use sluice_govern::policy::{Policies, Rule};
use sluice_server::service::backtest::{With, compare};
use sluice_server::service::policies;
use std::collections::BTreeMap;
use std::slice;

pub(super) async fn run(args: &Diff, out: &mut Out) -> anyhow::Result<Exit> {
    let there = known(&args.data).await?;
    let old = files(slice::from_ref(&args.before), &there)?;
    let new = files(slice::from_ref(&args.after), &there)?;
    let (before, after) = (policies::load(&old)?, policies::load(&new)?);
    let changes = changes(&before, &after);
    let compared = match Desk::read(&args.data).await {
        _ if !args.decisions => None,
        Ok(Desk::There(client)) => Some(told::ask(&client, &new, Some(&old), &args.past).await?),
        Ok(Desk::Here(local)) => {
            let compared = compare(&local, &args.past.wanted(), With::Set(&before), &after).await?;
            local.close().await;
            Some(compared.object())
        }
        Err(error) => return Err(error),
    };
    let reader = args.json.reader();
    if reader == Reader::Program {
        let policies: Vec<Value> = changes
            .iter()
            .map(|(name, change)| json!({"policy": name, "change": change.word()}))
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
        told::tell(&compared, reader, out)?;
    }
    Ok(Exit::Done)
}

/// What became of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Changed,
    Removed,
}

impl Change {
    const fn word(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Changed => "changed",
            Change::Removed => "removed",
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Change::Added => "+",
            Change::Changed => "~",
            Change::Removed => "-",
        }
    }
}

/// Policies that differ, by name.
fn changes<'p>(before: &'p Policies, after: &'p Policies) -> BTreeMap<&'p str, Change> {
    let by_name = |set: &'p Policies| -> BTreeMap<&'p str, &'p Rule> {
        set.rules().iter().map(|rule| (rule.name.as_str(), rule)).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut changes = BTreeMap::new();
    for (name, rule) in &new {
        match old.get(name) {
            None => {
                changes.insert(*name, Change::Added);
            }
            Some(was) if was.digest != rule.digest => {
                changes.insert(*name, Change::Changed);
            }
            Some(_) => {}
        }
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    changes.extend(gone.map(|name| (*name, Change::Removed)));
    changes
}
