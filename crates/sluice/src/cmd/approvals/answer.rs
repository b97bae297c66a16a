//! An answer on its way to the run that asked; `retry`, `skip` and `abort` are
//! no more than that.

use crate::Exit;
use crate::cli::approvals::{By, Choose};
use crate::client::{Client, fields, only_here};
use crate::cmd::told::{self, Told};
use crate::desk::{self, Desk};
use crate::local::{self, Again};
use crate::out::Out;
use anyhow::Context as _;
use serde_json::{Map, Value, json};
use sluice_core::run::command::Decision;
use sluice_core::run::state::Run;
use sluice_core::visible;
use sluice_server::auth::Caller;
use sluice_server::service::approvals::{self, Answer};
use sluice_server::service::find;

/// An answer that is only a choice.
pub(super) async fn choose(
    args: &Choose,
    decision: Decision,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let comment = args.comment.clone();
    let answer = Answer { decision, comment, values: Map::new(), constraints: None };
    give(&args.approval.id, answer, &args.by, out).await
}

/// Gives an answer and says how the run goes on.
pub(super) async fn give(id: &str, answer: Answer, by: &By, out: &mut Out) -> anyhow::Result<Exit> {
    let local = match Desk::write(&by.data).await? {
        Desk::Here(local) => local,
        Desk::There(client) => return there(&client, id, answer, by, out).await,
    };
    let (run, approval) = find::approval(&local, id).await?;
    let decision = answer.decision;
    let who = local::who(&by.name);
    let caller = Caller::owner(&who, local::roles(&by.role));
    let before = run.approvals[&approval].votes.len();
    // Closed, or with one answer more where several are needed.
    let closed = |run: &Run| {
        let asked = run.approvals.get(&approval);
        asked.is_some_and(|asked| asked.resolution.is_some() || asked.votes.len() > before)
    };
    let command = approvals::command(approval, answer, &caller);
    let told = told::tell(&local, run.id, command, closed, out).await?;
    let word = word(decision);
    let step = run.approvals.get(&approval).map(|asked| run.name(asked.at)).unwrap_or_default();
    let step = visible::brief(&step);
    let root = run.started.root.unwrap_or(run.id);
    let again = Again::of(&by.data, None);
    let next = match told {
        Told::Here if find::load(&local, root).await?.status.is_terminal() => String::new(),
        Told::Here => {
            format!("\n`sluice resume {root}{again}` goes on with the run", again = again.look)
        }
        Told::There | Told::Sent => String::new(),
    };
    let now = find::load(&local, run.id).await?;
    let open = now.approvals.get(&approval).filter(|asked| asked.resolution.is_none());
    if let Some(asked) = open.filter(|_| told != Told::Sent && decision == Decision::Approve) {
        let (votes, quorum) = (asked.votes.len(), asked.quorum);
        let who = visible::brief(&who);
        out.print(&format!(
            "{who} agrees to {step}; {votes} of {quorum}, others must agree too\n"
        ))?;
        local.close().await;
        return Ok(Exit::Done);
    }
    let is = if told == Told::Sent { "will be" } else { "is" };
    out.print(&format!("{step} {is} {word}{next}\n"))?;
    local.close().await;
    Ok(Exit::Done)
}

/// What a step is after an answer.
fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected",
        Decision::Retry => "to be tried again",
        Decision::Skip => "skipped",
        Decision::Abort => "given up",
    }
}

/// Gives an answer through a server, which knows who gives it, and in what role.
async fn there(
    client: &Client,
    id: &str,
    answer: Answer,
    by: &By,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    desk::by_token(&by.name)?;
    if !by.role.is_empty() {
        return Err(only_here("`--role`").into());
    }
    let decision = answer.decision;
    let body = fields([
        ("decision", decision.as_str().into()),
        ("comment", json!(answer.comment)),
        ("values", json!(answer.values)),
        ("constraints", json!(answer.constraints)),
    ]);
    let asked = client.get(&["approvals", id], &[]).await?.data;
    let id = asked["approval_id"].as_str().context("the server shows no id")?;
    let told = told::there(client, &["approvals", id, "resolve"], &body).await?.became();
    let now = client.get(&["approvals", id], &[]).await?.data;
    let text = |name: &str| visible::brief(now[name].as_str().unwrap_or_default()).into_owned();
    let (step, open) = (text("node_id"), now["status"] == "pending");
    if open && told != Told::Sent && decision == Decision::Approve {
        let votes = now["votes"].as_array().map_or(&[][..], Vec::as_slice);
        let who = visible::brief(votes.last().and_then(Value::as_str).unwrap_or_default());
        let (count, quorum) = (votes.len(), now["quorum"].as_u64().unwrap_or(1));
        out.print(&format!(
            "{who} agrees to {step}; {count} of {quorum}, others must agree too\n"
        ))?;
        return Ok(Exit::Done);
    }
    let is = if told == Told::Sent { "will be" } else { "is" };
    out.print(&format!("{step} {is} {}\n", word(decision)))?;
    Ok(Exit::Done)
}
