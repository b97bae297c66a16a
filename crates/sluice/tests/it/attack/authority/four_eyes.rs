//! Ways around the second pair of eyes.

use super::{
    admin, approve, ask, begun, ended, person, police, question, refused, register, send, served,
    start, token, until,
};
use crate::server::Server;
use crate::world::World;
use serde_json::{Value, json};
use sluice_bridge::secret::Secret;
use sluice_server::signature;
use std::time::{SystemTime, UNIX_EPOCH};

const PAY: &str = "name: pay\nsteps:\n  \
    - {id: gate, approval: {required: true, not_initiator: true}}\n  \
    - {id: pay, depends_on: [gate], agent: shell, command: \"true\"}\n";

/// Carl starts runs and approves, Ben approves.
fn people(server: &Server) -> (String, String) {
    (person(server, "carl", &["operator", "approver"]), person(server, "ben", &["approver"]))
}

fn id(approval: &Value) -> String {
    approval["approval_id"].as_str().unwrap().to_owned()
}

/// Carl is refused and Ben is not.
fn only_ben(server: &Server, run: &str, carl: &str, ben: &str) {
    let approval = id(&question(server, run));
    refused(approve(server, carl, &approval), (403, "self_approval"));
    let (status, answer) = approve(server, ben, &approval);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(ended(server, run), "completed");
}

#[test]
fn the_author_of_a_hook_does_not_approve_what_it_started() {
    let world = World::new().file("hook.key", "the secret of the hook\n");
    let (world, server) = served(world);
    register(&server, PAY);
    let (carl, ben) = people(&server);
    let secret = format!("secret=file:{}", world.path().join("hook.key").display());
    world.printed(&["hooks", "set", "h1", "workflow=pay", &secret, "--as", "carl"]);
    // What a body says of the author is not believed.
    let body = json!({"created_by": "ben", "changed_by": "ben", "enabled": true});
    admin(&server, "PATCH", "/api/v1/hooks/h1", &body);
    let shown = admin(&server, "GET", "/api/v1/hooks/h1", &Value::Null);
    assert_eq!(shown["created_by"], "carl");
    let stamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
    let signed = signature::sign(&Secret::new("the secret of the hook"), &stamp, b"{}");
    let headers = format!("sluice-timestamp: {stamp}\r\nsluice-signature: {signed}\r\n");
    let (status, answer) = send(&server, &headers, "POST", "/hooks/h1", "{}");
    assert_eq!(status, 202, "{answer}");
    let run = answer["data"]["run_id"].as_str().unwrap();
    let started = begun(&server, run);
    assert_eq!(
        (&started["initiator"], &started["onBehalfOf"][0]),
        (&"hook:h1".into(), &"carl".into())
    );
    only_ben(&server, run, &carl, &ben);
}

#[test]
fn the_author_of_a_schedule_does_not_approve_what_it_started() {
    let (_world, server) = served(World::new());
    register(&server, PAY);
    let (carl, ben) = people(&server);
    let body = json!({"workflow": "pay", "every": "1s", "created_by": "ben"});
    let (status, answer) = ask(&server, &carl, "PUT", "/api/v1/schedules/s1", &body);
    assert_eq!(status, 200, "{answer}");
    let run = until("the schedule starts a run", || {
        let runs = admin(&server, "GET", "/api/v1/runs?initiator=schedule:s1", &Value::Null);
        Some(runs[0]["run_id"].as_str()?.to_owned())
    });
    only_ben(&server, &run, &carl, &ben);
}

#[test]
fn a_policy_says_that_the_initiator_does_not_approve_and_how_many_must() {
    let (_world, server) = served(World::new());
    register(&server, "name: pay\nsteps: [{id: pay, agent: shell, command: \"true\"}]\n");
    let (carl, ben) = people(&server);
    let dora = person(&server, "dora", &["approver"]);
    police(
        &server,
        "@id(\"two\") @action(\"require_approval\") @not_initiator @quorum(\"2\")\n\
         forbid (principal, action == Action::\"dispatch_step\", resource);\n",
    );
    let run = start(&server, &carl, "pay");
    let asked = question(&server, &run);
    assert_eq!((&asked["quorum"], &asked["not_initiator"]), (&2.into(), &true.into()), "{asked}");
    let approval = id(&asked);
    refused(approve(&server, &carl, &approval), (403, "self_approval"));
    assert_eq!(approve(&server, &ben, &approval).0, 200);
    refused(approve(&server, &ben, &approval), (409, "answered_already"));
    let again = question(&server, &run);
    assert_eq!(again["votes"], json!(["ben"]), "one of two has agreed");
    assert_eq!(approve(&server, &dora, &approval).0, 200);
    assert_eq!(ended(&server, &run), "completed");
}

