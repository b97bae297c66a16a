//! `sluice bridge`: executes dispatches of a remote engine until a signal stops it.

mod file;
#[cfg(test)]
mod tests;

use super::listen::listen;
use super::local_worker::script;
use super::{print_diagnostics, print_unreadable};
use crate::Exit;
use crate::adapters::scrubbed;
use crate::cli::OutputFormat;
use crate::cli::bridge::Bridge;
use crate::config::{self, CONFIG_INVALID, setting::Name};
use crate::input;
use crate::keyring;
use crate::log;
use crate::out::Out;
use crate::providers;
use crate::stop::StopSignals;
use file::{AdapterConfig, BridgeFile};
use sluice_bridge::bridge_server::registration::{EVERY, Registration, instance_id};
use sluice_bridge::bridge_server::{Adapters, BridgeServer, Settings};
use sluice_bridge::directory::{AdapterContext, Connection};
use sluice_bridge::mock::MockAdapter;
use sluice_bridge::outbound::Outbound;
use sluice_bridge::outbound::allow::AllowList;
use sluice_bridge::pinned::PinFile;
use sluice_bridge::secret::Secret;
use sluice_bridge::shell::{Config as ShellConfig, ShellAdapter, Workspace};
use sluice_core::port::Clock as _;
use sluice_core::port::adapter::Adapter;
use sluice_core::secret::SecretRef;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::refused::Refused;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

/// The remedy for an invalid secret reference.
pub(super) const REFERENCES: &str = "`secret:NAME` names a secret of sluice.toml, `env:NAME` a \
                                     variable, `file:PATH` a file with nothing else in it";

pub(super) async fn run(args: &Bridge, out: &mut Out) -> anyhow::Result<Exit> {
    log::begin();
    // Signals are handled gracefully from here on.
    let mut stop = StopSignals::listen()?;
    let Some(plan) = plan(args, out)? else { return Ok(Exit::Refused) };
    let outbound = Arc::new(Outbound::new(allowed(&plan)?));
    let Some(adapters) = adapters(&plan, &outbound, out)? else { return Ok(Exit::Refused) };
    let settings = settings(&plan)?;
    let registration = Registration {
        server: plan.server.0.clone(),
        gateway: plan.gateway.clone(),
        token: settings.token.clone(),
        instance_id: settings.instance_id.clone(),
        every: EVERY,
        outbound: Arc::clone(&outbound),
    };
    let listener = listen(&args.listen, "keys").await?;
    let address = listener.local_addr()?;
    let opened = BridgeServer::open(settings, adapters, outbound, Arc::new(SystemClock)).await;
    let bridge = opened.map_err(|error| {
        let remedy = "name a directory that is this bridge's alone as `spool`";
        Refused::new(CONFIG_INVALID, error.to_string(), remedy)
    })?;
    out.print(&format!("sluice bridge `{}` works at http://{address}\n", plan.gateway))?;
    out.flush()?;
    let serving = tokio::spawn({
        let bridge = bridge.clone();
        async move { bridge.serve(listener).await }
    });
    tokio::select! {
        _ = stop.next() => {}
        () = registration.keep(&bridge) => {}
    }
    out.note("stopping: work in progress may finish; a second signal ends at once")?;
    bridge.stop();
    let end = async {
        registration.leave().await;
        serving.await
    };
    match stop.ending(end).await {
        Ok(served) => Ok(served.map(|()| Exit::Done)?),
        Err(signal) => {
            out.note("killed; the next start delivers what is in the spool")?;
            Ok(signal.exit())
        }
    }
}

/// Reads the file; none if it is refused, which is reported.
fn plan(args: &Bridge, out: &mut Out) -> anyhow::Result<Option<BridgeFile>> {
    let input = match input::read(&args.file) {
        Ok(input) => input,
        Err(unreadable) => {
            print_unreadable(&unreadable, OutputFormat::Text, out)?;
            return Ok(None);
        }
    };
    let base = Path::new(&args.file).parent().unwrap_or(Path::new("")).to_owned();
    let read = input.text().and_then(file::read);
    match read {
        Ok(value) => {
            Ok(Some(BridgeFile::new(value, &base).map_err(|why| invalid(&input.name, &why))?))
        }
        Err(diagnostics) => {
            print_diagnostics(&input, &diagnostics, out)?;
            Ok(None)
        }
    }
}

fn invalid(name: &str, why: &str) -> Refused {
    let remedy = "the guide's page on the bridge has an example of the file";
    let name = sluice_core::visible::brief(name);
    Refused::new(CONFIG_INVALID, format!("`{name}`: {why}"), remedy)
}

