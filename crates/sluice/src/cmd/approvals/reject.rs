//! `sluice approvals reject`.

use super::answer::{ApprovalDecision, resolve};
use crate::Exit;
use crate::cli::approvals::Reject;
use crate::out::Out;
use serde_json::Map;
use sluice_core::run::command::Decision;

pub(super) async fn run(args: &Reject, out: &mut Out) -> anyhow::Result<Exit> {
    let comment = Some(args.reason.clone());
    let decision = Decision::Reject;
    let resolution = ApprovalDecision { decision, comment, values: Map::new(), constraints: None };
    resolve(&args.approval.id, &resolution, &args.by, out).await
}
