//! The server as a whole: its organisations, its settings, what it counts.

use crate::api::cookie;
use crate::auth::Caller;
use crate::auth::secret::{self, Digest};
use crate::checks::Checks;
use crate::house::House;
use crate::limits;
use crate::metrics::Metrics;
use crate::places::{Places, Shares};
use crate::rates::Rates;
use sluice_bridge::connections::{Bounds, Connections};
use sluice_bridge::limits::{CALLBACK_BYTES_MAX, CONNECTION_GRACE_MS};
use sluice_core::port::{Clock, Entropy};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What an operator may set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Longest body of a request.
    pub body_bytes: usize,
    /// How long a request may take.
    pub request_ms: u64,
    /// Requests a second for each token.
    pub rate_per_second: u32,
    /// Requests at once for each token.
    pub rate_burst: u32,
    /// Failed sign-ins a minute for each address.
    pub strangers_per_minute: u32,
    /// Requests a second for each gateway.
    pub gateway_rate_per_second: u32,
    /// New processes behind one gateway that are noted in a minute.
    pub instances_per_minute: u32,
    /// Sessions that one token may open in a minute.
    pub sessions_per_minute: u32,
    /// Sessions of one token at once; one more ends the oldest.
    pub sessions: usize,
    /// Most connections at once.
    pub connections: usize,
    /// Most requests that are worked on at once.
    pub in_flight: usize,
    /// Most live streams at once.
    pub streams: usize,
    /// Most calls of agents at once.
    pub mcp_calls: usize,
    /// Most bytes of bodies that are being read.
    pub body_memory_bytes: usize,
    /// What one token, one organisation and all strangers may have of each of these.
    pub shares: Shares,
    /// Origins that pages may ask from; none by default.
    pub cors_origins: Vec<String>,
    /// Names, beside those of this machine, under which agents may ask.
    pub hosts: Vec<String>,
    /// Where browsers and gateways reach the server.
    pub public_url: String,
    /// Whether cookies are only sent over TLS; they are where `public_url` is https.
    pub secure_cookies: bool,
    /// How long the server waits for what is under way when it stops.
    pub drain_ms: u64,
    /// How long one who reads a stream may not take anything.
    pub slow_reader_ms: u64,
    /// How often a quiet stream says that it lives.
    pub heartbeat_ms: u64,
    /// How long a client may take to send the head of a request, and one without a
    /// token to send the body.
    pub head_ms: u64,
    /// How long a signed-in connection may stay open without a request.
    pub idle_ms: u64,
    /// How long refusals of one client are counted before they become one entry.
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

/// Makes chance.
pub type EntropySource = Arc<dyn Fn() -> Box<dyn Entropy> + Send + Sync>;

/// The server's state. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// The name of the cookie of sessions.
    cookie: String,
    clock: Arc<dyn Clock>,
    entropy: EntropySource,
    metrics: Arc<Metrics>,
    houses: RwLock<BTreeMap<String, Arc<House>>>,
    rates: Rates,
    room: Room,
    connections: Arc<Connections>,
    stop: CancellationToken,
}

/// What clients use at once, each within its share.
pub struct Room {
    /// Requests that are worked on.
    pub requests: Arc<Places>,
    /// Live streams.
    pub streams: Arc<Places>,
    /// Calls of agents.
    pub mcp_calls: Arc<Places>,
    /// Bytes of bodies that are being read.
    pub body_bytes: Arc<Places>,
    /// Checks that need much time of a processor.
    pub checks: Checks,
    /// The same, of those that may take minutes.
    pub long_checks: Checks,
}

impl Room {
    fn new(settings: &Settings) -> Room {
        let places = |all| Places::new(all, settings.shares, 1);
        // The largest body fits every share.
        let body = settings.body_bytes.max(CALLBACK_BYTES_MAX);
        let bytes = settings.body_memory_bytes.max(body);
        Room {
            requests: places(settings.in_flight),
            streams: places(settings.streams),
            mcp_calls: places(settings.mcp_calls),
            body_bytes: Places::new(bytes, settings.shares, body),
            checks: Checks::default(),
            long_checks: Checks::default(),
        }
    }
}

