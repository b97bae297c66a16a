//! The server as a whole: its organisations, settings, limits and metrics.

use crate::api::cookie;
use crate::auth::Caller;
use crate::auth::secret::{self, Digest};
use crate::capacity::{CapacityPool, Shares};
use crate::checks::Checks;
use crate::limits;
use crate::metrics::Metrics;
use crate::organisation::Organisation;
use crate::rates::Rates;
use sluice_bridge::connections::{ConnectionLimits, Connections};
use sluice_bridge::limits::{CALLBACK_BYTES_MAX, CONNECTION_GRACE_MS};
use sluice_core::id::Entropy;
use sluice_core::port::Clock;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The settings that an operator may change.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Maximum size of a request body.
    pub body_bytes: usize,
    /// Maximum time until a request is answered.
    pub request_ms: u64,
    /// Requests a second for each token.
    pub rate_per_second: u32,
    /// Burst of requests for each token, beyond its rate.
    pub rate_burst: u32,
    /// Failed sign-ins a minute for each client address.
    pub strangers_per_minute: u32,
    /// Requests a second for each gateway.
    pub gateway_rate_per_second: u32,
    /// New processes behind one gateway that are recorded in a minute.
    pub instances_per_minute: u32,
    /// Sessions that one token may open in a minute.
    pub sessions_per_minute: u32,
    /// Concurrent sessions of one token; a further one ends the oldest.
    pub sessions: usize,
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum number of requests in progress.
    pub in_flight: usize,
    /// Maximum number of concurrent event streams.
    pub streams: usize,
    /// Maximum number of concurrent MCP calls.
    pub mcp_calls: usize,
    /// Maximum total size of request bodies that are being read.
    pub body_memory_bytes: usize,
    /// The share of each of these that a token, an organisation and all clients without a
    /// token may use.
    pub shares: Shares,
    /// Origins from which pages may call the API; none by default.
    pub cors_origins: Vec<String>,
    /// Host names, besides those of this machine, that MCP clients may use.
    pub hosts: Vec<String>,
    /// The URL under which browsers and gateways reach the server.
    pub public_url: String,
    /// Whether cookies are sent only over TLS; always true where `public_url` is https.
    pub secure_cookies: bool,
    /// How long the server waits for requests in progress when it stops.
    pub drain_ms: u64,
    /// How long a reader of a stream may read nothing before the server closes the stream.
    pub slow_reader_ms: u64,
    /// Interval of heartbeats on a stream without events.
    pub heartbeat_ms: u64,
    /// How long a client may take to send the head of a request, and a client without a
    /// token to send the body.
    pub head_ms: u64,
    /// How long a signed-in connection may stay open without a request.
    pub idle_ms: u64,
    /// How long repeated refusals of one client are counted before they become one audit entry.
    pub refusals_fold_ms: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            body_bytes: limits::BODY_BYTES,
            request_ms: limits::REQUEST_MS,
            rate_per_second: limits::RATE_PER_SECOND,
            rate_burst: limits::RATE_BURST,
            strangers_per_minute: limits::STRANGERS_PER_MINUTE,
            gateway_rate_per_second: limits::GATEWAY_RATE_PER_SECOND,
            instances_per_minute: limits::INSTANCES_PER_MINUTE,
            sessions_per_minute: limits::SESSIONS_PER_MINUTE,
            sessions: limits::SESSIONS_MAX,
            connections: limits::CONNECTIONS,
            in_flight: limits::IN_FLIGHT,
            streams: limits::STREAMS,
            mcp_calls: limits::MCP_AT_ONCE,
            body_memory_bytes: limits::BODY_MEMORY_BYTES,
            shares: limits::SHARES,
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            public_url: String::new(),
            secure_cookies: false,
            drain_ms: limits::DRAIN_MS,
            slow_reader_ms: limits::SLOW_READER_MS,
            heartbeat_ms: limits::HEARTBEAT_MS,
            head_ms: limits::HEAD_MS,
            idle_ms: limits::IDLE_MS,
            refusals_fold_ms: limits::REFUSALS_FOLD_MS,
        }
    }
}

/// Creates a random source for each use.
pub type EntropySource = Arc<dyn Fn() -> Box<dyn Entropy> + Send + Sync>;

/// The server's state. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// The name of the session cookie.
    cookie: String,
    clock: Arc<dyn Clock>,
    entropy: EntropySource,
    metrics: Arc<Metrics>,
    organisations: RwLock<BTreeMap<String, Arc<Organisation>>>,
    rates: Rates,
    capacity: Capacity,
    connections: Arc<Connections>,
    stop: CancellationToken,
}

/// What clients use concurrently, each within its share.
pub struct Capacity {
    /// Requests in progress.
    pub requests: Arc<CapacityPool>,
    /// Event streams.
    pub streams: Arc<CapacityPool>,
    /// MCP calls.
    pub mcp_calls: Arc<CapacityPool>,
    /// Bytes of request bodies that are being read.
    pub body_bytes: Arc<CapacityPool>,
    /// Checks that need much processor time.
    pub checks: Checks,
    /// Checks that may take minutes.
    pub(crate) long_checks: Checks,
}

