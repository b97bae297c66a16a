use super::*;

fn turn(progress: &mut Progress, counted: TokenCounts) {
    progress.begin_turn();
    progress.draft.counted = counted;
    progress.draft.model = Some("m".to_owned());
}

#[test]
fn turns_add_up_and_each_counts_once() {
    let mut progress = Progress::new();
    assert_eq!(progress.usage(), Usage { unpriced: true, ..Usage::default() });
    let counted = TokenCounts { input: 10, cached: 4, output: 3, thinking: 2, whole: true };
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
fn a_turn_without_token_counts_makes_the_cost_unknown() {
    let mut progress = Progress::new();
    turn(&mut progress, TokenCounts { input: 10, ..TokenCounts::default() });
    progress.settle();
    turn(&mut progress, TokenCounts { input: 10, whole: true, ..TokenCounts::default() });
    let usage = progress.usage();
    assert!(usage.unknown && usage.input_tokens == 20);
}

#[test]
fn a_rejected_turn_costs_nothing() {
    let mut progress = Progress::new();
    progress.begin_turn();
    progress.reject_turn();
    assert!(!progress.usage().unknown);
    progress.begin_turn();
    assert!(progress.usage().unknown, "it was sent");
}
