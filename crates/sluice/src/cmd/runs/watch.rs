//! `sluice runs watch`.

use crate::Exit;
use crate::backend;
use crate::cli::runs::Watch;
use crate::live;
use crate::local::Again;
use crate::out::Out;

pub(super) async fn run(args: &Watch, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::read(&args.data).await?;
    let run = super::id(&client, &args.run.id).await?;
    let again = Again::from_options(&args.data, None).look;
    let exit = live::watch(&client, &run, 0, args.view, &again, out).await?;
    client.close().await;
    Ok(exit)
}
