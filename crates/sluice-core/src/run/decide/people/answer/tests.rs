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
    // A name that is not a known group is a person, or a role of the answer.
    assert!(answers("ada", "ada", &[]));
    assert!(answers("legal", "ada", &["legal"]));
    assert!(!answers("ada", "ben", &["treasury"]));
}