impl Capacity {
    fn new(settings: &Settings) -> Capacity {
        let pool = |all| CapacityPool::new(all, settings.shares, 1);
        // Every share is at least as large as the largest body.
        let body = settings.body_bytes.max(CALLBACK_BYTES_MAX);
        let bytes = settings.body_memory_bytes.max(body);
        Capacity {
            requests: pool(settings.in_flight),
            streams: pool(settings.streams),
            mcp_calls: pool(settings.mcp_calls),
            body_bytes: CapacityPool::new(bytes, settings.shares, body),
            checks: Checks::default(),
            long_checks: Checks::default(),
        }
    }
}

/// Percent of all connections that one address may hold without a token and without a request
/// in flight.
const ADDRESS_SHARE: usize = 50;

fn connections(settings: &Settings) -> Connections {
    let of = |percent: usize| (settings.connections.saturating_mul(percent) / 100).max(1);
    let Shares { token, organisation, .. } = settings.shares;
    Connections::new(ConnectionLimits {
        all: settings.connections.max(1),
        organisation: of(organisation),
        token: of(token),
        address: of(ADDRESS_SHARE),
        grace: Duration::from_millis(CONNECTION_GRACE_MS),
    })
}

impl App {
    /// A server without organisations yet.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>, entropy: EntropySource) -> App {
        App(Arc::new(Inner {
            rates: Rates::new(&settings),
            capacity: Capacity::new(&settings),
            connections: Arc::new(connections(&settings)),
            clock,
            entropy,
            metrics: Arc::default(),
            organisations: RwLock::default(),
            stop: CancellationToken::new(),
            cookie: cookie::name(&settings),
            settings,
        }))
    }

    /// Adds an organisation to those that the server serves.
    pub fn add(&self, organisation: Organisation) -> Arc<Organisation> {
        let organisation = Arc::new(organisation);
        let mut organisations =
            self.0.organisations.write().expect("no thread panics while it holds the lock");
        organisations.insert(organisation.name().to_owned(), Arc::clone(&organisation));
        organisation
    }

    /// The organisations, ordered by name.
    pub fn organisations(&self) -> Vec<Arc<Organisation>> {
        let organisations =
            self.0.organisations.read().expect("no thread panics while it holds the lock");
        organisations.values().cloned().collect()
    }

    /// The metrics of the server. Engines use them as their observer.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    /// The settings of the operator.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The name of the session cookie.
    pub fn cookie(&self) -> &str {
        &self.0.cookie
    }

    /// The current time, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    /// A random source.
    pub fn entropy(&self) -> Box<dyn Entropy> {
        (self.0.entropy)()
    }

    /// The organisation and caller that a secret identifies. An address that sends too many
    /// invalid secrets is refused with the time after which it may try again.
    pub(crate) async fn identify(
        &self,
        secret: &str,
        from: IpAddr,
    ) -> Result<Option<(Arc<Organisation>, Caller)>, Duration> {
        let digest = secret::digest(secret);
        let found = digest.and_then(|digest| self.find_caller(&digest));
        match (&digest, &found) {
            // Notices soon what another process changed.
            (_, Some((organisation, _))) => organisation.refresh(self.now_ms()).await,
            (Some(_), None) => {
                self.0.rates.stranger(from)?;
                // Another process may just have created the token.
                for organisation in self.organisations() {
                    organisation.refresh_now().await;
                }
            }
            (None, None) => self.0.rates.stranger(from)?,
        }
        Ok(digest.and_then(|digest| self.find_caller(&digest)))
    }

    fn find_caller(&self, digest: &Digest) -> Option<(Arc<Organisation>, Caller)> {
        let now_ms = self.now_ms();
        self.organisations().into_iter().find_map(|organisation| {
            let caller = organisation.identities().find(digest, now_ms)?;
            Some((organisation, caller))
        })
    }

    /// The rate limits of clients.
    pub fn rates(&self) -> &Rates {
        &self.0.rates
    }

    /// What clients use concurrently.
    pub fn capacity(&self) -> &Capacity {
        &self.0.capacity
    }

    /// The open connections.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.0.connections
    }

    /// Drops the counters of clients that have sent nothing for long.
    pub fn tidy(&self) {
        self.0.rates.tidy();
        self.0.capacity.checks.tidy();
        self.0.capacity.long_checks.tidy();
    }

    /// Checks for changed tokens on which streams depend, and writes repeated refusals whose
    /// interval is over.
    pub(crate) async fn run_periodic_tasks(&self) {
        let now_ms = self.now_ms();
        for organisation in self.organisations() {
            organisation.refresh_watched(now_ms).await;
            organisation
                .write_repeated(now_ms.saturating_sub(self.settings().refusals_fold_ms))
                .await;
        }
    }

    /// Cancelled when the server stops: streams end and no new connection is accepted.
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }
}
