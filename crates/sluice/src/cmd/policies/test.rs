//! `sluice policies test`.

use super::{files, told};
use crate::Exit;
use crate::cli::registry::Test;
use crate::local::Local;
use crate::out::Out;
use sluice_server::service::backtest::{With, compare};
use sluice_server::service::policies;

pub(super) async fn run(args: &Test, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let there = local.store.registry(None).await?.rows;
    let after = policies::load(&files(&args.with, &there)?)?;
    let compared = compare(&local, &args.past.wanted(), With::Then, &after).await?;
    local.close().await;
    told::tell(&compared.object(), args.json.reader(), out)?;
    Ok(Exit::Done)
}
