//! The example of refunds: written, checked, back-tested, enforced and explained.

use crate::session::root;
use crate::world::World;
use serde_json::Value;

/// A directory with the files of the example; its policies are not in force yet.
fn world() -> World {
    let mut world = World::new();
    std::fs::create_dir(world.path().join("policies")).unwrap();
    for name in [
        "sluice.toml",
        "shop.sh",
        "setup.yaml",
        "policies.yaml",
        "refund.lobsterx.yaml",
        "payout.lobsterx.yaml",
        "policies/refunds.cedar",
        "policies/daily.cedar",
    ] {
        let text = std::fs::read_to_string(root().join("examples/refunds").join(name)).unwrap();
        world = world.file(name, &text);
    }
    world.printed(&["apply", "-f", "setup.yaml"]);
    world
}

/// Refunds an amount; returns the exit code and the run.
fn refund(world: &World, amount: &str, more: &[&str]) -> (Option<i32>, String) {
    let amount = format!("amount={amount}");
    let args = ["run", "refund.lobsterx.yaml", "--arg", "order=o-1", "--arg", &amount];
    let output = world.output(&[&args, more].concat());
    (output.status.code(), world.newest())
}

/// An approval that is requested.
fn open_approval(world: &World) -> Option<String> {
    let list = world.output(&["approvals", "list", "--json"]);
    let list: Value = serde_json::from_slice(&list.stdout).ok()?;
    list["data"][0]["approval_id"].as_str().map(str::to_owned)
}

fn step<'a>(state: &'a Value, id: &str) -> &'a Value {
    let all = state["node_results"].as_array().unwrap();
    all.iter().find(|one| one["node_id"] == id).unwrap()
}

#[test]
fn the_policies_are_checked_and_back_tested_before_they_are_in_force() {
    let world = world();
    world.printed(&["policies", "check", "policies"]);
    let runs = ["120", "700", "7000"].map(|amount| {
        let (code, run) = refund(&world, amount, &[]);
        assert_eq!(code, Some(0), "{amount}");
        run
    });
    // No count was recorded, so no decision can be replayed with the policy about it.
    let all = world.json(&["policies", "test", "--with", "policies", "--json"]);
    assert_eq!((&all["differ"], &all["unknown"]), (&0.into(), &6.into()), "{all:#}");
    let with = "policies/refunds.cedar";
    let tested = world.json(&["policies", "test", "--with", with, "--json"]);
    // The steps were dispatched under policies that read no values, so none were recorded.
    assert_eq!((&tested["differ"], &tested["unknown"]), (&2.into(), &3.into()), "{tested:#}");
    for (run, amount, would, policy) in [
        (&runs[1], 700, "hold", "+refunds.cedar/over-500"),
        (&runs[2], 7000, "block", "+refunds.cedar/over-5000"),
    ] {
        let all = tested["data"].as_array().unwrap();
        let one = all.iter().find(|one| one["run_id"] == *run.as_str()).unwrap();
        assert_eq!((&one["resource"], &one["would_be"]), (&"shop.refund".into(), &would.into()));
        assert!(one["call_id"].is_string(), "{one:#}");
        let because = one["because"].as_array().unwrap();
        assert!(because.contains(&policy.into()), "{one:#}");
        assert_eq!(one["arguments"][0]["argument"], "amount");
        assert_eq!(one["arguments"][0]["value"], amount);
    }
    let told = world.told(&["policies", "test", "--with", with]);
    assert!(told.contains("use_tool shop.refund") && told.contains("amount: 700"), "{told}");
}

#[test]
fn a_large_refund_asks_and_the_approval_shows_the_amount() {
    let world = world();
    world.printed(&["apply", "-f", "policies.yaml"]);
    let running =
        world.start(&["run", "refund.lobsterx.yaml", "--arg", "order=o-1", "--arg", "amount=700"]);
    // The attempt waits for the approval of its call.
    let approval = world.until("the call asks", open_approval);
    let run = world.newest();
    let shown = world.told(&["approvals", "show", &approval]);
    assert!(shown.contains("shop.refund") && shown.contains("700"), "{shown}");
    let explained = world.json(&["policies", "explain", &run, "refund", "--json"]);
    let call = explained["decisions"].as_array().unwrap().last().unwrap();
    assert_eq!((&call["call"], &call["disposition"]), (&1.into(), &"hold".into()));
    assert_eq!(call["policies"][0]["policy"], "refunds.cedar/over-500");
    world.printed(&["approvals", "approve", &approval]);
    assert_eq!(running.output().status.code(), Some(0));
    let state = world.state(&run);
    assert_eq!(step(&state, "refund")["outputs"]["refunded"], 700, "{state:#}");
}

