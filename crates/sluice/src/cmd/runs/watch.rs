//! `sluice runs watch`.

use crate::Exit;
use crate::cli::runs::Watch;
use crate::live::{self, Follow, Part};
use crate::local::{Again, Local};
use crate::out::Out;
use sluice_server::service::find;

pub(super) async fn run(args: &Watch, out: &mut Out) -> anyhow::Result<Exit> {
    let local = Local::look(&args.data).await?;
    let run = find::run(&local, &args.run.id).await?.run;
    let follow = Follow {
        local: &local,
        run,
        view: args.view,
        part: Part::Watch,
        after: 0,
        again: Again::of(&args.data, None),
    };
    let exit = live::follow(follow, out).await?;
    local.close().await;
    Ok(exit)
}
