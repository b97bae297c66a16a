//! `sluice runs restart`: starts a new run that takes over the results of another.

use crate::Exit;
use crate::cli::runs::Restart;
use crate::cmd::run_commands::step;
use crate::cmd::run_host::RunHost;
use crate::live::confirm;
use crate::out::Out;
use crate::table::Table;
use serde_json::{Value, json};
use sluice_server::refused::{NOT_CONFIRMED, Refused};

pub(super) async fn run(args: &Restart, out: &mut Out) -> anyhow::Result<Exit> {
    let Some(host) = RunHost::open(&args.work, out).await? else { return Ok(Exit::Refused) };
    let source = host.before(&args.run.id).await?.run_id;
    restart(host, &source, &args.from, args.work.options.yes, out).await
}

/// Restarts a run once its user agrees to repeat the steps that are listed.
pub(in crate::cmd) async fn restart(
    host: RunHost<'_>,
    source: &str,
    from: &[String],
    yes: bool,
    out: &mut Out,
) -> anyhow::Result<Exit> {
    let client = &host.client;
    let preview = json!({"from": from, "preview": true});
    let preview = client.post(&["runs", source, "restart"], &preview).await?.data;
    let repeats = preview["repeats"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let state = client.get(&["runs", source, "state"], &[]).await?.data;
    let mut table = Table::plain();
    for id in repeats {
        let step = step(&state, id);
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        table.row([id.to_owned(), text("agent"), text("status")]);
    }
    let repeated = table.draw();
    if !repeated.is_empty() {
        let repeated = repeated.trim_end();
        out.note(&format!("steps of {source} that will be repeated:\n{repeated}"))?;
        if !yes && !confirm(out)? {
            let message = "repeating these steps was not confirmed";
            return Err(Refused::new(NOT_CONFIRMED, message, "confirm with `--yes`").into());
        }
    }
    host.derive(source, "restart", &json!({"from": from}), out).await
}
