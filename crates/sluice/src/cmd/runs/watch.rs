//! `sluice runs watch`.

use crate::Exit;
use crate::cli::runs::Watch;
use crate::desk::Desk;
use crate::live::{self, Follow, Part};
use crate::local::Again;
use crate::out::Out;
use sluice_server::service::find;

pub(super) async fn run(args: &Watch, out: &mut Out) -> anyhow::Result<Exit> {
    let again = Again::of(&args.data, None);
    let local = match Desk::write(&args.data).await? {
        Desk::Here(local) => local,
        Desk::There(client) => {
            let run = super::id(&client, &args.run.id).await?;
            return live::follow_there(&client, &run, 0, args.view, &again.look, out).await;
        }
    };
    let run = find::run(&local, &args.run.id).await?.run;
    let (view, part) = (args.view, Part::Watch);
    let follow = Follow { local: &local, run, view, part, after: 0, again, stop: None };
    let exit = live::follow(follow, out).await?;
    local.close().await;
    Ok(exit)
}
