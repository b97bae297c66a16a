use super::*;
use crate::api;
use crate::auth::permission::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn routes() -> Routes {
    Routes::new(api::routes())
}

#[test]
fn every_route_of_a_tool_exists_and_needs_a_permission() {
    let routes = routes();
    for tool in &TOOLS {
        let needs: Vec<_> = tool.routes.iter().map(|route| routes.need(*route)).collect();
        let permission = |need: &_| matches!(need, api::route::Need::Permission(_));
        assert!(
            !needs.is_empty() && needs.iter().all(permission),
            "{} needs no permission",
            tool.name
        );
    }
    let names: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    assert_eq!(names.len(), TOOLS.len());
}

#[test]
fn a_read_only_tool_calls_only_get_routes() {
    for tool in &TOOLS {
        let hints = tool.described().annotations.unwrap();
        let looks = tool
            .routes
            .iter()
            .all(|(method, path)| *method == "GET" || *path == "/api/v1/workflows/validate");
        assert_eq!(hints.read_only_hint, Some(looks), "{}", tool.name);
        let decides = ["cancel_run", "resolve_approval"].contains(&tool.name);
        assert_eq!(hints.destructive_hint, Some(decides), "{}", tool.name);
    }
}

#[test]
fn every_tool_describes_its_arguments_and_refuses_unknown_ones() {
    for tool in &TOOLS {
        let described = tool.described();
        let schema = Value::Object((*described.input_schema).clone());
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        assert!(!schema.to_string().contains("$ref"), "{}", tool.name);
        for (name, field) in schema["properties"].as_object().unwrap() {
            assert!(field["description"].is_string(), "{}: {name}", tool.name);
        }
        assert!(described.description.unwrap().len() > 20);
        let odd = json!({"unknown_argument": 1}).as_object().unwrap().clone();
        let read = match tool.act {
            Act::Call(read, _) => read(odd).map(drop),
            Act::Watch => WatchRun::read(odd).map(drop),
        };
        assert_eq!(read.unwrap_err().code, crate::refused::BAD_REQUEST, "{}", tool.name);
    }
}

#[test]
fn the_permissions_of_tools_follow_from_their_routes() {
    let routes = routes();
    let mut table = String::new();
    for role in Role::ALL {
        let permissions = role.permissions();
        let caller = Caller { permissions, ..Caller::owner("x", Vec::new()) };
        let usable = TOOLS.iter().filter(|tool| usable(&routes, &caller, tool));
        let names: Vec<&str> = usable.map(|tool| tool.name).collect();
        table.push_str(&format!("{}: {}\n", role.as_str(), names.join(" ")));
    }
    expect_test::expect![[r#"
        viewer: list_workflows show_workflow validate_workflow list_runs get_run watch_run get_step list_approvals show_approval
        operator: list_workflows show_workflow validate_workflow start_run list_runs get_run watch_run get_step cancel_run list_approvals show_approval
        approver: list_workflows show_workflow validate_workflow list_runs get_run watch_run get_step list_approvals show_approval resolve_approval
        admin: list_workflows show_workflow validate_workflow start_run list_runs get_run watch_run get_step cancel_run list_approvals show_approval resolve_approval
    "#]].assert_eq(&table);
}

#[test]
fn a_run_is_started_from_either_a_workflow_or_a_document() {
    let call = |args: Value| {
        let Act::Call(read, _) = tool::find("start_run").unwrap().act else { panic!() };
        read(args.as_object().unwrap().clone())
    };
    assert!(call(json!({"workflow": "a"})).is_ok());
    assert!(call(json!({"document": "name: a"})).is_ok());
    for odd in [
        json!({}),
        json!({"workflow": "a", "document": "b"}),
        json!({"document": "b", "version": 2}),
        json!({"workflow": "a", "format": "lens"}),
        json!({"workflow": ""}),
        json!({"workflow": "a\n"}),
    ] {
        assert!(call(odd.clone()).is_err(), "{odd}");
    }
}

#[test]
fn the_arguments_of_a_watch_are_bounded() {
    let read = |args: Value| WatchRun::read(args.as_object().unwrap().clone());
    assert!(read(json!({"run_id": "r", "wait_seconds": 50, "limit": 200})).is_ok());
    assert!(read(json!({"run_id": "r", "wait_seconds": 0})).is_ok());
    for odd in [
        json!({"run_id": "r", "wait_seconds": 51}),
        json!({"run_id": "r", "limit": 0}),
        json!({"run_id": "r", "limit": 201}),
        json!({"run_id": "r", "after": -1}),
        json!({"run_id": "r", "until": "never"}),
    ] {
        assert!(read(odd.clone()).is_err(), "{odd}");
    }
}
