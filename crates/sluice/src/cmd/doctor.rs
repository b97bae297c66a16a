//! `sluice doctor`: is everything in order that Sluice needs here?
//!
//! Looks and never mends: nothing is made, brought up to date or put right.
//! Every line that is not fine says what to do.

mod data;
mod gateways;
mod rules;
mod secrets;
mod server;

use crate::Exit;
use crate::cli::{Doctor, Reader};
use crate::config;
use crate::keyring;
use crate::out::{Layout, Out};
use crate::place::Place;
use crate::table::Table;
use serde::Serialize;
use serde_json::json;
use sluice_server::refused::Refused;

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    health: Health,
    message: String,
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Check {
        Check { name, health: Health::Ok, message: message.into(), remedy: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Check {
        let remedy = Some(remedy.into());
        Check { name, health: Health::Warn, message: message.into(), remedy }
    }

    fn fail(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Check {
        let remedy = Some(remedy.into());
        Check { name, health: Health::Fail, message: message.into(), remedy }
    }

    fn refused(name: &'static str, refused: &Refused) -> Check {
        let notes = refused.notes.iter().map(|note| format!("; {note}"));
        let message = format!("{}{}", refused.message, notes.collect::<String>());
        Check::fail(name, message, refused.remedy.clone())
    }
}

pub(super) async fn run(args: &Doctor, out: &mut Out) -> anyhow::Result<Exit> {
    let mut checks = vec![settings()];
    let place = match Place::of(&args.data) {
        Ok(place) => place,
        Err(refused) => {
            checks.push(Check::refused("database", &refused));
            return tell(&checks, args.json.reader(), out);
        }
    };
    let dir = place.dir();
    let asked = config::get().server();
    if let Some(url) = asked {
        checks.extend(server::checks(url).await);
    }
    if asked.is_some() && !dir.exists() {
        return tell(&checks, args.json.reader(), out);
    }
    let keyring = keyring::of(&args.data);
    checks.extend(secrets::declared(&keyring));
    checks.extend(data::checks(&place));
    if let Some(store) = data::readable(&place) {
        checks.extend(rules::checks(&*store, &keyring).await);
        checks.push(data::clock(&*store).await);
        checks.extend(data::seal_file(&place, &*store).await);
    }
    tell(&checks, args.json.reader(), out)
}

/// What can be said when the settings themselves are refused.
pub(super) fn without_settings(
    args: &Doctor,
    refused: &Refused,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    tell(&[Check::refused("settings", refused)], args.json.reader(), out)
}

fn settings() -> Check {
    const NAME: &str = "settings";
    let config = config::get();
    match config.strays.as_slice() {
        [] => Check::ok(NAME, "every setting makes sense"),
        strays => Check::warn(NAME, strays.join("; "), "take it out of the environment"),
    }
}

fn tell(checks: &[Check], reader: Reader, out: &mut Out) -> anyhow::Result<Exit> {
    let worst = checks.iter().any(|check| check.health == Health::Fail);
    match reader {
        Reader::Program => out.json(Layout::Line, &json!({"ok": !worst, "checks": checks}))?,
        Reader::Person => {
            let mut table = Table::new(&["CHECK", "", ""]);
            for check in checks {
                let word = match check.health {
                    Health::Ok => "ok",
                    Health::Warn => "warn",
                    Health::Fail => "FAIL",
                };
                table.row([check.name.to_owned(), word.to_owned(), check.message.clone()]);
                if let Some(remedy) = &check.remedy {
                    table.row([String::new(), String::new(), format!("-> {remedy}")]);
                }
            }
            out.print(&table.draw())?;
        }
    }
    Ok(if worst { Exit::Failed } else { Exit::Done })
}
