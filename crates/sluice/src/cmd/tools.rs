//! `sluice tools`: lists and accepts the tool definitions of MCP servers.

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::tools::{AcceptTools, ListTools, ShowTool, Tools};
use crate::local;
use crate::out::{Layout, Out};
use serde_json::{Value, json};
use sluice_bridge::pinned::{Definition, FILE, Pin, PinFile};
use sluice_core::tools::names;
use sluice_core::visible;
use sluice_server::refused::{DATA_UNUSABLE, ROW_UNKNOWN, Refused};
use std::io;

pub(super) fn run(command: &Tools, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`tools`")?;
    match command {
        Tools::List(args) => list(args, out),
        Tools::Show(args) => show(args, out),
        Tools::Accept(args) => accept(args, out),
    }
}

fn list(args: &ListTools, out: &mut Out) -> anyhow::Result<Exit> {
    let pins = PinFile::new(&local::directory(&args.target.data))
        .read()
        .map_err(|error| unusable(&error))?;
    if args.target.output() == OutputFormat::Json {
        let data: Vec<Value> = pins.iter().map(|(name, pin)| shown(name, pin)).collect();
        out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        return Ok(Exit::Done);
    }
    for (name, pin) in &pins {
        out.print(&format!("{}  {}\n", visible::brief(name), status(pin)))?;
    }
    if pins.is_empty() {
        out.print("no tool was seen yet\n")?;
    }
    Ok(Exit::Done)
}

fn show(args: &ShowTool, out: &mut Out) -> anyhow::Result<Exit> {
    let pins = PinFile::new(&local::directory(&args.target.data))
        .read()
        .map_err(|error| unusable(&error))?;
    let pin = pins.get(&args.tool).ok_or_else(|| unknown(&args.tool))?;
    if args.target.output() == OutputFormat::Json {
        out.json(Layout::Line, &shown(&args.tool, pin))?;
        return Ok(Exit::Done);
    }
    let definition_text = |what: &str, one: &Definition| {
        let (description, schema) = (visible::line(&one.description), one.input_schema.to_string());
        format!("{what} {}\n{description}\n{}\n", one.digest, visible::line(&schema))
    };
    out.print(&definition_text("accepted", &pin.accepted))?;
    if let Some(changed) = &pin.changed {
        out.print(&definition_text("\nnow", changed))?;
    }
    Ok(Exit::Done)
}

fn accept(args: &AcceptTools, out: &mut Out) -> anyhow::Result<Exit> {
    let file = PinFile::new(&local::directory(&args.data));
    let pins = file.read().map_err(|error| unusable(&error))?;
    for wanted in &args.tools {
        let one = std::slice::from_ref(wanted);
        if !pins.keys().any(|name| names(one, name)) {
            return Err(unknown(wanted).into());
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

fn status(pin: &Pin) -> &'static str {
    if pin.changed.is_some() { "changed: not offered until it is accepted" } else { "accepted" }
}

fn shown(name: &str, pin: &Pin) -> Value {
    json!({"tool": name, "accepted": pin.accepted, "changed": pin.changed})
}

fn unknown(tool: &str) -> Refused {
    let message = format!("no tool `{}` is known", visible::brief(tool));
    Refused::new(ROW_UNKNOWN, message, "`sluice tools list` shows the tools that were")
}

fn unusable(error: &io::Error) -> Refused {
    let message = format!("`{FILE}` in the data directory cannot be used: {error}");
    let remedy = "correct it; without the file every tool is accepted when it is first seen";
    Refused::new(DATA_UNUSABLE, message, remedy)
}
