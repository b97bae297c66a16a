//! `sluice runs branch`: starts a new run from a checkpoint of another.

use crate::Exit;
use crate::cli::runs::Branch;
use crate::cmd::run_host::RunHost;
use crate::out::Out;
use serde_json::{Map, Value, json};

pub(super) async fn run(args: &Branch, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(host) = RunHost::open(&args.work, out).await? else { return Ok(Exit::Refused) };
    let source = host.before(&args.run.id).await?.run_id;
    let set: Map<String, Value> =
        args.set.iter().map(|(path, text)| (path.clone(), value(text))).collect();
    let body = json!({"at": args.at, "args": args.inputs.args(), "set": set});
    host.derive(&source, "branch", &body, out).await
}

/// A text that is not JSON is taken as a string.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
