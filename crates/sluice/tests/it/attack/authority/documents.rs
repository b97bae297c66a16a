//! Documents that say the name of a workflow, and callers that bind its roles.

use super::{
    admin, ask, begun, ended, inline, person, police, refused, register, served, start, started,
    token,
};
use crate::world::World;
use serde_json::{Value, json};

const DEPLOYED: &str = "name: deployed\nsteps: [{id: pay, agent: shell, command: \"true\"}]\n";

fn workflow(server: &crate::server::Server, run: &str) -> String {
    let shown = admin(server, "GET", &format!("/api/v1/runs/{run}"), &Value::Null);
    shown["workflow"].as_str().unwrap().to_owned()
}

#[test]
fn an_inline_document_is_no_run_of_the_workflow_that_it_names() {
    let (_world, server) = served(World::new());
    register(&server, DEPLOYED);
    let body = json!({"workflow": "deployed", "posture": "retrieval"});
    admin(&server, "PUT", "/api/v1/deployments/pay", &body);
    let run = inline(&server, &server.token, DEPLOYED);
    let start_event = begun(&server, &run);
    assert_eq!(workflow(&server, &run), "inline/deployed");
    assert_eq!(start_event["workflow"], "inline/deployed");
    assert_eq!(
        (&start_event["source"], &start_event["deployment"]),
        (&"inline".into(), &Value::Null)
    );
    assert_eq!(ended(&server, &run), "completed");
    admin(&server, "DELETE", "/api/v1/deployments/pay", &Value::Null);
    police(
        &server,
        "forbid (principal, action == Action::\"dispatch_step\", resource) \
         unless { context.run.workflow == \"deployed\" };\n",
    );
    let run = inline(&server, &server.token, DEPLOYED);
    assert_eq!(ended(&server, &run), "failed", "only the workflow `deployed` may dispatch");
    let run = start(&server, &server.token, "deployed");
    assert_eq!(
        (ended(&server, &run).as_str(), workflow(&server, &run).as_str()),
        ("completed", "deployed")
    );
}

#[test]
fn policies_tell_registered_definitions_from_others_also_in_restarts_and_children() {
    let (_world, server) = served(World::new());
    register(&server, DEPLOYED);
    let first = start(&server, &server.token, "deployed");
    assert_eq!(ended(&server, &first), "completed");
    let hash = begun(&server, &first)["definitionHash"].as_str().unwrap().to_owned();
    let parent = "name: parent\nsteps: [{id: child, workflow_ref: deployed}]\n";
    let early = inline(&server, &server.token, DEPLOYED);
    assert_eq!(ended(&server, &early), "completed");
    police(
        &server,
        &format!(
            "forbid (principal, action == Action::\"dispatch_step\", resource) \
             unless {{ context.run.registered && context.run.definition_hash == \"{hash}\" }};\n"
        ),
    );
    assert_eq!(ended(&server, &start(&server, &server.token, "deployed")), "completed");
    assert_eq!(ended(&server, &inline(&server, &server.token, DEPLOYED)), "failed");
    // A child that comes from the registry is registered, whatever started it.
    assert_eq!(ended(&server, &inline(&server, &server.token, parent)), "completed");
    // What is made from an inline run is one too.
    let path = format!("/api/v1/runs/{early}/restart");
    let again = started(ask(&server, &server.token, "POST", &path, &json!({"from": ["pay"]})));
    assert_eq!(begun(&server, &again)["workflow"], "inline/deployed");
    assert_eq!(ended(&server, &again), "failed");
}

#[test]
fn a_token_that_only_executes_starts_no_document() {
    let (_world, server) = served(World::new());
    register(&server, DEPLOYED);
    let scopes = ["workflow:execute", "workflow:read"];
    let ci = json!({"principal": "ci", "roles": ["operator"], "scopes": scopes});
    let (ci, _) = token(&server, &ci);
    let body = json!({"document": DEPLOYED});
    let told = refused(ask(&server, &ci, "POST", "/api/v1/runs", &body), (403, "forbidden"));
    assert!(told.contains("workflow:inline"), "{told}");
    assert_eq!(ended(&server, &start(&server, &ci, "deployed")), "completed");
    let operator = person(&server, "olga", &["operator"]);
    assert_eq!(ended(&server, &inline(&server, &operator, DEPLOYED)), "completed");
}

#[test]
fn a_caller_binds_only_roles_that_the_deployment_leaves_open() {
    let (_world, server) = served(World::new());
    register(
        &server,
        "name: bound\nroles: {payer: {}, clerk: {}}\nsteps:\n  \
         - {id: pay, role: payer, command: \"true\"}\n  \
         - {id: file, role: clerk, command: \"true\"}\n",
    );
    admin(&server, "PUT", "/api/v1/agents/restricted", &json!({"trust_level": 1}));
    let body =
        json!({"workflow": "bound", "roles": {"payer": "restricted"}, "posture": "advisory"});
    admin(&server, "PUT", "/api/v1/deployments/bound", &body);
    let operator = person(&server, "olga", &["operator"]);
    let start = |bindings: Value| {
        let body = json!({"role_bindings": bindings, "default_agent": "shell"});
        ask(&server, &operator, "POST", "/api/v1/workflows/bound/runs", &body)
    };
    let told = refused(start(json!({"payer": "shell"})), (403, "role_bound"));
    assert!(told.contains("`payer`") && told.contains("`restricted`"), "{told}");
    let run = started(start(json!({"clerk": "shell"})));
    let bound = &begun(&server, &run)["roleBindings"];
    assert_eq!(*bound, json!({"clerk": "shell", "payer": "restricted"}));
    started(start(json!({"payer": "restricted"})));
}
