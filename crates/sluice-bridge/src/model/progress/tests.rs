use super::*;

fn turn(progress: &mut Progress, counted: Counted) {
    progress.begin();
    progress.draft.counted = counted;
    progress.draft.model = Some("m".to_owned());
}

#[test]
fn turns_add_up_and_each_counts_once() {
    let mut progress = Progress::new();
    assert_eq!(progress.usage(), Usage { unpriced: true, ..Usage::default() });
    let counted = Counted { input: 10, cached: 4, output: 3, thinking: 2, whole: true };
    for _ in 0..2 {
        turn(&mut progress, counted);
        progress.settle();
        progress.settle();
    }
    let usage = progress.usage();
    assert_eq!(usage, progress.usage());
    let figures =
        (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.thinking_tokens);
    assert_eq!(figures, (20, 8, 6, 4));
    assert!(!usage.unknown && usage.model.as_deref() == Some("m"));
}

#[test]
fn a_turn_without_its_figures_makes_the_cost_unknown_for_good() {
    let mut progress = Progress::new();
    turn(&mut progress, Counted { input: 10, ..Counted::default() });
    progress.settle();
    turn(&mut progress, Counted { input: 10, whole: true, ..Counted::default() });
    let usage = progress.usage();
    assert!(usage.unknown && usage.input_tokens == 20);
}

#[test]
fn a_turn_that_was_turned_away_cost_nothing() {
    let mut progress = Progress::new();
    progress.begin();
    progress.turned_away();
    assert!(!progress.usage().unknown);
    progress.begin();
    assert!(progress.usage().unknown, "it was sent");
}
