//! `sluice policies test`.

use super::{comparison, files};
use crate::Exit;
use crate::backend;
use crate::cli::registry::Test;
use crate::out::Out;
use crate::registry::load;

pub(super) async fn run(args: &Test, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.target.data).await?;
    let files = files(&args.with, &load(&client).await?.rows)?;
    let compared = comparison::request(&client, &files, None, &args.past).await?;
    client.close().await;
    comparison::print(&compared, args.target.output(), out)?;
    Ok(Exit::Done)
}