fn connections(settings: &Settings) -> Connections {
    let of = |percent: usize| (settings.connections.saturating_mul(percent) / 100).max(1);
    let Shares { token, organisation, .. } = settings.shares;
    Connections::new(Bounds {
        all: settings.connections.max(1),
        organisation: of(organisation),
        token: of(token),
        grace: Duration::from_millis(CONNECTION_GRACE_MS),
    })
}

impl App {
    /// A server without organisations yet.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>, entropy: EntropySource) -> App {
        App(Arc::new(Inner {
            rates: Rates::new(&settings),
            room: Room::new(&settings),
            connections: Arc::new(connections(&settings)),
            clock,
            entropy,
            metrics: Arc::default(),
            houses: RwLock::default(),
            stop: CancellationToken::new(),
            cookie: cookie::name(&settings),
            settings,
        }))
    }

    /// Serves an organisation from now on.
    pub fn add(&self, house: House) -> Arc<House> {
        let house = Arc::new(house);
        let mut houses = self.0.houses.write().expect("nobody panics while holding it");
        houses.insert(house.name().to_owned(), Arc::clone(&house));
        house
    }

    /// The organisations, by name.
    pub fn houses(&self) -> Vec<Arc<House>> {
        let houses = self.0.houses.read().expect("nobody panics while holding it");
        houses.values().cloned().collect()
    }

    /// What is counted. Engines are given it as their observer.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    /// What an operator has set.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The name of the cookie of sessions.
    pub fn cookie(&self) -> &str {
        &self.0.cookie
    }

    /// The time.
    pub fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    /// Chance.
    pub fn entropy(&self) -> Box<dyn Entropy> {
        (self.0.entropy)()
    }

    /// Whoever has this secret, and where. Those who have none that counts may
    /// not try for ever: then it is said after how long they may again.
    pub async fn identify(
        &self,
        secret: &str,
        from: IpAddr,
    ) -> Result<Option<(Arc<House>, Caller)>, Duration> {
        let digest = secret::digest(secret);
        let found = digest.and_then(|digest| self.look(&digest));
        match (&digest, &found) {
            // What another process changed is noticed soon.
            (_, Some((house, _))) => house.refresh(self.now_ms()).await,
            (Some(_), None) => {
                self.0.rates.stranger(from)?;
                // Another process may just have made it.
                for house in self.houses() {
                    house.refresh_now().await;
                }
            }
            (None, None) => self.0.rates.stranger(from)?,
        }
        Ok(digest.and_then(|digest| self.look(&digest)))
    }

    fn look(&self, digest: &Digest) -> Option<(Arc<House>, Caller)> {
        let now_ms = self.now_ms();
        self.houses().into_iter().find_map(|house| {
            let caller = house.identities().find(digest, now_ms)?;
            Some((house, caller))
        })
    }

    /// How often each client may ask.
    pub fn rates(&self) -> &Rates {
        &self.0.rates
    }

    /// What clients use at once.
    pub fn room(&self) -> &Room {
        &self.0.room
    }

    /// The connections that are open.
    pub fn connections(&self) -> &Arc<Connections> {
        &self.0.connections
    }

    /// Forgets clients that have not asked for long.
    pub fn tidy(&self) {
        self.0.rates.tidy();
        self.0.room.checks.tidy();
        self.0.room.long_checks.tidy();
    }

    /// Looks whether tokens changed that streams are read with, and writes refusals
    /// that were folded and whose interval is over.
    pub async fn look_after(&self) {
        let now_ms = self.now_ms();
        for house in self.houses() {
            house.refresh_watched(now_ms).await;
            house.write_repeated(now_ms.saturating_sub(self.settings().refusals_fold_ms)).await;
        }
    }

    /// Cancelled when the server stops: streams end, nothing new is taken.
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }
}
