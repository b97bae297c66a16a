//! `sluice serve`: serves the API and executes runs until a signal stops it.

use super::listen::listen;
use super::local_worker::mock_script;
use crate::Exit;
use crate::adapters::{self, Shell};
use crate::cli::OutputFormat;
use crate::cli::serve::Serve;
use crate::config::{self, setting::Name};
use crate::data_location::{DataLocation, ServedLocation};
use crate::environment;
use crate::handles;
use crate::key;
use crate::keyring;
use crate::local::Local;
use crate::log;
use crate::moderation;
use crate::organisation;
use crate::out::Out;
use crate::providers;
use crate::stop::{Signal, StopSignals};
use futures_util::future::join_all;
use sluice_bridge::directory::{AdapterContext, Callbacks};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::token::DispatchKey;
use sluice_engine::observe::{All, Observer};
use sluice_engine::schedule::Starting;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::api;
use sluice_server::api::callbacks::{STEP_COMPLETE, STEP_PARTS, TOOL_USE};
use sluice_server::api::router::Router;
use sluice_server::app::{App, Settings};
use sluice_server::capacity::Shares;
use sluice_server::mcp;
use sluice_server::organisation::Organisation;
use sluice_server::otel::{ExportTarget, Exporter, Sending};
use sluice_server::refused::Refused;
use sluice_server::service::{RowOrigin, Service};
use sluice_server::webhooks::retry::RetrySchedule;
use sluice_server::webhooks::{self, Post};
use sluice_server::workspaces;
use sluice_store::sqlite::{self, OpenError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval of checks for new organisations.
const LOOK_MS: u64 = 2000;
/// The same in a database, which needs a new connection.
const LOOK_THERE_MS: u64 = 10_000;
/// How long the start waits for the integrity check of stores.
const CHECK_MS: u64 = 1000;
/// A larger database is not checked at the start, in bytes.
const CHECK_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

pub(super) async fn run(args: &Serve, out: &mut Out) -> anyhow::Result<Exit> {
    log::begin();
    // Signals are handled gracefully from here on.
    let mut stop = StopSignals::listen()?;
    let configured = config::get().text(Name::Listen).unwrap_or_default();
    let listener = listen(configured, "tokens").await?;
    let address = listener.local_addr()?;
    let Some(script) = mock_script(args.mock.as_ref(), OutputFormat::Text, out)? else {
        return Ok(Exit::Refused);
    };
    let settings = settings(address);
    let app = App::new(settings, Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
    let post = Post {
        outbound: Arc::new(Outbound::new(providers::allowed()?)),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        pace: RetrySchedule::default(),
    };
    let traces = traces(&app)?;
    let observer = observer(&app, traces.as_ref().map(|(exporter, _)| exporter));
    let kit = providers::live(&args.data)?;
    let locals = BTreeMap::new();
    let reached = reached(address);
    let checked_by = Instant::now() + Duration::from_millis(CHECK_MS);
    let app_of = app.clone();
    let mut open = ServedOrganisations {
        args,
        shell: shell(args),
        script,
        kit,
        reached,
        app: app_of,
        post,
        observer,
        checked_by,
        locals,
    };
    open.open_new(out).await?;
    greet(address, args, out)?;
    let mut routes = api::routes();
    routes.push(mcp::http::route());
    let router = Router::new(app.clone(), routes);
    let serving = tokio::spawn(sluice_server::serve::serve(app.clone(), router, listener));
    let signal = wait(&mut open, &mut stop, out).await?;
    out.note("stopping: streams end, runs in progress are released; a second signal ends at once")?;
    app.stop().cancel();
    let end = async {
        let served = serving.await;
        let closed = join_all(open.locals.into_values().map(Local::close)).await;
        if let Some((exporter, _)) = &traces {
            exporter.flush().await;
        }
        (served, closed.iter().sum::<usize>())
    };
    match stop.ending(end).await {
        Ok((served, 0)) => Ok(served.map(|()| Exit::Done)?),
        Ok((_, left)) => {
            out.note(&format!(
                "ended with {left} runs in flight that could not be released; \
                 the next start continues them"
            ))?;
            Ok(signal.exit())
        }
        Err(signal) => {
            out.note("killed; the next start continues the unfinished runs")?;
            Ok(signal.exit())
        }
    }
}

struct ServedOrganisations<'a> {
    args: &'a Serve,
    /// Shared by all organisations.
    shell: Shell,
    script: Option<sluice_bridge::mock::Script>,
    kit: AdapterContext,
    /// The URL by which remote gateways reach this server.
    reached: String,
    app: App,
    post: Post,
    observer: Arc<dyn Observer>,
    /// When the start stops waiting for integrity checks.
    checked_by: Instant,
    locals: BTreeMap<String, Local>,
}

impl ServedOrganisations<'_> {
    /// Opens new organisations.
    async fn open_new(&mut self, out: &mut Out) -> anyhow::Result<()> {
        for name in organisation::all(&self.args.data).await? {
            if self.locals.contains_key(&name) {
                continue;
            }
            let (local, dispatch) = self.open(&name).await?;
            let dir = organisation::directory(&self.args.data, &name);
            if let Some(file) = organisation::first_token(&local, &dir).await? {
                let file = file.display();
                out.note(&format!("the admin token of `{name}` is in {file}"))?;
            }
            let organisation = Organisation::open(&name, Service::clone(&local)).await?;
            let organisation =
                organisation.with_keys(key::public(&dir)).with_default_agent(self.agent());
            let organisation = organisation.with_dispatch_key(dispatch);
            let organisation = self.app.add(organisation);
            self.check(&organisation, dir).await;
            let keep_ms = config::get().duration_ms(Name::WorkspacesKeep);
            tokio::spawn(workspaces::tidy(
                Service::clone(&local),
                keep_ms,
                self.app.stop().clone(),
            ));
            tokio::spawn(webhooks::deliver(
                organisation,
                self.post.clone(),
                self.app.stop().clone(),
            ));
            self.locals.insert(name, local);
        }
        Ok(())
    }

    /// Checks the integrity of a store in the background; the start waits for it only for a short
    /// time.
    async fn check(&self, organisation: &Arc<Organisation>, dir: PathBuf) {
        if !matches!(config::get().database(), Ok(None)) {
            return;
        }
        let organisation = Arc::clone(organisation);
        let checking = tokio::task::spawn_blocking(move || match damage(&dir) {
            Ok(None) => {}
            Ok(Some(why)) => organisation.readiness().damaged(why),
            Err(error) => tracing::warn!(%error, "the database was not checked for damage"),
        });
        // A check that takes longer continues in the background.
        let _ = tokio::time::timeout_at(self.checked_by, checking).await;
    }

    /// The agent of steps that name none.
    fn agent(&self) -> Option<String> {
        let scripted = || self.script.is_some().then(|| adapters::MOCK.to_owned());
        config::agent().or_else(scripted)
    }

    async fn open(&self, name: &str) -> anyhow::Result<(Local, DispatchKey)> {
        let data = organisation::data(&self.args.data, name);
        let ServedLocation { opened, dispatch } = DataLocation::resolve(&data)?.serve().await?;
        let callbacks = Callbacks {
            url: format!("{}{STEP_COMPLETE}", self.reached),
            tool_url: Some(format!("{}{TOOL_USE}", self.reached)),
            parts_url: Some(format!("{}{STEP_PARTS}", self.reached)),
            key: dispatch.clone(),
        };
        let secrets = keyring::for_data(&data);
        let kit = AdapterContext {
            callbacks: Some(callbacks),
            secrets: secrets.clone(),
            ..self.kit.clone()
        };
        let agents = adapters::served(&data, self.script.clone(), self.shell.clone(), kit);
        let policies = crate::policies::source()?;
        let moderator = moderation::moderator(self.args.moderation.as_ref())?;
        let observer = Arc::clone(&self.observer);
        let local = Local::served(opened, agents, policies, moderator, observer).await?;
        let local = local.with_origin(RowOrigin::Server, secrets);
        local.engine.keep_schedules(Starting { default_agent: self.agent() });
        Ok((local, dispatch))
    }
}

