//! Capacity: how much of a resource is in use, and how much each client may use.
//!
//! There is one pool for requests in progress, one for event streams, one for MCP calls
//! and one for the bytes of request bodies. In each pool a token or a gateway has at most
//! a share, an organisation a larger one, and all clients without a token together a small
//! one.
//!
//! INVARIANT: no single token, gateway, organisation or address can use up a pool.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shares of each pool, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// One token, or one gateway.
    pub token: usize,
    /// One organisation, with all its tokens and gateways.
    pub organisation: usize,
    /// All clients without a token together; one address has half of it.
    pub strangers: usize,
}

/// A client, by the two counters that its use is charged to, the wider one first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder([CapacityKey; 2]);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CapacityKey {
    Organisation(Arc<str>),
    Token(Arc<str>, Arc<str>),
    Gateway(Arc<str>, Arc<str>),
    Strangers,
    Address(IpAddr),
}

impl Holder {
    /// A token of an organisation. Sessions are charged to the token that opened them.
    pub fn token(organisation: &str, token: &str) -> Holder {
        let organisation: Arc<str> = organisation.into();
        Holder([
            CapacityKey::Organisation(Arc::clone(&organisation)),
            CapacityKey::Token(organisation, token.into()),
        ])
    }

    /// A gateway of an organisation.
    pub fn gateway(organisation: &str, name: &str) -> Holder {
        let organisation: Arc<str> = organisation.into();
        let own = CapacityKey::Gateway(Arc::clone(&organisation), name.into());
        Holder([CapacityKey::Organisation(organisation), own])
    }

    /// A client without a token, by its address.
    pub fn stranger(from: IpAddr) -> Holder {
        Holder([CapacityKey::Strangers, CapacityKey::Address(from)])
    }

    /// The organisation and name that its connections are charged to; `None` for a client
    /// without a token.
    pub fn owner(&self) -> Option<(&str, String)> {
        match &self.0[1] {
            CapacityKey::Token(organisation, token) => Some((organisation, token.to_string())),
            CapacityKey::Gateway(organisation, name) => {
                Some((organisation, format!("gateway:{name}")))
            }
            CapacityKey::Organisation(_) | CapacityKey::Strangers | CapacityKey::Address(_) => None,
        }
    }
}

/// Why a pool refuses a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolFull {
    /// The whole pool is in use.
    All,
    /// The client, or its organisation, uses its whole share.
    Share,
}

/// A bounded resource that clients share.
#[derive(Debug)]
pub struct CapacityPool {
    all: usize,
    organisation: usize,
    token: usize,
    strangers: usize,
    address: usize,
    used: Mutex<PoolUsage>,
}

#[derive(Debug, Default)]
struct PoolUsage {
    all: usize,
    by: HashMap<CapacityKey, usize>,
}

impl CapacityPool {
    /// A pool of size `all`, of which each client may use its share, and at least `least`.
    pub fn new(all: usize, shares: Shares, least: usize) -> Arc<CapacityPool> {
        let of = |percent: usize| {
            let share = (all as u128 * percent.min(100) as u128).div_ceil(100);
            usize::try_from(share).unwrap_or(usize::MAX).max(least.max(1))
        };
        Arc::new(CapacityPool {
            all,
            organisation: of(shares.organisation),
            token: of(shares.token),
            strangers: of(shares.strangers),
            address: of(shares.strangers.div_ceil(2)),
            used: Mutex::default(),
        })
    }

    /// Takes capacity for a client. It is returned to the pool when the guard is dropped.
    pub fn take(
        self: &Arc<CapacityPool>,
        holder: &Holder,
        amount: usize,
    ) -> Result<CapacityGuard, PoolFull> {
        self.add(holder, amount)?;
        Ok(CapacityGuard { pool: Arc::clone(self), holder: holder.clone(), amount })
    }

    /// How much is in use.
    pub fn used(&self) -> usize {
        self.lock().all
    }

