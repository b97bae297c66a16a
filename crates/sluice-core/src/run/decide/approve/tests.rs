use super::*;

fn names(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_known_group_is_answered_for_by_its_members_alone() {
    let known = BTreeSet::from(["treasury".to_owned()]);
    let answers =
        |group: &str, by: &str, roles: &[&str]| is_in(&names(&[group]), by, &names(roles), &known);
    assert!(answers("treasury", "ada", &["treasury"]));
    assert!(!answers("treasury", "treasury", &["approver"]));
    assert!(answers("group:treasury", "ada", &["treasury"]));
    assert!(!answers("group:treasury", "treasury", &[]));
    assert!(!answers("group:treasury", "group:treasury", &["group:treasury"]));
    assert!(answers("user:treasury", "treasury", &[]));
    assert!(!answers("user:treasury", "ada", &["treasury"]));
    // A name that is no group is a person, or a role that the owner of the directory says.
    assert!(answers("ada", "ada", &[]));
    assert!(answers("legal", "ada", &["legal"]));
    assert!(!answers("ada", "ben", &["treasury"]));
}

#[test]
fn everything_that_holds_a_dispatch_counts_together() {
    let hold = |approvers: &[&str], quorum, not_initiator| HoldBy {
        policy: None,
        approvers: names(approvers),
        quorum,
        not_initiator,
        reason: String::new(),
    };
    let agreement = |holds: &[HoldBy]| {
        let Agreement { groups, quorum, not_initiator } = Agreement::of(holds);
        (groups.len(), quorum, not_initiator)
    };
    assert_eq!(agreement(&[hold(&[], 1, false)]), (0, 1, false));
    assert_eq!(agreement(&[hold(&[], 3, false), hold(&["ada"], 2, true)]), (2, 3, true));
}
