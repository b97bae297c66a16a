//! Limits the connections of a server and selects which one is closed to make room.
//!
//! A connection is anonymous until a request on it has sent a valid token. When the limit is
//! reached, the server closes a connection that has no request in flight: the oldest one of the
//! address with the most anonymous connections, otherwise the oldest one of the token with the
//! most connections. An address with its share of anonymous connections loses its oldest idle
//! one for each new one, also below the limit. A request is in flight from when its body was read until its response was
//! sent, so a partial head, a slow body and an idle keep-alive connection never protect a
//! connection.
//!
//! INVARIANT: idle connections never keep a new one out, and a tenth of the places is never
//! held by signed-in connections.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Poll interval while no connection can be closed.
const LOOK_MS: u64 = 20;
/// Time after a response during which its connection is not closed: the bytes may still be in
/// transit.
const SENT_MS: u64 = 10;
/// One place in this many is reserved for connections that are not signed in.
const RESERVE: usize = 10;

/// Limits of concurrent connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// For all clients together.
    pub all: usize,
    /// For all tokens of one organisation together.
    pub organisation: usize,
    /// For one token, of connections that are signed in with it.
    pub token: usize,
    /// For one address, of connections that are not signed in and have no request in flight.
    pub address: usize,
    /// Time that a new connection has to send its request before it may be closed.
    pub grace: Duration,
}

/// The token that a connection has sent, and its organisation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TokenOwner {
    organisation: String,
    token: String,
}

/// One connection of the server.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    from: IpAddr,
    owner: OnceLock<TokenOwner>,
    /// Requests in flight.
    in_flight: AtomicUsize,
    /// When the last request ended, in milliseconds since `epoch`.
    used_at_ms: AtomicU64,
    admitted_at: Instant,
    epoch: Instant,
    closed: CancellationToken,
}

impl Connection {
    /// Address of the client.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// Whether a request on it has sent a valid token.
    pub fn is_signed_in(&self) -> bool {
        self.owner.get().is_some()
    }

    /// Completes when the connection must close to make room.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Time since the last request ended; `None` while one is in flight.
    pub fn idle(&self) -> Option<Duration> {
        if self.is_busy() {
            return None;
        }
        let used_at = Duration::from_millis(self.used_at_ms.load(Ordering::Acquire));
        Some(self.epoch.elapsed().saturating_sub(used_at))
    }

    /// Marks a request as in flight until the returned guard is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Connection>) -> RequestInFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        RequestInFlight(Arc::clone(self))
    }

    fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) > 0
    }

    fn touch(&self) {
        let now_ms = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_at_ms.store(now_ms, Ordering::Release);
    }
}

/// Guard of a request in flight.
#[derive(Debug)]
pub struct RequestInFlight(Arc<Connection>);

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.touch();
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

type ByAge = BTreeMap<u64, Arc<Connection>>;

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    anonymous: HashMap<IpAddr, ByAge>,
    anonymous_count: usize,
    signed: HashMap<TokenOwner, ByAge>,
    signed_count: usize,
    organisations: HashMap<String, usize>,
}

/// All connections of a server.
#[derive(Debug)]
pub struct Connections {
    limits: ConnectionLimits,
    epoch: Instant,
    open: Mutex<OpenConnections>,
    ended: Notify,
    displaced: AtomicU64,
}

impl Connections {
    /// Starts without connections.
    pub fn new(limits: ConnectionLimits) -> Connections {
        Connections {
            limits,
            epoch: Instant::now(),
            open: Mutex::default(),
            ended: Notify::new(),
            displaced: AtomicU64::new(0),
        }
    }

    /// Admits a new connection, and closes another one if the limit is reached. Waits only
    /// while every connection is new or has a request in flight.
    pub async fn admit(self: &Arc<Connections>, from: IpAddr) -> Admitted {
        loop {
            if let Some(admitted) = self.try_admit(from) {
                return admitted;
            }
            let look = Duration::from_millis(LOOK_MS);
            // The end of a request is not signalled; polling finds it.
            let _ = tokio::time::timeout(look, self.ended.notified()).await;
        }
    }

