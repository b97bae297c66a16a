//! Rate limits of clients.

use crate::app::Settings;
use crate::limits::USED_UP_MAX;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The rate of an organisation, as a multiple of the rate of one token.
const TOKENS_OF_AN_ORGANISATION: u32 = 8;

/// Rate limiters by client. A refusal says after how long the client may try again.
pub struct Rates {
    tokens: DefaultKeyedRateLimiter<String>,
    organisations: DefaultKeyedRateLimiter<String>,
    gateways: DefaultKeyedRateLimiter<(String, String)>,
    instances: DefaultKeyedRateLimiter<(String, String)>,
    sessions: DefaultKeyedRateLimiter<String>,
    strangers: DefaultKeyedRateLimiter<IpAddr>,
    /// Addresses that have used up their failed sign-ins, and until when.
    used_up: Mutex<BTreeMap<IpAddr, Instant>>,
}

fn per_second(rate: u32, burst: u32) -> Quota {
    Quota::per_second(at_least_one(rate)).allow_burst(at_least_one(burst))
}

fn per_minute(rate: u32) -> Quota {
    Quota::per_minute(at_least_one(rate))
}

fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}

impl Rates {
    /// Limiters with the rates of the settings.
    pub fn new(settings: &Settings) -> Rates {
        let (rate, burst) = (settings.rate_per_second, settings.rate_burst);
        let times = |rate: u32| rate.saturating_mul(TOKENS_OF_AN_ORGANISATION);
        let gateways = settings.gateway_rate_per_second;
        Rates {
            tokens: RateLimiter::keyed(per_second(rate, burst)),
            organisations: RateLimiter::keyed(per_second(times(rate), times(burst))),
            gateways: RateLimiter::keyed(per_second(gateways, gateways.saturating_mul(2))),
            instances: RateLimiter::keyed(per_minute(settings.instances_per_minute)),
            sessions: RateLimiter::keyed(per_minute(settings.sessions_per_minute)),
            strangers: RateLimiter::keyed(per_minute(settings.strangers_per_minute)),
            used_up: Mutex::default(),
        }
    }

    /// Counts a request of a token. A request that exceeds the token's own rate is not charged
    /// to its organisation.
    pub fn token(&self, organisation: &str, token: &str) -> Result<(), Duration> {
        admitted(&self.tokens, &token.to_owned())?;
        admitted(&self.organisations, &organisation.to_owned())
    }

    /// Counts a request of a gateway.
    pub fn gateway(&self, organisation: &str, name: &str) -> Result<(), Duration> {
        admitted(&self.gateways, &(organisation.to_owned(), name.to_owned()))
    }

    /// Counts a new process behind a gateway.
    pub fn instance(&self, organisation: &str, gateway: &str) -> Result<(), Duration> {
        admitted(&self.instances, &(organisation.to_owned(), gateway.to_owned()))
    }

    /// Counts a session that a token opens.
    pub fn session(&self, token: &str) -> Result<(), Duration> {
        admitted(&self.sessions, &token.to_owned())
    }

    /// Counts an invalid secret or signature from an address.
    pub fn stranger(&self, from: IpAddr) -> Result<(), Duration> {
        let admitted = admitted(&self.strangers, &from);
        if let Err(after) = admitted {
            let mut used_up = self.used_up();
            if used_up.len() < USED_UP_MAX {
                used_up.insert(from, Instant::now() + after);
            }
        }
        admitted
    }

    /// Whether an address may still fail to sign in, else after how long. Counts nothing.
    pub(crate) fn has_tries(&self, from: IpAddr) -> Result<(), Duration> {
        match self.used_up().get(&from).map(|until| until.duration_since(Instant::now())) {
            Some(after) if !after.is_zero() => Err(after),
            _ => Ok(()),
        }
    }

    fn used_up(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Instant>> {
        self.used_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the counters of clients that have sent nothing for long.
    pub fn tidy(&self) {
        self.tokens.retain_recent();
        self.organisations.retain_recent();
        self.gateways.retain_recent();
        self.instances.retain_recent();
        self.sessions.retain_recent();
        self.strangers.retain_recent();
        let now = Instant::now();
        self.used_up().retain(|_, until| *until > now);
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
