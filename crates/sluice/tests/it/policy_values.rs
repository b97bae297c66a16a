//! Policies about tools: their names, their labels and the types of their arguments.

use crate::world::World;
use serde_json::{Value, json};

const PERMIT: &str = "@id(\"all\")\npermit (principal, action, resource);\n";
const SETTINGS: &str = r#"
[tool_servers.pay]
command = ["true"]

[tool_servers.pay.tools.refund]
labels = ["pays"]
arguments = {amount = "amount"}
"#;
const LIMIT: &str = "@id(\"limit\")\n@action(\"require_approval\")\n\
    forbid (principal, action == Action::\"use_tool\", resource == Tool::\"pay.refund\")\n\
    when { context.input.amount.greaterThan(decimal(\"500.0\")) };\n";
const BY_LABEL: &str = "@id(\"label\")\n\
    forbid (principal, action == Action::\"use_tool\", resource in Label::\"pays\")\n\
    unless { context.call.amount has number };\n";

/// A server with one tool that was listed and accepted.
fn world() -> World {
    let world = World::new();
    std::fs::create_dir(world.path().join(".sluice")).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
        "required": ["order", "amount"],
    });
    let definition = json!({"digest": "00", "description": "Refunds", "input_schema": schema});
    let pins = json!({"pay.refund": {"accepted": definition}});
    world
        .file("sluice.toml", SETTINGS)
        .file(".sluice/tools.json", &pins.to_string())
        .file("base.cedar", PERMIT)
        .file("limit.cedar", LIMIT)
        .file("label.cedar", BY_LABEL)
}

/// What `policies check` says about a file.
fn checked(world: &World, text: &str) -> String {
    let path = world.path().join("tried.cedar");
    std::fs::write(path, text).unwrap();
    world.told(&["policies", "check", "base.cedar", "tried.cedar"])
}

#[test]
fn policies_are_checked_against_the_tools_there_are() {
    let world = world();
    for text in [LIMIT, BY_LABEL] {
        let told = checked(&world, text);
        assert!(told.contains("files: ok, 2 policies in 2 files"), "{told}");
    }
    for (from, to, why) in [
        ("pay.refund", "pay.refnud", "there is no tool `pay.refnud`; did you mean \"pay.refund\"?"),
        ("input.amount", "input.amont", "has no typed argument `amont`; did you mean \"amount\"?"),
        ("input.amount.greaterThan(decimal(\"500.0\"))", "input.amount > 500", "decimal"),
    ] {
        let told = checked(&world, &LIMIT.replace(from, to));
        assert!(told.contains("tried.cedar:1: ") && told.contains(why), "{told}");
        assert!(told.contains("error[policies_refused]") && told.ends_with("exit 2\n"), "{told}");
    }
    let told = checked(&world, &BY_LABEL.replace("pays", "payz"));
    assert!(told.contains("there is no label `payz`; did you mean \"pays\"?"), "{told}");
}

#[test]
fn a_set_is_refused_when_it_is_stored_and_stays_when_a_name_disappears() {
    let world = world()
        .file("config.yaml", "policies: {base: {file: base.cedar}, label: {file: label.cedar}}\n")
        .file("wrong.cedar", &BY_LABEL.replace("pays", "payz"))
        .file("wrong.yaml", "policies: {wrong: {file: wrong.cedar}}\n");
    world.printed(&["apply", "-f", "config.yaml"]);
    let told = world.told(&["apply", "-f", "wrong.yaml"]);
    assert!(told.contains("there is no label `payz`") && told.ends_with("exit 2\n"), "{told}");
    assert!(world.told(&["policies", "check"]).contains("active: ok"));
    let world = world.file("sluice.toml", &SETTINGS.replace("\"pays\"", "\"spends\""));
    let told = world.told(&["policies", "check"]);
    assert!(told.contains("label:1: there is no label `pays`"), "{told}");
    let told = world.told(&["doctor"]);
    assert!(told.contains("there is no label `pays`"), "{told}");
    // Everything else goes on.
    let flow = "name: hello\nsteps:\n  - id: hello\n    command: echo hello\n";
    let world = world.file("hello.lobsterx.yaml", flow);
    let told = world.told(&["run", "hello.lobsterx.yaml", "--agent", "shell"]);
    assert!(told.ends_with("exit 0\n"), "{told}");
}

#[test]
fn the_schema_of_policies_has_the_names_in_force() {
    let world = world();
    let all = world.printed(&["schema", "policies"]);
    for line in [
        "// Tool::\"pay.refund\": accepted, sends_to external, labels \"pays\"\n",
        "// labels: Label::\"pays\"\n",
        "// servers: ToolServer::\"pay\"\n",
        "entity Tool in [Label, ToolServer] = {\n",
    ] {
        assert!(all.contains(line), "{all}");
    }
    let one = world.printed(&["schema", "policies", "--tool", "pay.refund"]);
    assert!(one.contains("//   context.call.getTag(\"amount\"), role amount\n"), "{one}");
    assert!(one.contains("    input: {\n        \"amount\": decimal,\n"), "{one}");
    let whole = world.json(&["schema", "policies", "--json"]);
    assert_eq!(whole["schema"], Value::from(all));
    let flow = "name: refunds\nargs:\n  customer: {type: string}\nsteps:\n  - id: find\n    \
                command: echo 5\n    outputs: {amount: {type: number}}\n  - id: pay\n    \
                command: echo paid\n    inputs: {amount: {from: find.outputs.amount, type: number}}\n";
    let world = world.file("refunds.lobsterx.yaml", flow);
    let whole = world.printed(&["schema", "policies", "--workflow", "refunds.lobsterx.yaml"]);
    assert!(
        whole.starts_with(
            "// Workflow::\"refunds\": start_run\n\
             //   context.call.getTag(\"customer\"): string\n\
             // context.step.id == \"pay\": dispatch_step\n\
             //   context.call.getTag(\"amount\"): number\n//\n"
        ),
        "{whole}"
    );
    let told = world.told(&["schema", "policies", "--tool", "pay.refnud"]);
    assert!(told.contains("no tool `pay.refnud` is known"), "{told}");
}
