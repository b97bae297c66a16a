//! Ids, path parameters and bodies with which tests call every route of an organisation.

use serde_json::{Value, json};
use sluice_govern::registry::Kind;
use sluice_server::api::route::Route;

/// The ids of an organisation's data.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fixture {
    /// Name of the organisation.
    pub(crate) name: &'static str,
    /// A run that has ended.
    pub(crate) ended: String,
    /// A run that waits for an approval.
    pub(crate) waiting: String,
    /// The approval it waits for.
    pub(crate) approval: String,
    /// A token that no test uses.
    pub(crate) spare: String,
}

impl Fixture {
    /// The path of a route with the ids of this organisation.
    pub(crate) fn target(&self, route: &Route) -> String {
        let mut target = route.path.to_owned();
        for name in route.names() {
            target = target.replace(&format!("{{{name}}}"), &self.value(route, name));
        }
        target
    }

    fn value(&self, route: &Route, name: &str) -> String {
        let of = self.name;
        let changes = route.method != axum_method("GET");
        match name {
            "run" if changes => self.waiting.clone(),
            "run" => self.ended.clone(),
            "step" => format!("{of}_hello"),
            "approval" => self.approval.clone(),
            "token" => self.spare.clone(),
            "version" => "1".to_owned(),
            "code" => "run_unknown".to_owned(),
            "hook" => format!("{of}-hooks"),
            "name" => {
                let collection = route.path.split('/').nth(3).unwrap_or_default();
                match collection {
                    "workflows" => format!("{of}-flow"),
                    "switches" => "all".to_owned(),
                    "policies" => format!("{of}.cedar"),
                    other => format!("{of}-{other}"),
                }
            }
            other => panic!("say what `{{{other}}}` is in {route:?}"),
        }
    }

    /// A valid body for a route.
    pub(crate) fn body(&self, route: &Route) -> Value {
        let of = self.name;
        let document = format!("name: {of}-other\nsteps: [{{id: one, command: Say it.}}]\n");
        match (route.method.as_str(), route.path) {
            ("POST", "/api/v1/workflows" | "/api/v1/workflows/validate") => {
                json!({"document": document})
            }
            ("POST", "/api/v1/runs") => json!({"document": document, "default_agent": "mock"}),
            ("POST", "/api/v1/workflows/{name}/runs" | "/api/v1/workflows/{name}/forecast") => {
                json!({"default_agent": "mock"})
            }
            ("POST", "/api/v1/runs/{run}/rewind") => json!({"to": 1}),
            ("POST", "/api/v1/runs/{run}/branch") => json!({"at": 1, "preview": true}),
            ("POST", "/api/v1/runs/{run}/restart") => json!({"preview": true}),
            ("POST", "/api/v1/runs/{run}/assign") => {
                json!({"step": format!("{of}_first"), "whom": "mock"})
            }
            ("POST", "/api/v1/runs/{run}/erase") => json!({"reason": "asked for"}),
            ("POST", "/api/v1/audit/verify") => json!({"seals": [], "keys": []}),
            ("POST", "/api/v1/elide") => json!({"reason": "old", "older_than_ms": 1_000_000}),
            ("POST", "/api/v1/policies/test") => json!({"set": "active"}),
            ("POST", "/api/v1/approvals/{approval}/resolve") => json!({"decision": "approve"}),
            ("POST", "/api/v1/tokens") => json!({"principal": "child", "roles": ["viewer"]}),
            ("PUT", "/api/v1/switches/{name}") => json!({"held": false}),
            _ => json!({}),
        }
    }
}

fn axum_method(word: &str) -> axum::http::Method {
    word.parse().unwrap()
}

/// A row of every kind that has routes, in an order in which they can be created.
pub(crate) fn rows(name: &str, mark: &str) -> Vec<(Kind, String, Value)> {
    let secret = "secret:hook";
    let row = |kind, collection: &str, body| {
        (kind, format!("/api/v1/{collection}/{name}-{collection}"), body)
    };
    let flow = format!("{name}-flow");
    let price = json!({"input_cents_per_mtok": 1, "output_cents_per_mtok": 2,
        "max_output_tokens": 100});
    vec![
        row(Kind::Price, "prices", price),
        row(Kind::Gateway, "gateways", json!({"name": mark, "provider": "mock"})),
        row(Kind::Agent, "agents", json!({"name": mark})),
        row(Kind::Role, "roles", json!({"max_spend_cents": 5})),
        row(Kind::Note, "notes", json!({"text": mark})),
        row(Kind::Memory, "memories", json!({"notes": [format!("{name}-notes")]})),
        row(Kind::Instruction, "instructions", json!({"layer": "owner", "text": mark})),
        row(Kind::Library, "library", json!({"command": mark})),
        row(Kind::Lens, "lenses", json!({"versions": {"1": {"template": mark}}})),
        row(Kind::Team, "teams", json!({"members": [{"id": "one", "role": mark}]})),
        row(Kind::Deployment, "deployments", json!({"workflow": flow})),
        row(
            Kind::Budget,
            "budgets",
            json!({"scope": "global", "period": "monthly", "amount_cents": 100_000}),
        ),
        (
            Kind::Policy,
            format!("/api/v1/policies/{name}.cedar"),
            json!({"text": format!("// {mark}\npermit (principal, action, resource);")}),
        ),
        row(Kind::Schedule, "schedules", json!({"workflow": flow, "cron": "0 0 1 1 *"})),
        row(
            Kind::Webhook,
            "webhooks",
            json!({"url": format!("https://example.invalid/{mark}"),
                "events": ["run.completed"], "secret": secret}),
        ),
        row(Kind::Hook, "hooks", json!({"workflow": flow, "secret": secret})),
        (Kind::Switch, "/api/v1/switches/all".to_owned(), json!({"held": false})),
    ]
}
