use super::*;
use crate::port::authority::fake::FakeAuthority as Desk;

fn listed(guards: Guards, desk: &Desk) -> Vec<String> {
    let shown = |guard: &Guard| match guard.max {
        Some(max) => format!("{} {:+} <= {max}", guard.counter, guard.delta),
        None => format!("{} {:+}", guard.counter, guard.delta),
    };
    guards.into_list(desk).iter().map(shown).collect()
}

#[test]
fn what_is_given_back_stands_before_what_is_taken_and_accounts_before_the_rest() {
    let desk = Desk::default();
    let mut guards = Guards::default();
    for name in ["a", "b"] {
        let one = guards.account(&desk, &name.into());
        one.held.add(-5);
        one.spent.add(3);
        one.spent.believe(Some(9));
        one.held.take(2, Some(7));
        one.over.take(0, Some(0));
    }
    guards.add(Name::busy("scribe"), -1);
    guards.note("spend|x".into(), 1);
    guards.note("spend|x".into(), 1);
    guards.take(Name::of("told:50:a"), 1, Some(1));
    guards.require_rows();
    assert_eq!(
        listed(guards, &desk),
        [
            "registry +0 <= 0",
            "held:a -5",
            "spent:a +3 <= 9",
            "held:b -5",
            "spent:b +3 <= 9",
            "busy:scribe -1",
            "spend|x +2",
            "held:a +2 <= 7",
            "over:a +0 <= 0",
            "held:b +2 <= 7",
            "over:b +0 <= 0",
            "told:50:a +1 <= 1",
        ]
    );
}

#[test]
fn a_change_that_goes_up_as_a_whole_is_one_and_keeps_its_bound() {
    let desk = Desk::default();
    let mut guards = Guards::default();
    let one = guards.account(&desk, &"a".into());
    one.held.add(-5);
    one.held.take(5, Some(7));
    one.held.take(1, Some(6));
    assert_eq!(listed(guards, &desk), ["held:a +1 <= 6"]);
}

#[test]
fn an_account_is_what_was_known_of_it_and_what_the_turn_did() {
    let mut desk = Desk::default();
    for (counter, count) in [("held:a", 10), ("spent:a", 4), ("over:a", 1)] {
        desk.counts.insert(counter.to_owned(), count);
    }
    let mut guards = Guards::default();
    assert_eq!(guards.tally(&desk, "a"), Tally { held: 10, spent: 4, over: 1, number: 0 });
    let one = guards.account(&desk, &"a".into());
    one.held.add(-3);
    one.held.take(2, None);
    one.spent.add(5);
    one.over.add(6);
    let changed = Tally { held: 9, spent: 9, over: 7, number: 0 };
    assert_eq!(one.tally(), changed);
    assert_eq!(guards.tally(&desk, "a"), changed);
    assert_eq!(guards.tally(&desk, "aa"), Tally::default());
}
