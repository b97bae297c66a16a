//! `sluice config`.

use crate::Exit;
use crate::cli::{ConfigCommand, ConfigShow, OutputFormat};
use crate::config::{self, Source, secrets};
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};

pub(super) fn run(command: &ConfigCommand, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        ConfigCommand::Show(args) => show(args, out),
    }
}

fn show(args: &ConfigShow, out: &mut Out) -> anyhow::Result<Exit> {
    let config = config::get();
    match args.target.output() {
        OutputFormat::Json => {
            let settings = config.all().map(|(setting, value, from)| {
                json!({
                    "name": setting.name,
                    "value": value.map(config::value::Value::to_json),
                    "source": word(from),
                    "file": file(from),
                    "variable": setting.variable(),
                    "about": setting.about,
                })
            });
            let servers = config.tool_servers_from().map(|(server, path)| {
                json!({
                    "name": server.setting(),
                    "value": server.to_json(),
                    "source": "file",
                    "file": path.display().to_string(),
                    "variable": null,
                    "about": "a server of tools",
                })
            });
            let secrets = config.secrets_from().map(|(secret, path)| {
                json!({
                    "name": secrets::setting(secret),
                    "value": secrets::to_json(secret),
                    "source": "file",
                    "file": path.display().to_string(),
                    "variable": null,
                    "about": "a secret that rows may name",
                })
            });
            let data: Vec<Value> = settings.chain(servers).chain(secrets).collect();
            out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        }
        OutputFormat::Text => {
            let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
            for (setting, value, from) in config.all() {
                let value = value.map(ToString::to_string).unwrap_or_default();
                let from = file(from).unwrap_or_else(|| word(from).to_owned());
                table.row([setting.name.to_owned(), value, from]);
            }
            for (server, path) in config.tool_servers_from() {
                table.row([server.setting(), server.to_string(), path.display().to_string()]);
            }
            for (secret, path) in config.secrets_from() {
                let shown = secrets::shown(secret);
                table.row([secrets::setting(secret), shown, path.display().to_string()]);
            }
            out.print(&table.draw())?;
            for stray in &config.strays {
                out.note(&sluice_core::visible::brief(stray))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn word(from: &Source) -> &'static str {
    match from {
        Source::Default => "default",
        Source::File(_) => "file",
        Source::Environment => "environment",
        Source::Flag => "flag",
    }
}

fn file(from: &Source) -> Option<String> {
    match from {
        Source::File(path) => Some(path.display().to_string()),
        _ => None,
    }
}
