//! Rows as tables.

use crate::amount;
use crate::table::Table;
use serde_json::{Number, Value};
use sluice_core::money::Money;
use sluice_govern::registry::{Kind, Row, WorkflowVersion};

/// The columns of a kind, after the name: heading and field.
const fn columns(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Agent => &[
            ("STATUS", "status"),
            ("PHASE", "phase"),
            ("TRUST", "trust_level"),
            ("AT ONCE", "max_concurrent_steps"),
            ("A MONTH", "budget_monthly_cents"),
            ("GATEWAY", "gateway"),
            ("MODEL", "model"),
        ],
        Kind::Gateway => &[
            ("HEALTH", "health"),
            ("PROVIDER", "provider"),
            ("ENVIRONMENT", "environment"),
            ("LEAST TRUST", "min_trust_level"),
            ("RANK", "cost_rank"),
            ("URL", "url"),
            ("", "default"),
            ("", "paused"),
        ],
        Kind::Role => &[
            ("MOST A RUN", "max_spend_cents"),
            ("ENVIRONMENTS", "allowed_environments"),
            ("INPUTS", "trusted_context"),
        ],
        Kind::Deployment => &[
            ("WORKFLOW", "workflow"),
            ("GATEWAY", "gateway"),
            ("POSTURE", "posture"),
            ("ROLES", "roles"),
            ("", "active"),
        ],
        Kind::Price => &[
            ("INPUT", "input_cents_per_mtok"),
            ("OUTPUT", "output_cents_per_mtok"),
            ("LONGEST", "max_output_tokens"),
        ],
        Kind::Note => &[("LINES", "lines"), ("", "untrusted"), ("", "private")],
        Kind::Memory => {
            &[("NOTES", "notes"), ("LAST OUTPUTS", "last_outputs"), ("BYTES", "max_bytes")]
        }
        Kind::Instruction => &[
            ("LAYER", "layer"),
            ("LINES", "lines"),
            ("WORKFLOWS", "workflows"),
            ("AGENTS", "agents"),
        ],
        Kind::Policy => &[("SET", "set"), ("LINES", "lines")],
        Kind::Workflow => &[("VERSION", "version"), ("FORMAT", "format"), ("LINES", "lines")],
        Kind::Lens => &[("HEAD", "head"), ("VERSIONS", "ids")],
        Kind::Team => {
            &[("MEMBERS", "member_ids"), ("FAILURE", "failure_policy"), ("QUEUE", "queue_policy")]
        }
        Kind::Webhook => &[
            ("URL", "url"),
            ("EVENTS", "events"),
            ("WORKFLOWS", "workflows"),
            ("SECRET", "secret"),
            ("", "enabled"),
        ],
        Kind::Hook => {
            &[("WORKFLOW", "workflow"), ("ARGS", "args"), ("SECRET", "secret"), ("", "enabled")]
        }
        // Schedules and budgets have their own list commands.
        Kind::Budget | Kind::Library | Kind::Schedule | Kind::Token | Kind::Switch => &[],
    }
}

pub(super) fn table(kind: Kind, rows: &[Row]) -> String {
    let first = if kind == Kind::Price { "MODEL" } else { "NAME" };
    let columns = columns(kind);
    let headings: Vec<&str> =
        std::iter::once(first).chain(columns.iter().map(|(heading, _)| *heading)).collect();
    let mut table = Table::new(&headings);
    for row in rows {
        let (name, version) = match WorkflowVersion::split(&row.name) {
            Some((name, version)) if kind == Kind::Workflow => (name, Some(version)),
            _ => (row.name.as_str(), None),
        };
        let cells = columns.iter().map(|(_, field)| match (*field, version) {
            ("version", Some(version)) => version.to_string(),
            ("ids", _) => {
                let versions = row.body.get("versions").and_then(Value::as_object);
                let ids: Vec<&str> = versions.into_iter().flatten().map(|(id, _)| &**id).collect();
                ids.join(", ")
            }
            ("member_ids", _) => {
                let members = row.body.get("members").and_then(Value::as_array);
                let ids = members.into_iter().flatten().filter_map(|one| one.get("id")?.as_str());
                ids.collect::<Vec<_>>().join(", ")
            }
            ("lines", _) => {
                let text = row.body.get("text").and_then(Value::as_str).unwrap_or_default();
                text.lines().count().to_string()
            }
            (field, _) => cell(field, row.body.get(field).unwrap_or(&Value::Null)),
        });
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table.draw()
}

/// A field as text.
pub(super) fn cell(field: &str, value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::Bool(true) => field.to_owned(),
        Value::Number(number) => figure(field, number),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let item = |item: &Value| match item {
                // Items with spaces are quoted.
                Value::Object(_) => format!("{{{}}}", cell(field, item)),
                _ => cell(field, item),
            };
            let items: Vec<String> = items.iter().map(item).collect();
            items.join(", ")
        }
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| match value {
                // For these fields, false is not the default.
                Value::Bool(flag) => format!("{name}={flag}"),
                _ => format!("{name}={}", cell(name, value)),
            });
            pairs.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The unit of a field follows from its name.
fn figure(field: &str, number: &Number) -> String {
    if field.ends_with("_cents") || field.ends_with("_cents_per_mtok") {
        let money = Money::from_cents(number);
        return money.map_or_else(|_| number.to_string(), |money| format!("${money}"));
    }
    match number.as_u64() {
        Some(ms) if field.ends_with("_ms") => amount::moment(ms),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_shown_in_their_units() {
        for (field, value, shown) in [
            ("budget_monthly_cents", json!(1250.5), "$12.505"),
            ("trust_level", json!(7), "7"),
            ("default", json!(true), "default"),
            ("paused", json!(false), ""),
            ("roles", json!({"writer": "scribe", "eye": "mock"}), "writer=scribe, eye=mock"),
            ("capabilities", json!(["a", "b"]), "a, b"),
            ("members", json!([{"id": "a", "on": false}, {"id": "b"}]), "{id=a, on=false}, {id=b}"),
        ] {
            assert_eq!(cell(field, &value), shown, "{field}");
        }
        assert_eq!(cell("phase_since_ms", &json!(0)), amount::moment(0));
    }
}
