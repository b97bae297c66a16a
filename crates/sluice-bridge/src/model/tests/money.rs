//! What turns cost, and where they end.

use super::stage::{ALL, Drawer};
use super::*;
use sluice_core::money::Money;
use sluice_govern::account::{Tokens, bill};
use sluice_govern::registry::Price;

fn price() -> Price {
    Price {
        input_cents_per_mtok: Money::from_cents_text("100").unwrap(),
        output_cents_per_mtok: Money::from_cents_text("1000").unwrap(),
        cached_input_cents_per_mtok: None,
        max_output_tokens: None,
    }
}

fn under(cents: &str, max_output_tokens: u64) -> Request {
    Request {
        tools: vec!["box.read".to_owned()],
        price: Some(price()),
        ceiling: Some(Money::from_cents_text(cents).unwrap()),
        max_output_tokens: Some(max_output_tokens),
        ..asks("look")
    }
}

/// Where each provider is told how long its answer may be.
fn bound(body: &Value) -> u64 {
    let places = ["/max_tokens", "/generationConfig/maxOutputTokens"];
    places.iter().find_map(|place| body.pointer(place)?.as_u64()).expect("it is told")
}

#[tokio::test]
async fn a_turn_that_could_pass_the_ceiling_is_not_asked_for() {
    for (provider, text, call) in ALL {
        // The first turn took 100 read and 25 written: 0.035 cents of 0.04.
        let scenes = [call("c1", "box_read", "{}"), text(&["never"])];
        let stage = Stage::with(scenes, &Drawer::saying("x"));
        let done = answer(&stage.adapter(provider), &under("0.04", 1_000), &Desk::default()).await;
        let (code, message) = trouble_of(&done);
        assert_eq!(code, CallErrorCode::InvalidRequest, "{provider}");
        assert!(message.contains("could pass the ceiling of $0.0004"), "{message}");
        assert!(message.ends_with("declare a higher `max_cost_cents` on the step"), "{message}");
        assert_eq!(stage.times(), 1, "{provider}");
        assert_eq!(done.usage.input_tokens, 100, "{provider}");
        assert!(!done.usage.unknown, "{provider}");
    }
}

#[tokio::test]
async fn an_answer_is_cut_so_that_the_ceiling_holds_whatever_comes() {
    for (provider, text, call) in ALL {
        for cents in ["0.3", "0.5", "1", "2"] {
            let scenes = [call("c1", "box_read", "{}"), text(&["done"])];
            let stage = Stage::with(scenes, &Drawer::saying("x"));
            let asked = under(cents, 1_000);
            let done = answer(&stage.adapter(provider), &asked, &Desk::default()).await;
            assert_eq!(done.error, None, "{provider} {cents}");
            let second = stage.sent(1).body;
            let most = bound(&second);
            assert!((64..=1_000).contains(&most), "{provider} {cents}: {most}");
            assert!(cents != "0.3" || most < 1_000, "{provider}: it was cut");
            assert!(cents != "2" || most == 1_000, "{provider}: it was not cut");
            let reads = sluice_govern::account::input_tokens([second.to_string().as_str()]);
            let written = if provider == "anthropic" { 20 } else { 25 };
            let worst = Tokens { input: 100 + reads, cached: 0, output: written + most };
            assert!(bill(&price(), worst) <= asked.ceiling.unwrap(), "{provider} {cents}");
        }
    }
}

#[tokio::test]
async fn a_first_turn_is_as_it_was_reserved() {
    let stage = Stage::with([openai::text(&["x"])], &Drawer::saying("x"));
    let done = answer(&stage.adapter("openai"), &under("0.000001", 1_000), &Desk::default()).await;
    assert_eq!(done.error, None);
    assert_eq!(bound(&stage.sent(0).body), 1_000);
}

#[tokio::test]
async fn who_does_not_say_what_a_turn_took_gets_no_other_under_a_ceiling() {
    let silent = sse(&[
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "box_read"}}]}, "finish_reason": "tool_calls"}]}).to_string(),
        "[DONE]".to_owned(),
    ]);
    let stage = Stage::with([silent.clone()], &Drawer::saying("x"));
    let done = answer(&stage.adapter("openai"), &under("100", 1_000), &Desk::default()).await;
    assert!(trouble_of(&done).1.contains("does not say what the turns before have cost"));
    assert!(done.usage.unknown);
    let free = Request { price: None, ceiling: None, ..under("100", 1_000) };
    let stage = Stage::with([silent, openai::text(&["x"])], &Drawer::saying("x"));
    let done = answer(&stage.adapter("openai"), &free, &Desk::default()).await;
    assert_eq!(done.error, None);
}
