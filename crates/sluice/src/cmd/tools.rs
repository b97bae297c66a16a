//! `sluice tools`: lists, shows and accepts the tools of MCP servers.

mod difference;

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::run::Data;
use crate::cli::tools::{AcceptTools, ListTools, ShowTool, Tools};
use crate::config;
use crate::local;
use crate::out::{Layout, Out};
use crate::table::Table;
use serde_json::{Value, json};
use sluice_bridge::pinned::{FILE, PinFile};
use sluice_core::tools::names;
use sluice_core::visible;
use sluice_govern::catalog::{Catalog, ServerDeclaration};
use sluice_server::refused::{DATA_UNUSABLE, Refused};
use sluice_server::service::tools::{self, DefinitionShown, ToolShown};
use std::collections::BTreeSet;
use std::io;

pub(super) async fn run(command: &Tools, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Tools::List(args) => list(args, out).await,
        Tools::Show(args) => show(args, out).await,
        Tools::Accept(args) => accept(args, out),
    }
}

async fn list(args: &ListTools, out: &mut Out) -> anyhow::Result<Exit> {
    let tools: Vec<ToolShown> = match backend::server()? {
        Some(client) => client.get(&["tools"], &[]).await?.read()?,
        None => tools::list(&catalog(&args.target.data)?),
    };
    if args.target.output() == OutputFormat::Json {
        let data: Vec<Value> = tools.iter().map(|tool| json!(tool)).collect();
        out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        return Ok(Exit::Done);
    }
    if tools.is_empty() {
        out.print("no tool was listed or declared yet\n")?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TOOL", "STATE", "READ-ONLY", "SENDS TO", "LABELS"]);
    for tool in tools {
        let read_only = if tool.read_only { "yes" } else { "no" };
        let sends_to = tool.sends_to.unwrap_or_default();
        let labels = tool.labels.join(", ");
        table.row([tool.tool, state(&tool.state), read_only.to_owned(), sends_to, labels]);
    }
    out.print(&table.draw())?;
    Ok(Exit::Done)
}

async fn show(args: &ShowTool, out: &mut Out) -> anyhow::Result<Exit> {
    let tool: ToolShown = match backend::server()? {
        Some(client) => client.get(&["tools", &args.tool], &[]).await?.read()?,
        None => tools::find(&catalog(&args.target.data)?, &args.tool)?,
    };
    if args.target.output() == OutputFormat::Json {
        out.json(Layout::Line, &json!(tool))?;
        return Ok(Exit::Done);
    }
    out.print(&format!("{}  {}\n", visible::brief(&tool.tool), state(&tool.state)))?;
    let sends_to = tool.sends_to.clone().unwrap_or_else(|| "not declared".to_owned());
    let arguments = tool.arguments.iter().map(|(path, role)| format!("{path} = {role}"));
    let arguments = arguments.collect::<Vec<String>>().join(", ");
    let read_only = if tool.read_only { "yes" } else { "no" };
    let mut declared = Table::plain();
    for (name, value) in [
        ("labels", tool.labels.join(", ")),
        ("read-only", read_only.to_owned()),
        ("sends to", sends_to),
        ("arguments", arguments),
        ("origin", tool.origin.join(", ")),
        ("sensitive", tool.sensitive.join(", ")),
        ("records", tool.records.join(", ")),
        ("private", tool.private.join(", ")),
        ("lists", tool.lists.join(", ")),
    ] {
        if !value.is_empty() {
            declared.row([name.to_owned(), value]);
        }
    }
    out.print(&declared.draw())?;
    match (&tool.accepted, &tool.changed) {
        (Some(accepted), Some(changed)) => {
            out.print(&definition("accepted", accepted))?;
            out.print(&format!("\nnow {}\n", visible::brief(&changed.digest)))?;
            for line in difference::lines(accepted, changed) {
                out.print(&format!("{}\n", visible::line(&line)))?;
            }
        }
        (Some(one), None) => out.print(&definition("accepted", one))?,
        (None, Some(one)) => out.print(&definition("now", one))?,
        (None, None) => {}
    }
    Ok(Exit::Done)
}

/// The digest and the text of a definition.
fn definition(what: &str, one: &DefinitionShown) -> String {
    let mut text = format!("\n{what} {}\n", visible::brief(&one.digest));
    for line in difference::text(one) {
        text.push_str(&visible::line(&line));
        text.push('\n');
    }
    text
}

fn accept(args: &AcceptTools, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`tools accept`")?;
    let file = PinFile::new(&local::directory(&args.data));
    let pins = file.read().map_err(|error| unusable(&error))?;
    for wanted in &args.tools {
        let one = std::slice::from_ref(wanted);
        if !pins.keys().any(|name| names(one, name)) {
            return Err(tools::unknown(wanted).into());
        }
    }
    let accepted =
        file.accept(&|name| names(&args.tools, name)).map_err(|error| unusable(&error))?;
    for name in &accepted {
        out.print(&format!("{} is accepted as it is now\n", visible::brief(name)))?;
    }
    if accepted.is_empty() {
        out.print("nothing has changed\n")?;
    }
    Ok(Exit::Done)
}

/// The tools of a data directory, or of the directory of a bridge.
pub(crate) fn catalog(data: &Data) -> Result<Catalog, Refused> {
    let pins = PinFile::new(&local::directory(data)).read().map_err(|error| unusable(&error))?;
    let mut servers = config::get().tool_declarations();
    // A server that is not configured any more, or only for a bridge.
    let named: BTreeSet<&str> =
        pins.keys().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    for name in named {
        if servers.iter().all(|server| &*server.name != name) {
            let server = ServerDeclaration { name: name.into(), ..ServerDeclaration::default() };
            servers.push(server);
        }
    }
    Ok(Catalog::new(&servers, pins.iter().map(|(name, pin)| (name.clone(), pin.clone()))))
}

fn state(word: &str) -> String {
    match word {
        "new" | "changed" => format!("{word}: not usable before it is accepted"),
        "unseen" => "unseen: no server has listed it".to_owned(),
        _ => visible::brief(word).into_owned(),
    }
}

fn unusable(error: &io::Error) -> Refused {
    let message = format!("`{FILE}` in the data directory cannot be used: {error}");
    let remedy = "correct it; without the file the first listing of every server is accepted";
    Refused::new(DATA_UNUSABLE, message, remedy)
}
