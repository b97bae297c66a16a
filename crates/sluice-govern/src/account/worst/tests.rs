use super::*;
use proptest::prelude::*;

fn money(micro_cents: u64) -> Money {
    Money::from_micro_cents(micro_cents)
}

fn price(input: u64, output: u64, max_output_tokens: Option<u64>) -> Price {
    Price {
        input_cents_per_mtok: money(input),
        output_cents_per_mtok: money(output),
        cached_input_cents_per_mtok: None,
        max_output_tokens,
    }
}

/// 3 and 15 dollars for a million tokens.
fn usual() -> Price {
    price(300_000_000, 1_500_000_000, Some(4096))
}

fn priced(price: &Price, input_tokens: u64, max_output_tokens: Option<u64>) -> Costing<'_> {
    Costing::Priced { price, input_tokens, max_output_tokens }
}

fn known(micro_cents: u64, max_output_tokens: Option<u64>) -> Estimate {
    Estimate { worst: Worst::Known(money(micro_cents)), max_output_tokens }
}

#[test]
fn tokens_times_price_is_the_worst_case() {
    let usual = usual();
    // 1000 * 300 + 100 * 1500 micro-cents
    assert_eq!(worst(priced(&usual, 1000, Some(100)), None, None), known(450_000, Some(100)));
    let longest = 1000 * 300 + 4096 * 1500;
    assert_eq!(worst(priced(&usual, 1000, None), None, None), known(longest, Some(4096)));
}

#[test]
fn a_lower_ceiling_cuts_the_answer_and_a_higher_one_does_nothing() {
    let usual = usual();
    let costing = priced(&usual, 1000, Some(100));
    assert_eq!(worst(costing, Some(money(400_000)), None), known(400_000, Some(66)));
    assert_eq!(worst(costing, Some(money(500_000)), None), known(450_000, Some(100)));
    assert_eq!(worst(costing, None, Some(money(1))), known(450_000, Some(100)));
}

#[test]
fn a_ceiling_below_what_is_read_leaves_no_answer_and_is_not_believed() {
    let usual = usual();
    let costing = priced(&usual, 1000, Some(100));
    assert_eq!(worst(costing, Some(money(299_999)), None), known(300_000, Some(0)));
}

#[test]
fn without_a_longest_answer_a_ceiling_makes_one() {
    let endless = price(300_000_000, 1_500_000_000, None);
    let costing = priced(&endless, 1000, None);
    assert_eq!(worst(costing, None, None).worst, Worst::Unknown);
    assert_eq!(worst(costing, Some(money(450_000)), None), known(450_000, Some(100)));
    assert_eq!(worst(costing, None, Some(money(450_000))), known(450_000, Some(100)));
    let only_reading = price(300_000_000, 0, None);
    assert_eq!(worst(priced(&only_reading, 1000, None), None, None), known(300_000, None));
}

#[test]
fn without_a_price_only_a_ceiling_says_anything() {
    let (declared, fallback) = (Some(money(5)), Some(money(7)));
    assert_eq!(worst(Costing::Unpriced, declared, fallback), known(5, None));
    assert_eq!(worst(Costing::Unpriced, None, fallback), known(7, None));
    assert_eq!(worst(Costing::Unpriced, None, None).worst, Worst::Unknown);
    assert_eq!(worst(Costing::Free, declared, fallback), known(0, None));
}

#[test]
fn what_cannot_be_counted_is_as_much_as_can_be() {
    let dear = price(u64::MAX, u64::MAX, None);
    let costing = priced(&dear, u64::MAX, Some(u64::MAX));
    assert_eq!(worst(costing, None, None), known(u64::MAX, Some(u64::MAX)));
}

#[test]
fn texts_are_counted_high() {
    assert_eq!(input_tokens([]), OVERHEAD_TOKENS);
    assert_eq!(input_tokens(["abc", "é!"]), OVERHEAD_TOKENS + 2 + 3);
}

proptest! {
    #[test]
    fn an_answer_within_the_estimate_never_costs_more(
        input_price in 0..10_000_000_000_u64,
        output_price in 0..10_000_000_000_u64,
        input_tokens in 0..10_000_000_u64,
        longest in prop::option::of(0..1_000_000_u64),
        declared in prop::option::of(0..100_000_000_u64),
    ) {
        let price = price(input_price, output_price, None);
        let estimate = worst(priced(&price, input_tokens, longest), declared.map(money), None);
        if let (Worst::Known(most), Some(tokens)) = (estimate.worst, estimate.max_output_tokens) {
            let bill = Bill { price: &price, input_tokens };
            prop_assert!(bill.total(tokens) <= most);
            prop_assert!(longest.is_none_or(|longest| tokens <= longest));
        }
    }
}

#[test]
fn what_the_provider_had_kept_costs_less_and_everything_is_rounded_up() {
    let price = Price { cached_input_cents_per_mtok: Some(money(30_000_000)), ..usual() };
    let tokens = Tokens { input: 1000, cached: 400, output: 100 };
    assert_eq!(bill(&price, tokens), money(600 * 300 + 400 * 30 + 100 * 1500));
    let dear = Tokens { input: u64::MAX, cached: 0, output: u64::MAX };
    assert_eq!(bill(&price, dear), money(u64::MAX));
    let odd = Tokens { input: 1, cached: 5, output: 0 };
    assert_eq!(bill(&price, odd), money(30));
    let cheap = Price { input_cents_per_mtok: money(1), ..usual() };
    assert_eq!(bill(&cheap, Tokens { input: 1, ..Tokens::default() }), money(1));
}