    fn try_admit(self: &Arc<Connections>, from: IpAddr) -> Option<Admitted> {
        let mut open = self.lock_open();
        self.displace_of_address(&mut open, from);
        if open.count() >= self.limits.all && !self.displace(&mut open, self.limits.grace) {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            id,
            from,
            owner: OnceLock::new(),
            in_flight: AtomicUsize::new(0),
            used_at_ms: AtomicU64::new(0),
            admitted_at: Instant::now(),
            epoch: self.epoch,
            closed: CancellationToken::new(),
        });
        connection.touch();
        open.anonymous.entry(from).or_default().insert(id, Arc::clone(&connection));
        open.anonymous_count += 1;
        Some(Admitted { connections: Arc::clone(self), connection })
    }

    /// Closes an idle connection to free its file handle. Returns whether there was one.
    pub fn make_room(&self) -> bool {
        let mut open = self.lock_open();
        self.displace(&mut open, Duration::ZERO)
    }

    /// Records that a request on the connection has sent a valid token. Returns false when
    /// the token or its organisation is at its limit and all of its connections have a
    /// request in flight.
    #[must_use]
    pub fn sign_in(&self, connection: &Connection, organisation: &str, token: &str) -> bool {
        if connection.is_signed_in() {
            return true;
        }
        let mut open = self.lock_open();
        let owner = TokenOwner { organisation: organisation.to_owned(), token: token.to_owned() };
        let all = self.limits.all - self.limits.all / RESERVE;
        if open.of_token(&owner) >= self.limits.token && !self.displace_of(&mut open, &owner) {
            return false;
        }
        let of_organisation = open.organisations.get(organisation).copied().unwrap_or_default();
        let full = of_organisation >= self.limits.organisation;
        if full && !self.displace_signed(&mut open, Some(organisation)) {
            return false;
        }
        if open.signed_count >= all.max(1) && !self.displace_signed(&mut open, None) {
            return false;
        }
        let Some(moved) = open.remove_anonymous(connection) else {
            // It was closed in the meantime, or signed in by a concurrent request.
            return true;
        };
        *open.organisations.entry(owner.organisation.clone()).or_default() += 1;
        open.signed.entry(owner.clone()).or_default().insert(connection.id, moved);
        open.signed_count += 1;
        let _ = connection.owner.set(owner);
        true
    }

    /// Number of open connections: anonymous, and signed in.
    pub fn count(&self) -> (usize, usize) {
        let open = self.lock_open();
        (open.anonymous_count, open.signed_count)
    }

    /// Number of connections that were closed to make room.
    pub fn displaced(&self) -> u64 {
        self.displaced.load(Ordering::Relaxed)
    }

    fn displace(&self, open: &mut OpenConnections, grace: Duration) -> bool {
        let mut addresses: Vec<(usize, IpAddr)> =
            open.anonymous.iter().map(|(from, all)| (all.len(), *from)).collect();
        addresses.sort_unstable_by(|one, other| other.cmp(one));
        for (_, from) in addresses {
            if let Some(victim) = oldest_idle(&open.anonymous[&from], grace) {
                self.close(open, &victim);
                return true;
            }
        }
        // An anonymous connection that is too new to be closed will soon be old enough:
        // do not close a signed-in one for it.
        let new = |all: &ByAge| all.values().any(|one| !one.is_busy());
        !open.anonymous.values().any(new) && self.displace_signed(open, None)
    }

    /// Closes an idle connection of the token with the most connections, of the given
    /// organisation or of any.
    fn displace_signed(&self, open: &mut OpenConnections, organisation: Option<&str>) -> bool {
        let fits = |owner: &TokenOwner| organisation.is_none_or(|one| owner.organisation == one);
        let mut owners: Vec<(usize, &TokenOwner)> = open
            .signed
            .iter()
            .filter(|(owner, _)| fits(owner))
            .map(|(owner, all)| (all.len(), owner))
            .collect();
        owners.sort_unstable_by_key(|(count, _)| std::cmp::Reverse(*count));
        let of = |owner: &TokenOwner| oldest_idle(&open.signed[owner], Duration::ZERO);
        let victim = owners.into_iter().find_map(|(_, owner)| of(owner));
        let Some(victim) = victim else { return false };
        self.close(open, &victim);
        true
    }

    /// Closes the oldest idle connection of an address that has its share of anonymous ones. If
    /// all are new or have a request in flight, only the limit of all connections applies.
    fn displace_of_address(&self, open: &mut OpenConnections, from: IpAddr) {
        let all = open.anonymous.get(&from).filter(|all| all.len() >= self.limits.address);
        if let Some(victim) = all.and_then(|all| oldest_idle(all, self.limits.grace)) {
            self.close(open, &victim);
        }
    }

    fn displace_of(&self, open: &mut OpenConnections, owner: &TokenOwner) -> bool {
        let all = open.signed.get(owner);
        let victim = all.and_then(|all| oldest_idle(all, Duration::ZERO));
        let Some(victim) = victim else { return false };
        self.close(open, &victim);
        true
    }

    fn close(&self, open: &mut OpenConnections, victim: &Connection) {
        open.remove(victim);
        victim.closed.cancel();
        self.displaced.fetch_add(1, Ordering::Relaxed);
    }

    fn lock_open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn oldest_idle(all: &ByAge, grace: Duration) -> Option<Arc<Connection>> {
    let old = all.values().take_while(|one| one.admitted_at.elapsed() >= grace);
    let sent = Duration::from_millis(SENT_MS).min(grace);
    let mut idle = old.filter(|one| one.idle().is_some_and(|idle| idle >= sent));
    idle.next().cloned()
}

impl OpenConnections {
    fn count(&self) -> usize {
        self.anonymous_count + self.signed_count
    }

    fn of_token(&self, owner: &TokenOwner) -> usize {
        self.signed.get(owner).map_or(0, ByAge::len)
    }

    fn remove_anonymous(&mut self, connection: &Connection) -> Option<Arc<Connection>> {
        let all = self.anonymous.get_mut(&connection.from)?;
        let left = all.remove(&connection.id)?;
        if all.is_empty() {
            self.anonymous.remove(&connection.from);
        }
        self.anonymous_count -= 1;
        Some(left)
    }

    fn remove(&mut self, connection: &Connection) {
        if self.remove_anonymous(connection).is_some() {
            return;
        }
        let Some(owner) = connection.owner.get() else { return };
        let Some(all) = self.signed.get_mut(owner) else { return };
        if all.remove(&connection.id).is_none() {
            return;
        }
        if all.is_empty() {
            self.signed.remove(owner);
        }
        self.signed_count -= 1;
        if let Some(count) = self.organisations.get_mut(&owner.organisation) {
            *count -= 1;
            if *count == 0 {
                self.organisations.remove(&owner.organisation);
            }
        }
    }
}

/// An admitted connection. Dropping it frees its place.
#[derive(Debug)]
pub struct Admitted {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Admitted {
    /// The admitted connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.lock_open().remove(&self.connection);
        self.connections.ended.notify_one();
    }
}

/// Whether a system call failed because the process ran out of file handles or processes, so
/// that a retry may succeed.
pub fn is_exhausted(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN))
}

#[cfg(test)]
mod tests;
