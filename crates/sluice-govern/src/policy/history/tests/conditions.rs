//! What conditions mean, on short histories.

use super::super::eval::{Events, holds};
use super::super::fact::{HistoryFact, HistoryValue, read_number, tests};
use super::super::formula::{UNIT, Value};
use super::super::parse::parse;
use super::super::postings::Postings;
use super::super::{History, HistoryScope};
use super::Lines;
use proptest::prelude::*;

const DAY: &str = "
    0s use_tool request+allowed+effective tool=bank.pay label=pays label=euro input.amount=5
    1s use_tool response tool=bank.pay label=pays label=euro input.amount=5
    2s use_tool request+allowed+effective tool=crm.read label=reads
    3s use_tool error tool=crm.read label=reads undoes=2
    4s use_tool request+denied tool=bank.pay label=pays input.amount=70
    60s dispatch_step response step=check
    90s use_tool request+effective tool=mail.send label=sends input.count=2
";

#[test]
fn a_condition_looks_back_over_its_window() {
    let day = Lines::new(DAY).with("context.input.amount", "70");
    for (condition, expected) in [
        (r#"formerly within 5m Action::"use_tool"::response { tool: "bank.pay" }"#, true),
        (r#"formerly within 88s Action::"use_tool"::response { tool: "bank.pay" }"#, false),
        (r#"formerly within 89s Action::"use_tool"::response { tool: "bank.pay" }"#, true),
        (r#"formerly within 1h Action::"use_tool"::response { label: "euro" }"#, true),
        (r#"formerly within 1h Action::"use_tool"::response { label: "sends" }"#, false),
        (r#"!formerly within 1h Action::"use_tool"::error { label: "pays" }"#, true),
        (r#"previous within 1h Action::"dispatch_step"::response { step: "check" }"#, true),
        (r#"previous within 29s Action::"dispatch_step"::response { step: "check" }"#, false),
        // It includes the request itself.
        (r#"count_within(1h, Action::"use_tool"::request {}) == 4"#, true),
        (r#"count_within(1h, Action::"use_tool"::effective {}) == 2"#, false),
        (r#"4 > count_within(30s, Action::"use_tool"::request {})"#, true),
        (
            r#"sum_within(a, 1h, Action::"use_tool"::request { label: "pays", input.amount: a }) == 75"#,
            true,
        ),
        (
            r#"sum a for (a: Long). where formerly within 1h Action::"use_tool"::request { input.amount: a } > 0"#,
            true,
        ),
        // A call that was refused for the same amount.
        (
            r#"formerly within 1h Action::"use_tool"::denied { input.amount: context.input.amount }"#,
            true,
        ),
        (
            r#"formerly within 1h Action::"use_tool"::response { input.amount: context.input.amount }"#,
            false,
        ),
        (
            r#"exists (a: Long). (formerly within 1h Action::"use_tool"::denied { input.amount: a } && a > 69)"#,
            true,
        ),
        (
            r#"exists (a: Long). (formerly within 1h Action::"use_tool"::denied { input.amount: a } && a > 70)"#,
            false,
        ),
        (r#"!Action::"use_tool"::error {} since within 1h Action::"use_tool"::denied {}"#, true),
        (r#"!Action::"use_tool"::error {} since within 1h Action::"use_tool"::response {}"#, false),
    ] {
        let found = match parse(condition) {
            Ok(formula) => holds(&formula, &day).unwrap(),
            Err(_) => false,
        };
        assert_eq!(found, expected, "{condition}");
    }
}

fn fact(condition: &str) -> HistoryFact {
    tests(HistoryScope::Run, &parse(condition).unwrap()).remove(0).1
}

#[test]
fn a_call_that_failed_is_effective_until_it_fails() {
    let fact = fact(r#"count_within(1h, Action::"use_tool"::effective {}) > 2"#);
    let day = Lines::new(DAY);
    let mut postings = Postings::default();
    let values: Vec<HistoryValue> =
        (0..day.count()).map(|last| fact.evaluate(&day.until(last), &mut postings, 0)).collect();
    let numbers = [1, 1, 2, 1, 1, 1, 2].map(|count| HistoryValue::Number(count * UNIT));
    assert_eq!(values, numbers);
}

#[test]
fn a_sum_without_a_number_is_not_known() {
    let fact = fact(
        r#"sum_within(a, 1h, Action::"use_tool"::effective { label: "pays", input.amount: a }) > 9"#,
    );
    let texts = Lines::new("1s use_tool effective label=pays input.amount=lots");
    let unknown = fact.evaluate(&texts, &mut Postings::default(), 0);
    let HistoryValue::Unknown(why) = unknown else { panic!("{unknown:?}") };
    assert_eq!(why, "input.amount of the call is not a positive number, so its sum is not known");
    let other = Lines::new("1s use_tool effective label=sends input.amount=lots");
    assert_eq!(fact.evaluate(&other, &mut Postings::default(), 0), HistoryValue::Number(0));
}

#[test]
fn a_condition_that_takes_too_long_is_not_known() {
    let mut lines = String::new();
    for at in 0..600 {
        lines.push_str(&format!("{at}s use_tool request tool=a.b input.n={at}\n"));
    }
    let fact = fact(
        r#"exists (n: Long). exists (m: Long). (
            formerly within 1h Action::"use_tool"::request { input.n: n }
            && formerly within 1h Action::"use_tool"::request { input.n: m } && n == -1)"#,
    );
    let value = fact.evaluate(&Lines::new(&lines), &mut Postings::default(), 0);
    assert!(matches!(value, HistoryValue::Unknown(why) if why.ends_with("takes too many steps")));
}

#[test]
fn numbers_keep_four_digits_and_round_away_from_zero() {
    for (text, expected) in [
        ("500", Some(5_000_000)),
        ("-0.5", Some(-5000)),
        ("0.00001", Some(1)),
        ("12.34560", Some(123_456)),
        ("1e3", None),
        ("", None),
        (".5", None),
        ("123456789012345678901", None),
    ] {
        assert_eq!(read_number(text), expected, "{text}");
    }
}

#[test]
fn values_are_recorded_and_read_back() {
    for value in [
        HistoryValue::Number(3 * UNIT),
        HistoryValue::Number(12_345),
        HistoryValue::Number(-1),
        HistoryValue::Number(i128::from(i64::MAX) * UNIT * 2),
        HistoryValue::Holds(true),
        HistoryValue::Unknown("why".to_owned()),
    ] {
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<HistoryValue>(&text).unwrap(), value, "{text}");
    }
}

#[test]
fn a_fact_tells_up_to_which_value_its_tests_stay_the_same() {
    let (three, below) = (3 * UNIT, 3 * UNIT - 1);
    let tests = [
        ("> 3", three, None),
        (">= 3", below, None),
        ("== 3", below, Some(three)),
        ("<= 3", three, None),
    ];
    for (test, first, second) in tests {
        let fact = fact(&format!(r#"count_within(1d, Action::"use_tool"::response {{}}) {test}"#));
        assert_eq!(fact.highest_like(0), Some(first), "{test}");
        assert_eq!(fact.highest_like(first + 1), second, "{test}");
    }
    let exists = fact(r#"formerly within 1d Action::"use_tool"::response {}"#);
    assert_eq!((exists.highest_like(0), exists.highest_like(1)), (Some(0), None));
}

/// A history of payments, with failures.
fn histories() -> impl Strategy<Value = String> {
    let event = (0..40_u64, 0..4_u8, 0..3_u8, 1..50_i64, any::<bool>());
    prop::collection::vec(event, 1..40).prop_map(|events| {
        let (mut at, mut lines, mut open) = (0, String::new(), Vec::new());
        for (number, (gap, kind, tool, amount, pays)) in events.into_iter().enumerate() {
            at += gap;
            let label = if pays { "pays" } else { "reads" };
            let rest = format!("tool=t.{tool} label={label} input.amount={amount}");
            let line = match (kind, open.pop()) {
                (3, Some(call)) => format!("{at}s use_tool error {rest} undoes={call}"),
                (_, back) => {
                    open.extend(back);
                    open.push(number);
                    format!("{at}s use_tool request+allowed+effective {rest}")
                }
            };
            lines.push_str(&line);
            lines.push('\n');
        }
        lines
    })
}

proptest! {
    /// Lists that are kept up to date give what a look at the whole history gives.
    #[test]
    fn incremental_values_are_those_of_the_whole_history(lines in histories(), window in 1..200_u64) {
        let history = Lines::new(&lines);
        let conditions = [
            format!(r#"count_within({window}s, Action::"use_tool"::effective {{ label: "pays" }}) > 1"#),
            format!(r#"sum_within(a, {window}s, Action::"use_tool"::effective {{ tool: "t.1", input.amount: a }}) > 1"#),
            format!(r#"sum_within(a, {window}s, Action::"use_tool"::error {{ input.amount: a }}) > 1"#),
            format!(r#"formerly within {window}s Action::"use_tool"::request {{ tool: "t.0" }}"#),
            format!(r#"!Action::"use_tool"::error {{}} since within {window}s Action::"use_tool"::effective {{ tool: "t.2" }}"#),
        ];
        for condition in conditions {
            let formula = parse(&condition).unwrap();
            let (test, fact) = tests(HistoryScope::Run, &formula).remove(0);
            let mut postings = Postings::default();
            for last in 0..history.count() {
                let events = history.until(last);
                let value = fact.evaluate(&events, &mut postings, 0);
                let incremental = match (value, test.compare) {
                    (HistoryValue::Number(number), Some((op, limit))) => {
                        op.holds(&Value::Number(number), &Value::Number(limit))
                    }
                    (HistoryValue::Holds(holds), None) => holds,
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(incremental, holds(&formula, &events).unwrap(), "{} at {}", &condition, last);
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[\\PC\n\\\\\"(){}!&.,:_]{0,80}") {
        let _ = parse(&text);
    }
}

/// A history for tests of policies: every fact has the value of its name, or zero.
#[derive(Debug, Default)]
pub(in crate::policy::history) struct Values(
    pub(in crate::policy::history) Vec<(&'static str, i128)>,
);

impl History for Values {
    fn value(&self, fact: &HistoryFact) -> HistoryValue {
        let found = self.0.iter().find(|(part, _)| fact.name.contains(part));
        fact.of_sum(found.map_or(0, |(_, value)| value * UNIT))
    }
}
