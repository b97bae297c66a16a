//! The wrong approvers, repeated votes, late votes.

use super::asks;
use crate::operator::{answer, governed, heard, open_approval, policy};
use crate::world::{RunningEngine, World, config, ended, start, step, until};
use sluice_core::id::{ApprovalId, RunId};
use sluice_core::run::command::{Command, Decision, Refusal};
use sluice_core::status::{RunStatus, StepStatus};
use sluice_engine::error::{CommandError, Delivered};
use std::time::Duration;

const MOCK: &str = "a: {text: done}";

fn flow(approval: &str) -> String {
    format!("name: flow\nsteps: [{{id: a, command: go, approval: {approval}}}]")
}

/// A run that waits for approval, started by `ada`.
async fn asked(approval: &str) -> (World, RunningEngine, RunId, ApprovalId) {
    let (world, life) = governed(MOCK, &[]).await;
    let mut start = start(&flow(approval));
    start.initiator = "ada".to_owned();
    let id = life.start(start).await.expect("it starts").run;
    let approval = open_approval(&asks(&life, id).await);
    (world, life, id, approval)
}

fn refusal(answered: Result<Delivered, CommandError>) -> Refusal {
    match answered {
        Err(CommandError::Refused(refusal)) => refusal,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_repeated_vote_has_no_effect() {
    let (world, life, id, approval) = asked("required").await;
    answer(&life, id, approval, Decision::Approve, "bob", &[]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
    for by in ["bob", "eve"] {
        let again = answer(&life, id, approval, Decision::Approve, by, &[]).await;
        assert_eq!(refusal(again).code(), "approval_resolved");
    }
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn an_old_vote_does_not_apply_to_the_next_attempt() {
    let (world, life) = governed("a: [{error: no}, {text: done}]", &[]).await;
    let flow = "
name: flow
steps: [{id: a, command: go, approval: required, on_failure: retry_once}]
";
    let id = life.start(start(flow)).await.unwrap().run;
    let first = open_approval(&asks(&life, id).await);
    answer(&life, id, first, Decision::Approve, "bob", &[]).await.unwrap();
    let asks_again = |run: &sluice_core::run::state::Run| run.approvals.len() == 2;
    let run = until(&life, id, asks_again).await;
    assert_eq!(world.calls("a").len(), 1, "a retry asks again");
    let again = answer(&life, id, first, Decision::Approve, "bob", &[]).await;
    assert_eq!(refusal(again), Refusal::Resolved("approved"));
    assert_eq!(world.calls("a").len(), 1);
    answer(&life, id, open_approval(&run), Decision::Approve, "bob", &[]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn of_two_concurrent_votes_one_wins_and_the_other_is_refused() {
    for (one, other) in [
        (Decision::Approve, Decision::Approve),
        (Decision::Approve, Decision::Reject),
        (Decision::Reject, Decision::Approve),
    ] {
        let (world, life, id, approval) = asked("required").await;
        let (first, second) = tokio::join!(
            answer(&life, id, approval, one, "bob", &[]),
            answer(&life, id, approval, other, "eve", &[]),
        );
        let won = usize::from(first.is_ok()) + usize::from(second.is_ok());
        assert_eq!(won, 1, "{first:?} {second:?}");
        let lost = if first.is_ok() { second } else { first };
        assert_eq!(refusal(lost).code(), "approval_resolved");
        let run = ended(&life, id).await;
        let approved = run.status == RunStatus::Completed;
        assert_eq!(world.calls("a").len(), usize::from(approved));
    }
}

/// Two processes: the vote of one reaches the other as a message.
#[tokio::test]
async fn of_two_votes_in_two_processes_one_is_applied() {
    let (world, life, id, approval) = asked("required").await;
    let other = world.boot_with(config()).await;
    let (first, second) = tokio::join!(
        answer(&life, id, approval, Decision::Approve, "bob", &[]),
        answer(&other, id, approval, Decision::Approve, "eve", &[]),
    );
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
    let run = ended(&life, id).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(run.approvals[&approval].votes.len(), 1);
    assert_eq!(world.calls("a").len(), 1);
}

#[tokio::test]
async fn an_initiator_cannot_approve_where_the_policy_forbids_it() {
    let (world, life, id, approval) = asked("{not_initiator: true}").await;
    let own = answer(&life, id, approval, Decision::Approve, "ada", &[]).await;
    assert_eq!(refusal(own), Refusal::SelfApproval("ada".to_owned()));
    assert!(world.calls("a").is_empty());
    answer(&life, id, approval, Decision::Approve, "bob", &[]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn only_a_named_approver_can_approve() {
    let (world, life, id, approval) = asked("{approvers: [bob, lead]}").await;
    for (by, roles) in [("eve", &[][..]), ("eve", &["leads"]), ("Bob", &[]), ("bob ", &[])] {
        let spoofed = answer(&life, id, approval, Decision::Approve, by, roles).await;
        assert_eq!(refusal(spoofed).code(), "not_approver", "{by} {roles:?}");
        let spoofed = answer(&life, id, approval, Decision::Reject, by, roles).await;
        assert_eq!(refusal(spoofed).code(), "not_approver", "{by} {roles:?}");
    }
    assert!(world.calls("a").is_empty());
    answer(&life, id, approval, Decision::Approve, "eve", &["lead"]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn the_approvers_of_a_policy_are_added_to_those_of_the_step() {
    let (world, life) = governed(MOCK, &[]).await;
    let text = "@id(\"ask\") @action(\"require_approval\") @approvers(\"security\") \
                forbid (principal, action == Action::\"dispatch_step\", resource);";
    policy(&*life.store(), "ask.cedar", text).await;
    heard().await;
    let id = life.start(start(&flow("{approvers: [bob]}"))).await.unwrap().run;
    let approval = open_approval(&asks(&life, id).await);
    answer(&life, id, approval, Decision::Approve, "bob", &[]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(world.calls("a").is_empty(), "one of each must agree");
    answer(&life, id, approval, Decision::Approve, "eve", &["security"]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_policy_that_names_an_approver_does_not_prevent_a_quorum() {
    let (world, life) = governed(MOCK, &[]).await;
    let text = "@id(\"ask\") @action(\"require_approval\") @approvers(\"bob\") \
                forbid (principal, action == Action::\"dispatch_step\", resource);";
    policy(&*life.store(), "ask.cedar", text).await;
    heard().await;
    let id = life.start(start(&flow("{quorum: 2}"))).await.unwrap().run;
    let approval = open_approval(&asks(&life, id).await);
    for by in ["eve", "dan"] {
        answer(&life, id, approval, Decision::Approve, by, &[]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(world.calls("a").is_empty(), "bob must agree");
    }
    answer(&life, id, approval, Decision::Approve, "bob", &[]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn one_person_is_no_quorum() {
    let (world, life, id, approval) = asked("{quorum: 2}").await;
    answer(&life, id, approval, Decision::Approve, "bob", &[]).await.unwrap();
    let again = answer(&life, id, approval, Decision::Approve, "bob", &["lead"]).await;
    assert_eq!(refusal(again), Refusal::AnsweredAlready("bob".to_owned()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(world.calls("a").is_empty());
    let run = life.load(id).await.unwrap();
    assert_eq!(step(&run, "a").status(), StepStatus::AwaitingApproval);
    answer(&life, id, approval, Decision::Approve, "eve", &[]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn one_rejection_ends_the_approval_whatever_the_other_votes() {
    let (world, life, id, approval) = asked("{quorum: 2}").await;
    answer(&life, id, approval, Decision::Approve, "bob", &[]).await.unwrap();
    answer(&life, id, approval, Decision::Reject, "eve", &[]).await.unwrap();
    assert_eq!(ended(&life, id).await.status, RunStatus::Failed);
    let late = answer(&life, id, approval, Decision::Approve, "dan", &[]).await;
    assert_eq!(refusal(late), Refusal::Resolved("rejected"));
    assert!(world.calls("a").is_empty());
}

#[tokio::test]
async fn an_expired_approval_cannot_be_resolved() {
    let (world, life, id, approval) = asked("{expires_in: 300ms}").await;
    // The run has no owner when its timeout expires.
    life.crash().await;
    tokio::time::sleep(Duration::from_millis(350)).await;
    let life = world.boot_with(config()).await;
    let late = answer(&life, id, approval, Decision::Approve, "bob", &[]).await;
    assert_eq!(refusal(late), Refusal::Resolved("expired"));
    let run = ended(&life, id).await;
    assert_eq!(run.end.as_ref().unwrap().error.as_ref().unwrap().0, "approval_rejected");
    assert!(world.calls("a").is_empty());
}

#[tokio::test]
async fn an_approval_of_a_cancelled_step_cannot_be_resolved() {
    let (world, life, id, approval) = asked("required").await;
    let cancel = Command::Cancel { by: "ada".to_owned(), reason: "enough".to_owned() };
    life.command(id, cancel, "cancel").await.unwrap();
    let late = answer(&life, id, approval, Decision::Approve, "bob", &[]).await;
    assert_eq!(refusal(late), Refusal::Resolved("cancelled"));
    assert!(world.calls("a").is_empty());
}
