//! `sluice runs elide`.

use crate::Exit;
use crate::backend;
use crate::cli::runs::Elide;
use crate::client::fields;
use crate::out::Out;
use serde_json::json;

pub(super) async fn run(args: &Elide, out: &mut Out) -> anyhow::Result<Exit> {
    let client = backend::write(&args.data, &args.name).await?;
    let run = match &args.run {
        Some(text) => Some(super::id(&client, text).await?),
        None => None,
    };
    let body = fields([
        ("run", json!(run)),
        ("older_than_ms", json!(args.older_than)),
        ("reason", json!(args.reason)),
    ]);
    let gone = client.post(&["elide"], &body).await?.data;
    client.close().await;
    let [parts, runs] = ["parts", "runs"].map(|name| gone[name].as_u64().unwrap_or(0));
    let text = match (parts, runs) {
        (0, _) => "nothing was left to elide\n".to_owned(),
        (1, _) => "1 part of an answer elided; the answer stays\n".to_owned(),
        (_, 1) => format!("{parts} parts of answers of 1 run elided; the answers stay\n"),
        _ => format!("{parts} parts of answers of {runs} runs elided; the answers stay\n"),
    };
    out.print(&text)?;
    Ok(Exit::Done)
}