/// The damage of a database, if any.
fn damage(dir: &Path) -> anyhow::Result<Option<String>> {
    if sqlite::size(dir)? > CHECK_BYTES_MAX {
        anyhow::bail!("it is large; `sluice doctor` checks it");
    }
    match sqlite::inspect(dir) {
        Ok(found) => {
            Ok(found.faults.first().map(|fault| format!("the database is damaged: {fault}")))
        }
        Err(OpenError::Damaged { .. }) => Ok(Some("the database is damaged".to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// The URL by which remote gateways reach this server.
fn reached(address: SocketAddr) -> String {
    let configured =
        config::get().text(Name::PublicUrl).map(|url| url.trim_end_matches('/').to_owned());
    configured.unwrap_or_else(|| format!("http://{address}"))
}

/// The exporter of traces, if configured.
fn traces(app: &App) -> Result<Option<(Arc<Exporter>, Sending)>, Refused> {
    let configured = config::get().text(Name::OtelEndpoint).map(str::to_owned);
    let Some(endpoint) = configured.or_else(environment::otel_endpoint) else { return Ok(None) };
    let headers = environment::otel_headers().unwrap_or_default();
    let service = environment::otel_service();
    let target = ExportTarget::new(&endpoint, &headers, service.as_deref()).map_err(|error| {
        let remedy = "set `otel.endpoint` or OTEL_EXPORTER_OTLP_ENDPOINT to a collector";
        Refused::new(config::CONFIG_INVALID, error.to_string(), remedy)
    })?;
    Ok(Some(Exporter::start(target, Arc::clone(app.metrics()))))
}

/// The observer of all engines: metrics, and traces if configured.
fn observer(app: &App, exporter: Option<&Arc<Exporter>>) -> Arc<dyn Observer> {
    let metrics: Arc<dyn Observer> = Arc::clone(app.metrics()) as Arc<dyn Observer>;
    match exporter {
        None => metrics,
        Some(exporter) => {
            let exporter = Arc::clone(exporter) as Arc<dyn Observer>;
            Arc::new(All(vec![metrics, exporter]))
        }
    }
}

fn shell(args: &Serve) -> Shell {
    let connections = config::get().number(Name::ConnectionsMax);
    let connections = usize::try_from(connections).unwrap_or(usize::MAX);
    if args.shell { Shell::beside(connections) } else { Shell::Off }
}

fn settings(address: SocketAddr) -> Settings {
    let config = config::get();
    let number = |name| usize::try_from(config.number(name)).unwrap_or(usize::MAX);
    let hosts = config.words(Name::Hosts);
    let rate = |name| u32::try_from(config.number(name)).unwrap_or(u32::MAX);
    Settings {
        body_bytes: number(Name::BodyBytes),
        request_ms: config.number(Name::RequestTimeoutMs),
        rate_per_second: rate(Name::RatePerSecond),
        rate_burst: rate(Name::RateBurst),
        gateway_rate_per_second: rate(Name::GatewayRatePerSecond),
        sessions: number(Name::SessionsMax),
        connections: handles::connections(number(Name::ConnectionsMax)),
        in_flight: number(Name::InFlightMax),
        streams: number(Name::ReadersMax),
        mcp_calls: number(Name::McpCallsMax),
        body_memory_bytes: number(Name::BodyMemoryBytes),
        shares: Shares {
            token: number(Name::TokenPercent),
            organisation: number(Name::OrganisationPercent),
            strangers: number(Name::StrangersPercent),
        },
        cors_origins: config.words(Name::CorsOrigins).to_vec(),
        public_url: reached(address),
        secure_cookies: config.is_on(Name::SecureCookies),
        drain_ms: config.number(Name::DrainMs),
        hosts: [address.to_string()].into_iter().chain(hosts.iter().cloned()).collect(),
        ..Settings::default()
    }
}

fn greet(address: SocketAddr, args: &Serve, out: &mut Out) -> anyhow::Result<()> {
    let file = organisation::directory(&args.data, organisation::DEFAULT);
    let file = file.join(organisation::ADMIN_FILE);
    out.print(&format!("sluice serves at http://{address}\n"))?;
    out.note(&format!(
        "the API: http://{address}/api/docs\n\
         try: curl -H \"Authorization: Bearer $(cat {})\" http://{address}/api/v1/workflows",
        file.display()
    ))?;
    out.flush()
}

/// Waits for a signal, and opens new organisations meanwhile.
async fn wait(
    open: &mut ServedOrganisations<'_>,
    stop: &mut StopSignals,
    out: &mut Out,
) -> anyhow::Result<Signal> {
    let there = config::get().database()?.is_some();
    let look = Duration::from_millis(if there { LOOK_THERE_MS } else { LOOK_MS });
    loop {
        tokio::select! {
            biased;
            signal = stop.next() => return Ok(signal),
            () = tokio::time::sleep(look) => {
                if let Err(error) = open.open_new(out).await {
                    out.note(&format!("an organisation cannot be opened: {error:#}"))?;
                }
            }
        }
    }
}
