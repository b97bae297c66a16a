//! `sluice serve`: the API, the streams and the work, until it is told to stop.

use super::work::script;
use crate::Exit;
use crate::cli::Reader;
use crate::cli::serve::Serve;
use crate::config::{self, setting::Name};
use crate::environment;
use crate::handles;
use crate::hands::{self, Shell};
use crate::key;
use crate::keyring;
use crate::kit;
use crate::local::Local;
use crate::log;
use crate::moderation;
use crate::organisation;
use crate::out::Out;
use crate::place::{Node, Place};
use crate::stop::{Signal, Stop};
use futures_util::future::join_all;
use sluice_bridge::directory::{Callbacks, Kit};
use sluice_bridge::outbound::Outbound;
use sluice_bridge::token::DispatchKey;
use sluice_engine::observe::{All, Observer};
use sluice_engine::schedule::Starting;
use sluice_engine::world::{SystemClock, SystemEntropy};
use sluice_server::api;
use sluice_server::api::callbacks::{STEP_COMPLETE, STEP_PARTS, TOOL_USE};
use sluice_server::api::router::Router;
use sluice_server::app::{App, Settings};
use sluice_server::house::House;
use sluice_server::limits::BACKLOG;
use sluice_server::mcp;
use sluice_server::otel::{Exporter, Sending, Target};
use sluice_server::places::Shares;
use sluice_server::refused::Refused;
use sluice_server::service::{RowOrigin, Service};
use sluice_server::webhooks::pace::Pace;
use sluice_server::webhooks::{self, Post};
use sluice_server::workspaces;
use sluice_store::sqlite::{self, OpenError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;

/// The address cannot be listened at.
pub(super) const LISTEN_REFUSED: &str = "listen_refused";
/// How often new organisations are looked for, in milliseconds.
const LOOK_MS: u64 = 2000;
/// The same in a database, which is asked over a connection of its own.
const LOOK_THERE_MS: u64 = 10_000;
/// How long the start waits for the check of databases, in milliseconds.
const CHECK_MS: u64 = 1000;
/// A larger database is not checked when the server starts, in bytes.
const CHECK_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

pub(super) async fn run(args: &Serve, out: &mut Out) -> anyhow::Result<Exit> {
    log::begin();
    // From here on the end is an orderly one, however early it comes.
    let mut stop = Stop::listen()?;
    let listener = listen().await?;
    let address = listener.local_addr()?;
    let script = match &args.mock {
        None => None,
        Some(name) => match script(name, Reader::Person, out)? {
            Some(script) => Some(script),
            None => return Ok(Exit::Refused),
        },
    };
    let settings = settings(address);
    let app = App::new(settings, Arc::new(SystemClock), Arc::new(|| Box::new(SystemEntropy)));
    let post = Post {
        outbound: Arc::new(Outbound::new(kit::allowed()?)),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(|| Box::new(SystemEntropy)),
        pace: Pace::default(),
    };
    let traces = traces(&app)?;
    let observer = observer(&app, traces.as_ref().map(|(exporter, _)| exporter));
    let kit = kit::live(&args.data)?;
    let locals = BTreeMap::new();
    let reached = reached(address);
    let checked_by = Instant::now() + Duration::from_millis(CHECK_MS);
    let app_of = app.clone();
    let mut open =
        Open { args, script, kit, reached, app: app_of, post, observer, checked_by, locals };
    open.look(out).await?;
    greet(address, args, out)?;
    let mut routes = api::routes();
    routes.push(mcp::http::route());
    let router = Router::new(app.clone(), routes);
    let serving = tokio::spawn(sluice_server::serve::serve(app.clone(), router, listener));
    let signal = wait(&mut open, &mut stop, out).await?;
    out.note("stopping: streams end, work in progress may finish; a second signal ends at once")?;
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
                "ended with {left} runs in flight that could not be handed over; \
                 the next start goes on with them"
            ))?;
            Ok(signal.exit())
        }
        Err(signal) => {
            out.note("killed; the next start goes on with what is left")?;
            Ok(signal.exit())
        }
    }
}

/// The organisations that are served.
struct Open<'a> {
    args: &'a Serve,
    script: Option<sluice_bridge::mock::Script>,
    kit: Kit,
    /// Where gateways elsewhere reach this server.
    reached: String,
    app: App,
    post: Post,
    observer: Arc<dyn Observer>,
    /// Until when the start waits for checks of databases.
    checked_by: Instant,
    locals: BTreeMap<String, Local>,
}

