//! `sluice doctor`: checks the installation.
//!
//! The checks change nothing: no file is created, migrated or repaired. Every warning and
//! failure has a remedy.

mod data;
mod gateways;
mod rules;
mod secrets;
mod server;
mod tools;

use crate::Exit;
use crate::cli::{Doctor, OutputFormat};
use crate::config;
use crate::data_location::DataLocation;
use crate::keyring;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde::Serialize;
use serde_json::json;
use sluice_server::refused::Refused;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    Warn,
    Fail,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    name: &'static str,
    health: Health,
    message: String,
    remedy: Option<String>,
}

impl DoctorCheck {
    fn ok(name: &'static str, message: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, health: Health::Ok, message: message.into(), remedy: None }
    }

    fn warn(
        name: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> DoctorCheck {
        let remedy = Some(remedy.into());
        DoctorCheck { name, health: Health::Warn, message: message.into(), remedy }
    }

    fn fail(
        name: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> DoctorCheck {
        let remedy = Some(remedy.into());
        DoctorCheck { name, health: Health::Fail, message: message.into(), remedy }
    }

    fn refused(name: &'static str, refused: &Refused) -> DoctorCheck {
        let notes = refused.notes.iter().map(|note| format!("; {note}"));
        let message = format!("{}{}", refused.message, notes.collect::<String>());
        DoctorCheck::fail(name, message, refused.remedy.clone())
    }
}

pub(super) async fn run(args: &Doctor, out: &mut Out) -> anyhow::Result<Exit> {
    let mut checks = vec![settings()];
    let place = match DataLocation::resolve(&args.target.data) {
        Ok(place) => place,
        Err(refused) => {
            checks.push(DoctorCheck::refused("database", &refused));
            return print(&checks, args.target.output(), out);
        }
    };
    let dir = place.dir();
    let asked = config::get().server();
    if let Some(url) = asked {
        checks.extend(server::checks(url).await);
    }
    if asked.is_some() && !dir.exists() {
        return print(&checks, args.target.output(), out);
    }
    let keyring = keyring::for_data(&args.target.data);
    checks.extend(secrets::declared(&keyring));
    checks.extend(tools::checks(dir, &config::get().tool_declarations()));
    checks.extend(data::checks(&place));
    if let Some(store) = data::readable(&place) {
        checks.extend(rules::checks(&*store, &keyring, &args.target.data).await);
        checks.push(data::clock(&*store).await);
        checks.extend(data::seal_file(&place, &*store).await);
    }
    print(&checks, args.target.output(), out)
}

/// Reports settings that are invalid.
pub(super) fn without_settings(
    args: &Doctor,
    refused: &Refused,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    print(&[DoctorCheck::refused("settings", refused)], args.target.output(), out)
}

fn settings() -> DoctorCheck {
    const NAME: &str = "settings";
    let config = config::get();
    match config.strays.as_slice() {
        [] => DoctorCheck::ok(NAME, "every setting makes sense"),
        strays => DoctorCheck::warn(NAME, strays.join("; "), "remove it from the environment"),
    }
}

fn print(checks: &[DoctorCheck], output: OutputFormat, out: &mut Out) -> anyhow::Result<Exit> {
    let worst = checks.iter().any(|check| check.health == Health::Fail);
    match output {
        OutputFormat::Json => out.json(Layout::Line, &json!({"ok": !worst, "checks": checks}))?,
        OutputFormat::Text => {
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
