//! `sluice approvals reject`.

use super::answer;
use crate::Exit;
use crate::cli::approvals::Reject;
use crate::out::Out;
use serde_json::Map;
use sluice_core::run::command::Decision;
use sluice_server::service::approvals::Answer;

pub(super) async fn run(args: &Reject, out: &mut Out) -> anyhow::Result<Exit> {
    let comment = Some(args.reason.clone());
    let decision = Decision::Reject;
    let answer = Answer { decision, comment, values: Map::new(), constraints: None };
    answer::give(&args.approval.id, answer, &args.by, out).await
}
