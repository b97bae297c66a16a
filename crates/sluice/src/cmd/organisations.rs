//! `sluice organisations`.

use crate::Exit;
use crate::backend;
use crate::cli::OutputFormat;
use crate::cli::serve::{AddOrganisation, ListOrganisations, Organisations};
use crate::local::Local;
use crate::organisation::{self, DEFAULT, ORGANISATION_UNKNOWN};
use crate::out::{Layout, Out};
use serde_json::json;
use sluice_core::visible;
use sluice_engine::agents::Agents;
use sluice_engine::config::Claims;
use sluice_server::limits::ORGANISATIONS_MAX;
use sluice_server::refused::Refused;

const ORGANISATION_EXISTS: &str = "organisation_exists";

pub(super) async fn run(command: &Organisations, out: &mut Out) -> anyhow::Result<Exit> {
    backend::only_data_directory("`organisations`")?;
    match command {
        Organisations::List(args) => list(args, out).await,
        Organisations::Add(args) => add(args, out).await,
    }
}

async fn list(args: &ListOrganisations, out: &mut Out) -> anyhow::Result<Exit> {
    let all = organisation::all(&args.target.data).await?;
    if args.target.output() == OutputFormat::Json {
        let data: Vec<_> = all.iter().map(|name| json!({"name": name})).collect();
        out.json(Layout::Line, &json!({"data": data, "meta": {"next_cursor": null}}))?;
        return Ok(Exit::Done);
    }
    for name in all {
        out.print(&format!("{name}\n"))?;
    }
    Ok(Exit::Done)
}

async fn add(args: &AddOrganisation, out: &mut Out) -> anyhow::Result<Exit> {
    let name = args.name.as_str();
    if !organisation::fits(name) {
        let message = format!("`{}` cannot be the name of an organisation", visible::brief(name));
        let remedy = "use 1 to 63 lower-case letters, digits and `-`";
        return Err(Refused::new(ORGANISATION_UNKNOWN, message, remedy).into());
    }
    let all = organisation::all(&args.data).await?;
    if name == DEFAULT || all.iter().any(|one| one == name) || all.len() >= ORGANISATIONS_MAX {
        let message = format!("the organisation `{name}` exists, or there are too many");
        let remedy = "choose another name; `sluice organisations list` shows the existing ones";
        return Err(Refused::new(ORGANISATION_EXISTS, message, remedy).into());
    }
    let data = organisation::data(&args.data, name);
    let local = Local::open(&data, Agents::new(), Claims::None).await?;
    let dir = organisation::directory(&args.data, name);
    let file = organisation::first_token(&local, &dir).await;
    local.close().await;
    let file = file?.map(|file| file.display().to_string()).unwrap_or_default();
    if args.json.output() == OutputFormat::Json {
        out.json(Layout::Line, &json!({"name": name, "token_file": file}))?;
    } else {
        out.print(&format!("{name} is added; its admin token is in {file}\n"))?;
    }
    Ok(Exit::Done)
}
