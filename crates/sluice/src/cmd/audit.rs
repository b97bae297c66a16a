//! `sluice audit`.

mod adopt;
mod export;
mod fact;
mod seal;
mod tail;
mod verify;

use crate::Exit;
use crate::cli::audit::Audit;
use crate::out::Out;

pub(super) async fn run(command: &Audit, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Audit::Verify(args) => verify::run(args, out).await,
        Audit::Export(args) => export::run(args, out).await,
        Audit::Tail(args) => tail::run(args, out).await,
        Audit::Seal(args) => seal::run(args, out).await,
        Audit::Adopt(args) => adopt::run(args, out).await,
    }
}