impl Open<'_> {
    /// Opens the organisations that are there and not open yet.
    async fn look(&mut self, out: &mut Out) -> anyhow::Result<()> {
        for name in organisation::all(&self.args.data).await? {
            if self.locals.contains_key(&name) {
                continue;
            }
            let (local, dispatch) = self.open(&name).await?;
            let dir = organisation::directory(&self.args.data, &name);
            if let Some(file) = organisation::first_token(&local, &dir).await? {
                let file = file.display();
                out.note(&format!("the token of an admin of `{name}` is in {file}"))?;
            }
            let house = House::open(&name, Service::clone(&local)).await?;
            let house = house.with_keys(key::public(&dir)).with_default_agent(self.agent());
            let house = house.with_dispatch_key(dispatch);
            let house = self.app.add(house);
            self.check(&house, dir).await;
            let keep_ms = config::get().duration_ms(Name::WorkspacesKeep);
            tokio::spawn(workspaces::tidy(
                Service::clone(&local),
                keep_ms,
                self.app.stop().clone(),
            ));
            tokio::spawn(webhooks::deliver(house, self.post.clone(), self.app.stop().clone()));
            self.locals.insert(name, local);
        }
        Ok(())
    }

    /// Looks for damage of a store in the directory, while the server starts; a database
    /// for which that takes longer is checked while the server works.
    async fn check(&self, house: &Arc<House>, dir: PathBuf) {
        if !matches!(config::get().database(), Ok(None)) {
            return;
        }
        let house = Arc::clone(house);
        let checking = tokio::task::spawn_blocking(move || match damage(&dir) {
            Ok(None) => {}
            Ok(Some(why)) => house.readiness().damaged(why),
            Err(error) => tracing::warn!(%error, "the database was not checked for damage"),
        });
        // One that takes longer ends by itself.
        let _ = tokio::time::timeout_at(self.checked_by, checking).await;
    }

    /// Who does steps that name nobody.
    fn agent(&self) -> Option<String> {
        let scripted = || self.script.is_some().then(|| hands::MOCK.to_owned());
        config::agent().or_else(scripted)
    }

    async fn open(&self, name: &str) -> anyhow::Result<(Local, DispatchKey)> {
        let data = organisation::data(&self.args.data, name);
        let shell = if self.args.shell { Shell::On } else { Shell::Off };
        let Node { opened, dispatch } = Place::of(&data)?.serve().await?;
        let callbacks = Callbacks {
            url: format!("{}{STEP_COMPLETE}", self.reached),
            tool_url: Some(format!("{}{TOOL_USE}", self.reached)),
            parts_url: Some(format!("{}{STEP_PARTS}", self.reached)),
            key: dispatch.clone(),
        };
        let secrets = keyring::of(&data);
        let kit = Kit { callbacks: Some(callbacks), secrets: secrets.clone(), ..self.kit.clone() };
        let agents = hands::served(&data, self.script.clone(), shell, kit);
        let policies = crate::policies::source()?;
        let moderator = moderation::moderator(self.args.moderation.as_ref())?;
        let observer = Arc::clone(&self.observer);
        let local = Local::served(opened, agents, policies, moderator, observer).await?;
        let local = local.by(RowOrigin::Server, secrets);
        local.engine.keep_schedules(Starting { default_agent: self.agent() });
        Ok((local, dispatch))
    }
}

/// What is wrong with the database of a directory, if something is.
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

/// Where gateways elsewhere reach this server.
fn reached(address: SocketAddr) -> String {
    let said = config::get().text(Name::PublicUrl).map(|url| url.trim_end_matches('/').to_owned());
    said.unwrap_or_else(|| format!("http://{address}"))
}

/// Where traces are sent, if anywhere.
fn traces(app: &App) -> Result<Option<(Arc<Exporter>, Sending)>, Refused> {
    let said = config::get().text(Name::OtelEndpoint).map(str::to_owned);
    let Some(endpoint) = said.or_else(environment::otel_endpoint) else { return Ok(None) };
    let headers = environment::otel_headers().unwrap_or_default();
    let service = environment::otel_service();
    let target = Target::new(&endpoint, &headers, service.as_deref()).map_err(|error| {
        let remedy = "set `otel.endpoint` or OTEL_EXPORTER_OTLP_ENDPOINT to a collector";
        Refused::new(config::CONFIG_INVALID, error.to_string(), remedy)
    })?;
    Ok(Some(Exporter::start(target, Arc::clone(app.metrics()))))
}

/// Whoever is told what engines do: what counts, and what makes traces.
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

/// What the operator has set.
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

/// Listens where it was said, if that is near enough.
async fn listen() -> anyhow::Result<TcpListener> {
    let said = config::get().text(Name::Listen).unwrap_or_default();
    let bound = bind(said).await.map_err(|error| {
        let message = format!("cannot listen at {said}: {error}");
        let remedy = "choose another address with `--listen ADDR`, or end who has it";
        Refused::new(LISTEN_REFUSED, message, remedy)
    })?;
    if !bound.local_addr()?.ip().is_loopback() && !config::get().is_on(Name::AllowRemote) {
        let message = format!("{said} can be reached by others, and tokens would go unhidden");
        let remedy =
            "listen at 127.0.0.1, or put something with TLS in front and say `--allow-remote`";
        return Err(Refused::new(LISTEN_REFUSED, message, remedy).into());
    }
    Ok(bound)
}

/// Binds to the first address of a name that can be bound to. Many new connections
/// at once wait in the system's queue instead of being dropped.
async fn bind(said: &str) -> std::io::Result<TcpListener> {
    let mut failed = None;
    for address in tokio::net::lookup_host(said).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into()))
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

/// Waits for the signal to stop; meanwhile new organisations are looked for.
async fn wait(open: &mut Open<'_>, stop: &mut Stop, out: &mut Out) -> anyhow::Result<Signal> {
    let there = config::get().database()?.is_some();
    let look = Duration::from_millis(if there { LOOK_THERE_MS } else { LOOK_MS });
    loop {
        tokio::select! {
            biased;
            signal = stop.next() => return Ok(signal),
            () = tokio::time::sleep(look) => {
                if let Err(error) = open.look(out).await {
                    out.note(&format!("an organisation cannot be opened: {error:#}"))?;
                }
            }
        }
    }
}
