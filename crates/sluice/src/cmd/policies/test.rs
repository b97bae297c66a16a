//! `sluice policies test`.

use super::{files, told};
use crate::Exit;
use crate::cli::registry::Test;
use crate::desk;
use crate::local::Local;
use crate::out::Out;
use crate::registry::there;
use sluice_server::service::backtest::{With, compare};
use sluice_server::service::policies;

pub(super) async fn run(args: &Test, out: &mut Out) -> anyhow::Result<Exit> {
    if let Some(client) = desk::server()? {
        let files = files(&args.with, &there(&client).await?)?;
        let compared = told::ask(&client, &files, None, &args.past).await?;
        told::tell(&compared, args.json.reader(), out)?;
        return Ok(Exit::Done);
    }
    let local = Local::read(&args.data).await?;
    let there = local.store.registry(None).await?.rows;
    let after = policies::load(&files(&args.with, &there)?)?;
    let compared = compare(&local, &args.past.wanted(), With::Then, &after).await?;
    local.close().await;
    told::tell(&compared.object(), args.json.reader(), out)?;
    Ok(Exit::Done)
}