#[test]
fn a_refund_over_the_limit_is_refused_and_explained() {
    let world = world();
    world.printed(&["apply", "-f", "policies.yaml"]);
    let (code, run) = refund(&world, "7000", &[]);
    assert_eq!(code, Some(1));
    let told = world.told(&["policies", "explain", &run, "refund", "--call", "1"]);
    for part in [
        "use_tool shop.refund: block",
        "refunds.cedar/over-5000 (refunds.cedar:14): matched, forbids it",
        "Refunds over 5,000 are forbidden",
        "| forbid (principal, action == Action::\"use_tool\", resource == Tool::\"shop.refund\")",
        "context.call.getTag(\"amount\").number  7000",
        "argument amount",
        "would not match with `context.call.getTag(\"amount\").number` at most 5000",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let shown = world.told(&["runs", "show", &run, "refund"]);
    assert!(shown.contains("use_tool shop.refund  block"), "{shown}");
    let none = world.told(&["policies", "explain", &run, "refund", "--call", "2"]);
    assert!(none.contains("no such decision"), "{none}");
    let unknown = world.told(&["policies", "explain", &run, "refunds"]);
    assert!(unknown.contains("error[unknown_step]"), "{unknown}");
}

#[test]
fn a_step_that_is_given_a_large_amount_asks_or_is_refused() {
    let world = world();
    world.printed(&["apply", "-f", "policies.yaml"]);
    for (amount, code, policy) in
        [("120", 0, ""), ("700", 4, "step-over-500"), ("7000", 1, "step-over-5000")]
    {
        let arg = format!("amount={amount}");
        let output = world.output(&["run", "payout.lobsterx.yaml", "--arg", &arg]);
        assert_eq!(output.status.code(), Some(code), "{amount}");
        let run = world.newest();
        let explained = world.json(&["policies", "explain", &run, "payout", "--json"]);
        let decision = explained["decisions"].as_array().unwrap().last().unwrap();
        let policies = decision["policies"].as_array().unwrap();
        let decides = policies.iter().filter(|one| one["decides"] == true);
        let names: Vec<&str> = decides.map(|one| one["policy"].as_str().unwrap()).collect();
        match policy {
            "" => assert!(names.is_empty(), "{decision:#}"),
            policy => {
                assert!(names.contains(&format!("refunds.cedar/{policy}").as_str()), "{names:?}");
            }
        }
    }
}

#[test]
fn a_set_that_was_never_stored_is_named_as_such() {
    let world = world();
    let (code, run) = refund(&world, "7000", &["--policies", "policies"]);
    assert_eq!(code, Some(1));
    let told = world.told(&["policies", "explain", &run, "refund"]);
    assert!(told.contains("is not stored any more"), "{told}");
    assert!(told.contains("refunds.cedar/over-5000: matched, forbids it"), "{told}");
}

#[test]
fn a_policy_in_shadow_is_explained_and_decides_nothing() {
    let world = world();
    world.printed(&["policies", "shadow", "policies"]);
    let (code, run) = refund(&world, "7000", &[]);
    assert_eq!(code, Some(0));
    let explained = world.json(&["policies", "explain", &run, "refund", "--call", "1", "--json"]);
    let call = &explained["decisions"][0];
    assert_eq!(
        (&call["disposition"], &call["shadow"]["disposition"]),
        (&"allow".into(), &"block".into())
    );
    let policies = call["shadow"]["policies"].as_array().unwrap();
    let one = policies.iter().find(|one| one["policy"] == "refunds.cedar/over-5000").unwrap();
    assert_eq!(one["arguments"][0]["value"], 7000, "{one:#}");
    let told = world.told(&["policies", "explain", &run, "refund", "--attempt", "1"]);
    assert!(told.contains("in shadow: block"), "{told}");
    assert!(told.contains("shadow/refunds.cedar/over-5000"), "{told}");
    let shown = world.told(&["runs", "show", &run, "refund"]);
    assert!(shown.contains("shadow/refunds.cedar/over-5000"), "{shown}");
}

#[test]
fn the_path_of_a_label_leads_from_its_source_to_the_step() {
    let rule = "@id(\"unknown-origin\") @enforcement(\"audit\")
        forbid (principal, action == Action::\"dispatch_step\", resource)
        when { context.flow.origins.contains(\"unknown\") };";
    let world = world().file("policies/origin.cedar", rule);
    world.printed(&["apply", "-f", "policies.yaml"]);
    world.printed(&["run", "payout.lobsterx.yaml", "--arg", "amount=120"]);
    let run = world.newest();
    let told = world.told(&["policies", "explain", &run, "payout"]);
    assert!(told.contains("origin.cedar/unknown-origin"), "{told}");
    assert!(told.contains("bill.amount -> payout.inputs.amount  caller, unknown"), "{told}");
    let first = world.told(&["policies", "explain", &run, "bill"]);
    assert!(!first.contains("unknown-origin"), "{first}");
}

#[test]
fn the_fourth_refund_of_a_day_asks() {
    let world = world();
    world.printed(&["apply", "-f", "policies.yaml"]);
    for amount in ["10", "20", "30"] {
        assert_eq!(refund(&world, amount, &[]).0, Some(0));
    }
    let args = ["run", "refund.lobsterx.yaml", "--arg", "order=o-4", "--arg", "amount=40"];
    let running = world.start(&args);
    let approval = world.until("the call asks", open_approval);
    let told = world.told(&["policies", "explain", &world.newest(), "refund", "--call", "1"]);
    assert!(told.contains("daily.cedar/more-than-3-a-day"), "{told}");
    let count =
        "agent: count_within(1d, Action::\"use_tool\"::effective { tool: \"shop.refund\" })  4";
    assert!(told.contains(count), "{told}");
    world.printed(&["approvals", "approve", &approval]);
    assert_eq!(running.output().status.code(), Some(0));
}
