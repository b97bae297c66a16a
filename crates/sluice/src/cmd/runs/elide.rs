//! `sluice runs elide`.

use crate::Exit;
use crate::cli::runs::Elide;
use crate::client::fields;
use crate::desk::{self, Desk};
use crate::local;
use crate::out::Out;
use serde_json::json;
use sluice_server::service::elide::{self, Gone, Wish};

pub(super) async fn run(args: &Elide, out: &mut Out) -> anyhow::Result<Exit> {
    let desk = Desk::write(&args.data).await?;
    let gone = match &desk {
        Desk::Here(local) => {
            let wish = Wish {
                run: args.run.clone(),
                older_than_ms: args.older_than,
                actor: local::who(&args.name),
                reason: args.reason.clone(),
            };
            elide::elide(local, &wish).await?
        }
        Desk::There(client) => {
            desk::by_token(&args.name)?;
            let run = match &args.run {
                Some(text) => Some(super::id(client, text).await?),
                None => None,
            };
            let body = fields([
                ("run", json!(run)),
                ("older_than_ms", json!(args.older_than)),
                ("reason", json!(args.reason)),
            ]);
            let gone = client.post(&["elide"], &body).await?.data;
            let number = |name: &str| gone[name].as_u64().unwrap_or(0);
            Gone { parts: number("parts"), runs: number("runs") }
        }
    };
    desk.close().await;
    let Gone { parts, runs } = gone;
    let text = match (parts, runs) {
        (0, _) => "nothing was left to elide\n".to_owned(),
        (1, _) => "1 part of an answer elided; the answer stays\n".to_owned(),
        (_, 1) => format!("{parts} parts of answers of 1 run elided; the answers stay\n"),
        _ => format!("{parts} parts of answers of {runs} runs elided; the answers stay\n"),
    };
    out.print(&text)?;
    Ok(Exit::Done)
}
