//! `sluice gateways check`: checks that a remote gateway follows the protocol.

use super::super::bridge::{REFERENCES, secret};
use crate::Exit;
use crate::cli::OutputFormat;
use crate::cli::gateways::CheckGateway;
use crate::cmd::listen::LISTEN_REFUSED;
use crate::config::CONFIG_INVALID;
use crate::out::{Layout, Out};
use crate::providers;
use reqwest::Url;
use serde_json::json;
use sluice_bridge::conformance::gateway::receiver::Receiver;
use sluice_bridge::conformance::gateway::{Replies, Suite, Target, names};
use sluice_bridge::conformance::{Case, CaseVerdict, Report};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::secret::Secret;
use sluice_core::id::RunId;
use sluice_core::port::Clock as _;
use sluice_core::visible;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::refused::Refused;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) async fn run(args: &CheckGateway, out: &mut Out) -> anyhow::Result<Exit> {
    let url = url(&args.url)?;
    // The operator names the gateway, so its address is allowed.
    let outbound = Arc::new(Outbound::new(providers::allowed()?.and(&url)));
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
    let (output, mut report) = (args.json.output(), Report::default());
    for name in names() {
        let Some(case) = suite.check_case(name).await else { continue };
        if output == OutputFormat::Text {
            out.print(&line(&case))?;
            // Cases take a while, so each is printed at once.
            out.flush()?;
        }
        report.cases.push(case);
    }
    let (passed, failed, skipped) = report.counts();
    match output {
        OutputFormat::Json => {
            let value = json!({"ok": report.passed(), "cases": report.cases});
            out.json(Layout::Line, &value)?;
        }
        OutputFormat::Text => {
            out.print(&format!("{passed} passed, {failed} failed, {skipped} skipped\n"))?;
        }
    }
    Ok(if report.passed() { Exit::Done } else { Exit::Failed })
}

fn line(case: &Case) -> String {
    let name = case.case;
    match &case.verdict {
        CaseVerdict::Passed => format!("passed   {name}\n"),
        // The text of a gateway is not trusted.
        CaseVerdict::Failed(why) => format!("FAILED   {name}: {}\n", visible::brief(why)),
        CaseVerdict::Skipped(why) => format!("skipped  {name}: {why}\n"),
    }
}

fn url(text: &str) -> Result<Url, Refused> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.filter(Url::has_host).ok_or_else(|| {
        let remedy = "write where the gateway is, such as `http://127.0.0.1:7410`";
        Refused::new(CONFIG_INVALID, "the gateway URL is not valid", remedy)
    })
}

/// Resolves a secret. An invalid reference is not repeated: it may be the secret itself.
fn read(what: &str, reference: &str, url: &str) -> Result<Secret, Refused> {
    match reference.parse() {
        Ok(reference) => secret(what, &reference, Some(url)),
        Err(error) => Err(Refused::new(CONFIG_INVALID, format!("`{what}`: {error}"), REFERENCES)),
    }
}

async fn listen(at: SocketAddr) -> Result<Receiver, Refused> {
    if !at.ip().is_loopback() {
        let message =
            format!("{at} is not a loopback address, so tokens would be sent unencrypted");
        let remedy = "check a gateway on its own machine, or through a tunnel";
        return Err(Refused::new(LISTEN_REFUSED, message, remedy));
    }
    Receiver::listen(at).await.map_err(|error| {
        let remedy = "name another address with `--listen`; port 0 takes a free one";
        Refused::new(LISTEN_REFUSED, format!("cannot listen at {at}: {error}"), remedy)
    })
}
