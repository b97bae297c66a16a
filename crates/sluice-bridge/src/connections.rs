//! Limits the connections of a server and selects which one is closed to make room.
//!
//! A connection is anonymous until a request on it has sent a valid token. When the limit is
//! reached, the server closes a connection that has no request in flight: the oldest one of the
//! address with the most anonymous connections, otherwise the oldest one of the token with the
//! most connections. A request is in flight from when its body was read until its response was
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
pub struct Bounds {
    /// For all clients together.
    pub all: usize,
    /// For one organisation.
    pub organisation: usize,
    /// For one token.
    pub token: usize,
    /// Time that a new connection has to send its request before it may be closed.
    pub grace: Duration,
}

/// The token that a connection has sent, and its organisation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner {
    organisation: String,
    token: String,
}

/// One connection of the server.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    from: IpAddr,
    owner: OnceLock<Owner>,
    /// Requests in flight.
    under_way: AtomicUsize,
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
    pub fn begin(self: &Arc<Connection>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(self))
    }

    fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    fn touch(&self) {
        let now_ms = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_at_ms.store(now_ms, Ordering::Release);
    }
}

/// Guard of a request in flight.
#[derive(Debug)]
pub struct UnderWay(Arc<Connection>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.touch();
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

type ByAge = BTreeMap<u64, Arc<Connection>>;

#[derive(Debug, Default)]
struct Open {
    next: u64,
    strangers: HashMap<IpAddr, ByAge>,
    strangers_count: usize,
    signed: HashMap<Owner, ByAge>,
    signed_count: usize,
    organisations: HashMap<String, usize>,
}

/// All connections of a server.
#[derive(Debug)]
pub struct Connections {
    bounds: Bounds,
    epoch: Instant,
    open: Mutex<Open>,
    ended: Notify,
    displaced: AtomicU64,
}

impl Connections {
    /// Starts without connections.
    pub fn new(bounds: Bounds) -> Connections {
        Connections {
            bounds,
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
        let mut open = self.held();
        if open.count() >= self.bounds.all && !self.displace(&mut open, self.bounds.grace) {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            id,
            from,
            owner: OnceLock::new(),
            under_way: AtomicUsize::new(0),
            used_at_ms: AtomicU64::new(0),
            admitted_at: Instant::now(),
            epoch: self.epoch,
            closed: CancellationToken::new(),
        });
        connection.touch();
        open.strangers.entry(from).or_default().insert(id, Arc::clone(&connection));
        open.strangers_count += 1;
        Some(Admitted { connections: Arc::clone(self), connection })
    }

    /// Closes an idle connection to free its file handle. Returns whether there was one.
    pub fn make_room(&self) -> bool {
        let mut open = self.held();
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
        let mut open = self.held();
        let owner = Owner { organisation: organisation.to_owned(), token: token.to_owned() };
        let all = self.bounds.all - self.bounds.all / RESERVE;
        if open.of_token(&owner) >= self.bounds.token && !self.displace_of(&mut open, &owner) {
            return false;
        }
        let of_organisation = open.organisations.get(organisation).copied().unwrap_or_default();
        let full = of_organisation >= self.bounds.organisation;
        if full && !self.displace_signed(&mut open, Some(organisation)) {
            return false;
        }
        if open.signed_count >= all.max(1) && !self.displace_signed(&mut open, None) {
            return false;
        }
        let Some(moved) = open.leave_strangers(connection) else {
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
        let open = self.held();
        (open.strangers_count, open.signed_count)
    }

    /// Number of connections that were closed to make room.
    pub fn displaced(&self) -> u64 {
        self.displaced.load(Ordering::Relaxed)
    }

    fn displace(&self, open: &mut Open, grace: Duration) -> bool {
        let mut addresses: Vec<(usize, IpAddr)> =
            open.strangers.iter().map(|(from, all)| (all.len(), *from)).collect();
        addresses.sort_unstable_by(|one, other| other.cmp(one));
        for (_, from) in addresses {
            if let Some(victim) = oldest_idle(&open.strangers[&from], grace) {
                self.close(open, &victim);
                return true;
            }
        }
        // An anonymous connection that is too new to be closed will soon be old enough:
        // do not close a signed-in one for it.
        let new = |all: &ByAge| all.values().any(|one| !one.is_busy());
        !open.strangers.values().any(new) && self.displace_signed(open, None)
    }

    /// Closes an idle connection of the token with the most connections, of the given
    /// organisation or of any.
    fn displace_signed(&self, open: &mut Open, organisation: Option<&str>) -> bool {
        let fits = |owner: &Owner| organisation.is_none_or(|one| owner.organisation == one);
        let mut owners: Vec<(usize, &Owner)> = open
            .signed
            .iter()
            .filter(|(owner, _)| fits(owner))
            .map(|(owner, all)| (all.len(), owner))
            .collect();
        owners.sort_unstable_by_key(|(count, _)| std::cmp::Reverse(*count));
        let of = |owner: &Owner| oldest_idle(&open.signed[owner], Duration::ZERO);
        let victim = owners.into_iter().find_map(|(_, owner)| of(owner));
        let Some(victim) = victim else { return false };
        self.close(open, &victim);
        true
    }

    fn displace_of(&self, open: &mut Open, owner: &Owner) -> bool {
        let all = open.signed.get(owner);
        let victim = all.and_then(|all| oldest_idle(all, Duration::ZERO));
        let Some(victim) = victim else { return false };
        self.close(open, &victim);
        true
    }

    fn close(&self, open: &mut Open, victim: &Connection) {
        open.leave(victim);
        victim.closed.cancel();
        self.displaced.fetch_add(1, Ordering::Relaxed);
    }

    fn held(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn oldest_idle(all: &ByAge, grace: Duration) -> Option<Arc<Connection>> {
    let old = all.values().take_while(|one| one.admitted_at.elapsed() >= grace);
    let sent = Duration::from_millis(SENT_MS).min(grace);
    let mut idle = old.filter(|one| one.idle().is_some_and(|idle| idle >= sent));
    idle.next().cloned()
}

impl Open {
    fn count(&self) -> usize {
        self.strangers_count + self.signed_count
    }

    fn of_token(&self, owner: &Owner) -> usize {
        self.signed.get(owner).map_or(0, ByAge::len)
    }

    fn leave_strangers(&mut self, connection: &Connection) -> Option<Arc<Connection>> {
        let all = self.strangers.get_mut(&connection.from)?;
        let left = all.remove(&connection.id)?;
        if all.is_empty() {
            self.strangers.remove(&connection.from);
        }
        self.strangers_count -= 1;
        Some(left)
    }

    fn leave(&mut self, connection: &Connection) {
        if self.leave_strangers(connection).is_some() {
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
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.held().leave(&self.connection);
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
