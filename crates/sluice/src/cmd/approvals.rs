//! `sluice approvals`.

mod answer;
mod approve;
mod list;
mod reject;
mod show;

use crate::Exit;
use crate::cli::approvals::Approvals;
use crate::out::Out;
use sluice_core::run::command::Decision;

pub(super) async fn run(command: &Approvals, out: &mut Out) -> anyhow::Result<Exit> {
    match command {
        Approvals::List(args) => list::run(args, out).await,
        Approvals::Show(args) => show::run(args, out).await,
        Approvals::Approve(args) => approve::run(args, out).await,
        Approvals::Reject(args) => reject::run(args, out).await,
        Approvals::Retry(args) => answer::choose(args, Decision::Retry, out).await,
        Approvals::Skip(args) => answer::choose(args, Decision::Skip, out).await,
        Approvals::Abort(args) => answer::choose(args, Decision::Abort, out).await,
    }
}