/// Resolves a secret of the operator, which may be sent to this URL only.
pub(super) fn secret(
    what: &str,
    reference: &SecretRef,
    url: Option<&str>,
) -> Result<Secret, Refused> {
    let key = keyring::operator().of_setting(reference);
    let read = url.map_or_else(|| key.read(), |url| key.read_for(url));
    read.map_err(|error| Refused::new(CONFIG_INVALID, format!("`{what}`: {error}"), REFERENCES))
}

fn settings(plan: &BridgeFile) -> Result<Settings, Refused> {
    let token = secret("token", &plan.token, Some(plan.server.0.as_str()))?;
    let key = plan.key.as_ref().map(|key| secret("key", key, None)).transpose()?;
    let usual =
        Settings::new(&plan.gateway, token.clone(), plan.spool.clone(), plan.server.0.clone());
    let servers = [&plan.server].into_iter().chain(&plan.servers);
    let servers = servers.map(|server| server.0.clone()).collect();
    Ok(Settings {
        instance_id: instance_id(SystemClock.now_ms(), &mut SystemEntropy),
        key: key.unwrap_or(token),
        servers,
        running_max: plan.running_max.unwrap_or(usual.running_max),
        ..usual
    })
}

/// The outbound client: public addresses, and those that the operator allows.
fn allowed(plan: &BridgeFile) -> Result<AllowList, Refused> {
    let words = config::get().words(Name::OutboundAllow);
    let words = words.iter().chain(&plan.allow).map(String::as_str);
    let list = AllowList::parse(words).map_err(|error| {
        let remedy = "`allow` lists hosts, addresses and networks such as `10.0.0.0/8`";
        Refused::new(CONFIG_INVALID, error.to_string(), remedy)
    })?;
    let bases = plan.adapters.values().filter_map(|given| given.base_url.as_ref());
    let urls = [&plan.server].into_iter().chain(&plan.servers).chain(bases);
    Ok(urls.fold(list, |list, url| list.and(&url.0)))
}

/// The adapters; none if a script is refused, which is reported.
fn adapters(
    plan: &BridgeFile,
    outbound: &Arc<Outbound>,
    out: &mut Out,
) -> anyhow::Result<Option<Adapters>> {
    let wire = Arc::clone(outbound) as Arc<dyn sluice_bridge::wire::Wire>;
    let pins = plan.spool.with_extension("tools");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&pins)?;
    let tool_servers = providers::tool_servers(&Arc::new(PinFile::new(&pins)));
    let kit = AdapterContext { wire, tool_servers, secrets: keyring::operator(), callbacks: None };
    let mut adapters = Adapters::new();
    for (name, given) in &plan.adapters {
        let provider = given.provider.as_deref().unwrap_or(name);
        let adapter: Arc<dyn Adapter> = match provider {
            "mock" => match scripted(name, given, out)? {
                Some(mock) => scrubbed(Arc::new(mock)),
                None => return Ok(None),
            },
            "shell" => scrubbed(Arc::new(shell(plan, given))),
            _ => spoken_to(&kit, &plan.gateway, name, provider, given)?,
        };
        adapters.insert(name.clone(), adapter);
    }
    Ok(Some(adapters))
}

fn scripted(
    name: &str,
    given: &AdapterConfig,
    out: &mut Out,
) -> anyhow::Result<Option<MockAdapter>> {
    let Some(file) = &given.script else {
        let why = format!("the adapter `{name}` needs a `script`");
        return Err(invalid("adapters", &why).into());
    };
    Ok(script(file.as_os_str(), OutputFormat::Text, out)?.map(MockAdapter::new))
}

fn shell(plan: &BridgeFile, given: &AdapterConfig) -> ShellAdapter {
    let dir = given.workspace.clone().unwrap_or_else(|| plan.spool.with_extension("workspaces"));
    let dir = std::path::absolute(&dir).unwrap_or(dir);
    ShellAdapter::new(ShellConfig::new(Workspace::PerRun(dir)))
}

fn spoken_to(
    kit: &AdapterContext,
    gateway: &str,
    name: &str,
    provider: &str,
    given: &AdapterConfig,
) -> Result<Arc<dyn Adapter>, Refused> {
    let connection = Connection {
        provider: provider.to_owned(),
        base_url: given.base_url.as_ref().map(|url| url.0.to_string()),
        key: given.key.as_ref().map(|key| kit.secrets.of_setting(key)),
        tool_servers: given.tool_servers.clone(),
    };
    let missing = given.tool_servers.iter().find(|one| !kit.tool_servers.contains_key(*one));
    if let Some(missing) = missing {
        let why =
            format!("the adapter `{name}` names `{missing}`, which is not a configured MCP server");
        return Err(invalid("adapters", &why));
    }
    kit.adapter(gateway, &connection).ok_or_else(|| {
        let why =
            format!("the adapter `{name}` names the provider `{provider}`, which is not known");
        invalid("adapters", &why)
    })
}