#[test]
fn a_person_named_like_a_group_does_not_answer_for_it() {
    let (_world, server) = served(World::new());
    let pay = |name: &str, approvers: &str| {
        register(
            &server,
            &format!(
                "name: {name}\nsteps: [{{id: gate, approval: {{required: true, approvers: \
                 ['{approvers}']}}}}]\n"
            ),
        );
    };
    pay("bare", "treasury");
    pay("prefixed", "group:treasury");
    pay("personal", "user:treasury");
    let impostor = person(&server, "treasury", &["approver"]);
    // No token has the group yet. A bare name then means a person; `group:` never does.
    let early = start(&server, &server.token, "prefixed");
    let early = id(&question(&server, &early));
    refused(approve(&server, &impostor, &early), (403, "not_approver"));
    let member = json!({"principal": "tess", "roles": ["approver"], "groups": ["treasury"]});
    let (member, _) = token(&server, &member);
    for workflow in ["bare", "prefixed"] {
        let run = start(&server, &server.token, workflow);
        let approval = id(&question(&server, &run));
        refused(approve(&server, &impostor, &approval), (403, "not_approver"));
        assert_eq!(approve(&server, &member, &approval).0, 200, "{workflow}");
    }
    let run = start(&server, &server.token, "personal");
    let approval = id(&question(&server, &run));
    refused(approve(&server, &member, &approval), (403, "not_approver"));
    assert_eq!(approve(&server, &impostor, &approval).0, 200);
}

#[test]
fn a_change_names_whole_ids_and_the_command_line_completes_them_first() {
    let (world, server) = served(World::new());
    register(&server, "name: pay\nsteps: [{id: gate, approval: required}]\n");
    let run = start(&server, &server.token, "pay");
    let approval = id(&question(&server, &run));
    for short in ["apr_0", &approval[..12], approval.strip_prefix("apr_").unwrap()] {
        refused(approve(&server, &server.token, short), (404, "approval_unknown"));
    }
    let changes = [
        ("cancel", json!({})),
        ("pause", json!({})),
        ("resume", json!({})),
        ("retry", json!({})),
        ("restart", json!({})),
        ("rewind", json!({"to": 0})),
        ("branch", json!({"at": 0})),
        ("assign", json!({"step": "gate", "whom": "ada"})),
        ("erase", json!({"reason": "x"})),
    ];
    for (word, body) in changes {
        let path = format!("/api/v1/runs/{}/{word}", &run[..10]);
        refused(ask(&server, &server.token, "POST", &path, &body), (404, "run_unknown"));
    }
    let body = json!({"run": &run[..10], "reason": "x"});
    refused(ask(&server, &server.token, "POST", "/api/v1/elide", &body), (404, "run_unknown"));
    // Looking by a beginning is as it was.
    let path = format!("/api/v1/runs/{}", &run[..run.len() - 1]);
    assert_eq!(ask(&server, &server.token, "GET", &path, &Value::Null).0, 200);
    // The tools of agents that change something: an approval, and a run.
    let tools = [
        ("resolve_approval", json!({"approval_id": "apr_0", "decision": "approve"})),
        ("resolve_approval", json!({"approval_id": &approval[..12], "decision": "approve"})),
        ("cancel_run", json!({"run_id": &run[..10]})),
        ("cancel_run", json!({"run_id": &run[..run.len() - 1], "reason": "x"})),
    ];
    let headers = format!(
        "authorization: Bearer {}\r\naccept: application/json, text/event-stream\r\n",
        server.token
    );
    for (name, arguments) in tools {
        let tool = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": name, "arguments": arguments}});
        let (status, answer) = send(&server, &headers, "POST", "/mcp", &tool.to_string());
        let answer = answer.to_string();
        assert!(status == 200 && answer.contains("_unknown"), "{name} {arguments}: {answer}");
        assert_eq!(question(&server, &run)["status"], "pending", "{name} {arguments}");
    }
    server.printed(&world, &["approvals", "approve", &approval[..approval.len() - 1]]);
    assert_eq!(ended(&server, &run), "completed");
}
