//! The server as a whole: its organisations, its settings, what it counts.

use crate::api::cookie;
use crate::auth::Caller;
use crate::auth::secret::{self, Digest};
use crate::house::House;
use crate::limits;
use crate::metrics::Metrics;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use sluice_core::port::{Clock, Entropy};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
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
    /// Most connections at once.
    pub connections: usize,
    /// Most requests that are worked on at once.
    pub in_flight: usize,
    /// Most live streams at once.
    pub streams: usize,
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
    /// How long a client may take to send the head of a request.
    pub head_ms: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            body_bytes: limits::BODY_BYTES,
            request_ms: limits::REQUEST_MS,
            rate_per_second: limits::RATE_PER_SECOND,
            rate_burst: limits::RATE_BURST,
            strangers_per_minute: limits::STRANGERS_PER_MINUTE,
            connections: limits::CONNECTIONS,
            in_flight: limits::IN_FLIGHT,
            streams: limits::STREAMS,
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            public_url: String::new(),
            secure_cookies: false,
            drain_ms: limits::DRAIN_MS,
            slow_reader_ms: limits::SLOW_READER_MS,
            heartbeat_ms: limits::HEARTBEAT_MS,
            head_ms: limits::HEAD_MS,
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
    by_token: DefaultKeyedRateLimiter<String>,
    strangers: DefaultKeyedRateLimiter<IpAddr>,
    in_flight: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    stop: CancellationToken,
}

impl App {
    /// A server without organisations yet.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>, entropy: EntropySource) -> App {
        let rate = |per: u32| NonZeroU32::new(per.max(1)).expect("at least one");
        let quota = Quota::per_second(rate(settings.rate_per_second))
            .allow_burst(rate(settings.rate_burst));
        let strangers = Quota::per_minute(rate(settings.strangers_per_minute));
        App(Arc::new(Inner {
            by_token: RateLimiter::keyed(quota),
            strangers: RateLimiter::keyed(strangers),
            in_flight: Arc::new(Semaphore::new(settings.in_flight)),
            streams: Arc::new(Semaphore::new(settings.streams)),
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
                admitted(&self.0.strangers, &from)?;
                // Another process may just have made it.
                for house in self.houses() {
                    house.refresh_now().await;
                }
            }
            (None, None) => admitted(&self.0.strangers, &from)?,
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

    /// Whether one more request of a token fits its rate, else after how long.
    pub fn admit(&self, token: &str) -> Result<(), Duration> {
        admitted(&self.0.by_token, &token.to_owned())
    }

    /// Whether an address may try one more secret that is none, else after how long.
    pub fn admit_stranger(&self, from: IpAddr) -> Result<(), Duration> {
        admitted(&self.0.strangers, &from)
    }

    /// Forgets those who have not asked for long.
    pub fn tidy(&self) {
        self.0.by_token.retain_recent();
        self.0.strangers.retain_recent();
    }

    /// Room for requests.
    pub fn in_flight(&self) -> &Arc<Semaphore> {
        &self.0.in_flight
    }

    /// Room for live streams.
    pub fn streams(&self) -> &Arc<Semaphore> {
        &self.0.streams
    }

    /// Cancelled when the server stops: streams end, nothing new is taken.
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }
}

fn admitted<K: Clone + std::hash::Hash + Eq>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: &K,
) -> Result<(), Duration> {
    use governor::clock::Clock as _;
    limiter
        .check_key(key)
        .map_err(|until| until.wait_time_from(governor::clock::DefaultClock::default().now()))
}
