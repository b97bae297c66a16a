//! Policy sets under which no principal may change policies.

use super::*;

const WORK: &str = "permit (principal, action in [Action::\"dispatch_step\", \
                    Action::\"start_run\"], resource);";

fn changeable(texts: &[&str]) -> Result<(), String> {
    let set = set(texts).unwrap();
    set.can_be_changed(["ada"], facts().at).map_err(|error| error.to_string())
}

#[test]
fn a_set_without_a_permit_for_changes_can_not_be_changed() {
    let why = changeable(&[WORK]).unwrap_err();
    assert!(why.contains("no policy lets a principal change policies"), "{why}");
    changeable(&[WORK, "permit (principal, action == Action::\"change_config\", resource);"])
        .unwrap();
    Policies::permit_all().can_be_changed([], 0).unwrap();
}

#[test]
fn one_principal_is_enough_wherever_it_is_named() {
    for rest in [
        "forbid (principal, action == Action::\"change_config\", resource) \
         unless { principal == User::\"root\" };",
        "forbid (principal is User, action == Action::\"change_config\", resource) \
         unless { [User::\"root\", User::\"ben\"].contains(principal) };",
        "forbid (principal, action == Action::\"change_config\", resource) \
         unless { context.run.initiator == \"root\" };",
        "forbid (principal, action == Action::\"change_config\", resource) \
         unless { context.run.initiator like \"ad*\" };",
        "forbid (principal, action == Action::\"change_config\", resource) \
         unless { context.time.weekday == \"wednesday\" && context.time.hour == 9 };",
        "forbid (principal, action == Action::\"change_config\", resource) \
         unless { resource == Row::\"policy/b.cedar\" };",
    ] {
        changeable(&[DEFAULT.1, rest]).unwrap_or_else(|why| panic!("{rest}: {why}"));
    }
    changeable(&[WORK, "permit (principal == User::\"root\", action, resource);"]).unwrap();
    changeable(&[
        WORK,
        "permit (principal == User::\"root\", action == Action::\"change_config\", \
         resource == Row::\"policy/more.cedar\");",
    ])
    .unwrap();
}

#[test]
fn other_rows_approvals_and_agents_are_no_way_back() {
    for rest in [
        "permit (principal, action == Action::\"change_config\", resource) \
         when { resource.kind == \"agent\" };",
        "permit (principal is Agent, action == Action::\"change_config\", resource);",
        "permit (principal, action == Action::\"change_config\", resource);\n\
         forbid (principal, action == Action::\"change_config\", resource) \
         when { resource.kind == \"policy\" };",
        "permit (principal, action == Action::\"change_config\", resource);\n\
         @action(\"require_approval\") \
         forbid (principal, action == Action::\"change_config\", resource);",
        "permit (principal, action == Action::\"change_config\", resource);\n\
         forbid (principal, action == Action::\"change_config\", resource) \
         unless { context.time.hour == 25 };",
    ] {
        assert!(changeable(&[WORK, rest]).is_err(), "{rest}");
    }
}
