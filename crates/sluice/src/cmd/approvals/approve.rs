//! `sluice approvals approve`.

use super::answer::{ApprovalDecision, resolve};
use crate::Exit;
use crate::cli::approvals::Approve;
use crate::out::Out;
use serde_json::{Map, Value};
use sluice_core::money::Money;
use sluice_core::run::command::Decision;
use sluice_govern::decision::Constraints;
use sluice_server::refused::Refused;

pub(super) async fn run(args: &Approve, out: &mut Out) -> anyhow::Result<Exit> {
    // The run reads each text as the type that the step declares, as it does with an
    // agent's answer.
    let values = args.set.iter().map(|(name, text)| (name.clone(), text.clone().into()));
    let resolution = ApprovalDecision {
        decision: Decision::Approve,
        comment: args.choose.comment.clone(),
        values: values.collect(),
        constraints: constraints(&args.tighten)?,
    };
    resolve(&args.choose.approval.id, &resolution, &args.choose.by, out).await
}

/// Reads `--tighten FIELD=VALUE` as constraints; lists are separated by commas.
fn constraints(pairs: &[(String, String)]) -> anyhow::Result<Option<Constraints>> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let mut fields = Map::new();
    for (name, text) in pairs {
        let list = || Value::from(text.split(',').map(str::trim).collect::<Vec<_>>());
        let value = match name.as_str() {
            "tools_allow" if text.is_empty() => Value::Array(Vec::new()),
            "tools_allow" | "tools_deny" | "environments" => list(),
            "max_output_tokens" => text.parse::<u64>().map_or(Value::Null, Value::from),
            "max_cost_cents" => {
                let money = Money::from_cents_text(text);
                money.map_or(Value::Null, |money| money.micro_cents().into())
            }
            _ => Value::from(text.clone()),
        };
        let name = if name == "max_cost_cents" { "max_cost" } else { name };
        fields.insert(name.to_owned(), value);
    }
    serde_json::from_value(Value::Object(fields)).map(Some).map_err(|error| {
        let remedy = "tools_allow, tools_deny and environments take lists (`a,b`); \
                      max_cost_cents and max_output_tokens numbers; data_access a word";
        Refused::new("invalid_values", format!("`--tighten`: {error}"), remedy).into()
    })
}
