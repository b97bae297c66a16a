//! `sluice approvals approve`.

use super::answer::{self, Answer};
use crate::Exit;
use crate::cli::approvals::Approve;
use crate::out::Out;
use sluice_core::run::command::Decision;

pub(super) async fn run(args: &Approve, out: &mut Out) -> anyhow::Result<Exit> {
    // The text is read as what the step declares, like an agent's answer.
    let values = args.set.iter().map(|(name, text)| (name.clone(), text.clone().into()));
    let answer = Answer {
        decision: Decision::Approve,
        comment: args.choose.comment.clone(),
        values: values.collect(),
    };
    answer::give(&args.choose.approval.id, answer, &args.choose.by, out).await
}
