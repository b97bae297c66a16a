//! `sluice gateways check`: does a gateway elsewhere keep to the protocol?

use super::super::bridge::{REFERENCES, secret};
use super::super::serve::LISTEN_REFUSED;
use crate::Exit;
use crate::cli::Reader;
use crate::cli::gateways::CheckGateway;
use crate::config::CONFIG_INVALID;
use crate::kit;
use crate::out::{Layout, Out};
use reqwest::Url;
use serde_json::json;
use sluice_bridge::conformance::gateway::receiver::Receiver;
use sluice_bridge::conformance::gateway::{Replies, Suite, Target, names};
use sluice_bridge::conformance::{Case, Report, Verdict};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::secret::Secret;
use sluice_core::port::Clock as _;
use sluice_core::run::id::RunId;
use sluice_core::visible;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::refused::Refused;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) async fn run(args: &CheckGateway, out: &mut Out) -> anyhow::Result<Exit> {
    let url = url(&args.url)?;
    // Whoever names it may call it.
    let outbound = Arc::new(Outbound::new(kit::allowed()?.and(&url)));
    let target = Target {
        url: args.url.clone(),
        key: read("--key", &args.key, &args.url)?,
        token: args.token.as_deref().map(|token| read("--token", token, &args.url)).transpose()?,
        provider: args.provider.clone(),
        quick: args.command.clone(),
        slow: args.slow.clone(),
        replies: if args.sync { Replies::AtOnce } else { Replies::ByCallback },
        first_run: RunId::new(SystemClock.now_ms(), &mut SystemEntropy),
    };
    let suite = Suite::new(target, outbound, listen(args.listen).await?);
    let (reader, mut report) = (args.json.reader(), Report::default());
    for name in names() {
        let Some(case) = suite.check_case(name).await else { continue };
        if reader == Reader::Person {
            out.print(&line(&case))?;
            // Cases take a while: each is shown as it comes.
            out.flush()?;
        }
        report.cases.push(case);
    }
    let (passed, failed, skipped) = report.counts();
    match reader {
        Reader::Program => {
            let value = json!({"ok": report.passed(), "cases": report.cases});
            out.json(Layout::Line, &value)?;
        }
        Reader::Person => {
            out.print(&format!("{passed} passed, {failed} failed, {skipped} skipped\n"))?;
        }
    }
    Ok(if report.passed() { Exit::Done } else { Exit::Failed })
}

fn line(case: &Case) -> String {
    let name = case.case;
    match &case.verdict {
        Verdict::Passed => format!("passed   {name}\n"),
        // A gateway may say anything.
        Verdict::Failed(why) => format!("FAILED   {name}: {}\n", visible::brief(why)),
        Verdict::Skipped(why) => format!("skipped  {name}: {why}\n"),
    }
}

fn url(text: &str) -> Result<Url, Refused> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.filter(Url::has_host).ok_or_else(|| {
        let remedy = "write where the gateway is, such as `http://127.0.0.1:7410`";
        Refused::new(CONFIG_INVALID, "the gateway's URL is none", remedy)
    })
}

/// A secret. What is no reference is not repeated: it may be the secret.
fn read(what: &str, reference: &str, url: &str) -> Result<Secret, Refused> {
    match reference.parse() {
        Ok(reference) => secret(what, &reference, Some(url)),
        Err(error) => Err(Refused::new(CONFIG_INVALID, format!("`{what}`: {error}"), REFERENCES)),
    }
}

async fn listen(at: SocketAddr) -> Result<Receiver, Refused> {
    if !at.ip().is_loopback() {
        let message = format!("{at} can be reached by others, and tokens would go unhidden");
        let remedy = "check a gateway on its own machine, or through a tunnel";
        return Err(Refused::new(LISTEN_REFUSED, message, remedy));
    }
    Receiver::listen(at).await.map_err(|error| {
        let remedy = "name another address with `--listen`; port 0 takes a free one";
        Refused::new(LISTEN_REFUSED, format!("cannot listen at {at}: {error}"), remedy)
    })
}