    fn add(&self, holder: &Holder, amount: usize) -> Result<(), PoolFull> {
        let mut used = self.lock();
        if used.all.saturating_add(amount) > self.all {
            return Err(PoolFull::All);
        }
        for key in &holder.0 {
            let in_use = used.by.get(key).copied().unwrap_or_default();
            if in_use.saturating_add(amount) > self.bound(key) {
                return Err(PoolFull::Share);
            }
        }
        used.all += amount;
        for key in &holder.0 {
            match used.by.get_mut(key) {
                Some(in_use) => *in_use += amount,
                None => _ = used.by.insert(key.clone(), amount),
            }
        }
        Ok(())
    }

    fn bound(&self, key: &CapacityKey) -> usize {
        match key {
            CapacityKey::Organisation(_) => self.organisation,
            CapacityKey::Token(..) | CapacityKey::Gateway(..) => self.token,
            CapacityKey::Strangers => self.strangers,
            CapacityKey::Address(_) => self.address,
        }
    }

    fn release(&self, holder: &Holder, amount: usize) {
        let mut used = self.lock();
        used.all -= amount;
        for key in &holder.0 {
            if let Some(in_use) = used.by.get_mut(key) {
                *in_use -= amount;
                if *in_use == 0 {
                    used.by.remove(key);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolUsage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Capacity that a client uses.
#[derive(Debug)]
pub struct CapacityGuard {
    pool: Arc<CapacityPool>,
    holder: Holder,
    amount: usize,
}

impl CapacityGuard {
    /// Takes more capacity for the same client.
    pub fn grow(&mut self, more: usize) -> Result<(), PoolFull> {
        self.pool.add(&self.holder, more)?;
        self.amount += more;
        Ok(())
    }
}

impl Drop for CapacityGuard {
    fn drop(&mut self) {
        self.pool.release(&self.holder, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const SHARES: Shares = Shares { token: 25, organisation: 75, strangers: 12 };

    fn take_all(pool: &Arc<CapacityPool>, holder: &Holder) -> Vec<CapacityGuard> {
        std::iter::from_fn(|| pool.take(holder, 1).ok()).collect()
    }

    #[test]
    fn a_token_an_organisation_and_strangers_have_shares_and_release_them() {
        let pool = CapacityPool::new(100, SHARES, 1);
        let one = take_all(&pool, &Holder::token("acme", "a"));
        let gateway = take_all(&pool, &Holder::gateway("acme", "a"));
        let two = take_all(&pool, &Holder::token("acme", "b"));
        assert_eq!((one.len(), gateway.len(), two.len()), (25, 25, 25));
        let refused = pool.take(&Holder::token("acme", "c"), 1);
        assert_eq!(refused.err(), Some(PoolFull::Share), "the organisation has its share");
        let strangers: Vec<Vec<CapacityGuard>> = (1..=3)
            .map(|last| take_all(&pool, &Holder::stranger(Ipv4Addr::new(10, 0, 0, last).into())))
            .collect();
        let counts: Vec<usize> = strangers.iter().map(Vec::len).collect();
        assert_eq!(counts, [6, 6, 0]);
        let other = take_all(&pool, &Holder::token("other", "a"));
        assert_eq!(other.len(), 13, "what is left");
        assert_eq!(pool.take(&Holder::token("other", "b"), 1).err(), Some(PoolFull::All));
        drop((one, gateway, two, strangers, other));
        assert_eq!((pool.used(), pool.lock().by.len()), (0, 0));
    }

    #[test]
    fn a_guard_grows_within_its_share() {
        let pool = CapacityPool::new(1000, SHARES, 1);
        let mut place = pool.take(&Holder::token("acme", "a"), 0).unwrap();
        assert_eq!(place.grow(250), Ok(()));
        assert_eq!(place.grow(1), Err(PoolFull::Share));
        drop(place);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn a_share_is_never_less_than_one_thing_needs() {
        let pool = CapacityPool::new(2, SHARES, 1);
        assert_eq!(take_all(&pool, &Holder::token("acme", "a")).len(), 1);
        let pool = CapacityPool::new(100, SHARES, 40);
        assert!(pool.take(&Holder::stranger(Ipv4Addr::LOCALHOST.into()), 40).is_ok());
    }
}
