//! Cost limits of turns.

use super::scripted_wire::{ALL, FakeTools};
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

/// The output limit in each provider's request.
fn bound(body: &Value) -> u64 {
    let places = ["/max_tokens", "/generationConfig/maxOutputTokens"];
    places.iter().find_map(|place| body.pointer(place)?.as_u64()).expect("it is told")
}

#[tokio::test]
async fn a_turn_that_could_exceed_the_ceiling_is_not_made() {
    for (provider, text, call) in ALL {
        // The first turn used 100 input and 25 output tokens: 0.035 cents of 0.04.
        let scenes = [call("c1", "box_read", "{}"), text(&["never"])];
        let wire = ScriptedWire::with(scenes, &FakeTools::saying("x"));
        let done =
            answer(&wire.adapter(provider), &under("0.04", 1_000), &FakeCall::default()).await;
        let (code, message) = trouble_of(&done);
        assert_eq!(code, CallErrorCode::InvalidRequest, "{provider}");
        assert!(message.contains("could exceed the ceiling of $0.0004"), "{message}");
        assert!(message.ends_with("set a higher `max_cost_cents` on the step"), "{message}");
        assert_eq!(wire.times(), 1, "{provider}");
        assert_eq!(done.usage.input_tokens, 100, "{provider}");
        assert!(!done.usage.unknown, "{provider}");
    }
}

#[tokio::test]
async fn an_output_limit_keeps_the_cost_below_the_ceiling() {
    for (provider, text, call) in ALL {
        for cents in ["0.3", "0.5", "1", "2"] {
            let scenes = [call("c1", "box_read", "{}"), text(&["done"])];
            let wire = ScriptedWire::with(scenes, &FakeTools::saying("x"));
            let asked = under(cents, 1_000);
            let done = answer(&wire.adapter(provider), &asked, &FakeCall::default()).await;
            assert_eq!(done.error, None, "{provider} {cents}");
            let second = wire.sent(1).body;
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
    let wire = ScriptedWire::with([openai::text(&["x"])], &FakeTools::saying("x"));
    let done =
        answer(&wire.adapter("openai"), &under("0.000001", 1_000), &FakeCall::default()).await;
    assert_eq!(done.error, None);
    assert_eq!(bound(&wire.sent(0).body), 1_000);
}

#[tokio::test]
async fn unknown_cost_ends_a_dispatch_with_a_ceiling() {
    let silent = sse(&[
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "box_read"}}]}, "finish_reason": "tool_calls"}]}).to_string(),
        "[DONE]".to_owned(),
    ]);
    let wire = ScriptedWire::with([silent.clone()], &FakeTools::saying("x"));
    let done = answer(&wire.adapter("openai"), &under("100", 1_000), &FakeCall::default()).await;
    assert!(trouble_of(&done).1.contains("did not report the cost of the earlier turns"));
    assert!(done.usage.unknown);
    let free = Request { price: None, ceiling: None, ..under("100", 1_000) };
    let wire = ScriptedWire::with([silent, openai::text(&["x"])], &FakeTools::saying("x"));
    let done = answer(&wire.adapter("openai"), &free, &FakeCall::default()).await;
    assert_eq!(done.error, None);
}
