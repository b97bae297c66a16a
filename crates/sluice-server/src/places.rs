//! Places: how much of something is in use at once, and how much each client may use.
//!
//! There is one account for requests that are worked on, one for streams, one for
//! calls of agents and one for the bytes of bodies that are being read. In each of them
//! a token or a gateway has at most a share, an organisation a larger one, and clients
//! without a token a small one that all of them divide among themselves.
//!
//! INVARIANT: no single token, gateway, organisation or address can use up what is there.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a token, an organisation and all strangers may have of everything, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// One token, or one gateway.
    pub token: usize,
    /// One organisation.
    pub organisation: usize,
    /// All clients without a token together; one address has half of it.
    pub strangers: usize,
}

/// A client, by what it is counted as: the widest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder([Key; 2]);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Organisation(Arc<str>),
    Token(Arc<str>, Arc<str>),
    Gateway(Arc<str>, Arc<str>),
    Strangers,
    Address(IpAddr),
}

impl Holder {
    /// A token of an organisation. Sessions are counted as the token that opened them.
    pub fn token(organisation: &str, token: &str) -> Holder {
        let organisation: Arc<str> = organisation.into();
        Holder([
            Key::Organisation(Arc::clone(&organisation)),
            Key::Token(organisation, token.into()),
        ])
    }

    /// A gateway of an organisation.
    pub fn gateway(organisation: &str, name: &str) -> Holder {
        let organisation: Arc<str> = organisation.into();
        let own = Key::Gateway(Arc::clone(&organisation), name.into());
        Holder([Key::Organisation(organisation), own])
    }

    /// A client that has shown no token.
    pub fn stranger(from: IpAddr) -> Holder {
        Holder([Key::Strangers, Key::Address(from)])
    }

    /// The organisation and the name that its connections are counted as; none of a
    /// stranger.
    pub fn owner(&self) -> Option<(&str, String)> {
        match &self.0[1] {
            Key::Token(organisation, token) => Some((organisation, token.to_string())),
            Key::Gateway(organisation, name) => Some((organisation, format!("gateway:{name}"))),
            Key::Organisation(_) | Key::Strangers | Key::Address(_) => None,
        }
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// Everything is in use.
    All,
    /// The client, or its organisation, uses its share.
    Share,
}

/// An account of places.
#[derive(Debug)]
pub struct Places {
    all: usize,
    organisation: usize,
    token: usize,
    strangers: usize,
    address: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    by: HashMap<Key, usize>,
}

impl Places {
    /// So many places, of which each client may have its share, and at least `least`.
    pub fn new(all: usize, shares: Shares, least: usize) -> Arc<Places> {
        let of = |percent: usize| {
            let share = (all as u128 * percent.min(100) as u128).div_ceil(100);
            usize::try_from(share).unwrap_or(usize::MAX).max(least.max(1))
        };
        Arc::new(Places {
            all,
            organisation: of(shares.organisation),
            token: of(shares.token),
            strangers: of(shares.strangers),
            address: of(shares.strangers.div_ceil(2)),
            used: Mutex::default(),
        })
    }

    /// Takes places for a client. They are given back when what is answered is dropped.
    pub fn take(self: &Arc<Places>, holder: &Holder, amount: usize) -> Result<Place, Full> {
        self.add(holder, amount)?;
        Ok(Place { places: Arc::clone(self), holder: holder.clone(), amount })
    }

    /// How many are in use.
    pub fn used(&self) -> usize {
        self.held().all
    }

    fn add(&self, holder: &Holder, amount: usize) -> Result<(), Full> {
        let mut used = self.held();
        if used.all.saturating_add(amount) > self.all {
            return Err(Full::All);
        }
        for key in &holder.0 {
            let there = used.by.get(key).copied().unwrap_or_default();
            if there.saturating_add(amount) > self.bound(key) {
                return Err(Full::Share);
            }
        }
        used.all += amount;
        for key in &holder.0 {
            match used.by.get_mut(key) {
                Some(there) => *there += amount,
                None => _ = used.by.insert(key.clone(), amount),
            }
        }
        Ok(())
    }

    fn bound(&self, key: &Key) -> usize {
        match key {
            Key::Organisation(_) => self.organisation,
            Key::Token(..) | Key::Gateway(..) => self.token,
            Key::Strangers => self.strangers,
            Key::Address(_) => self.address,
        }
    }

    fn give_back(&self, holder: &Holder, amount: usize) {
        let mut used = self.held();
        used.all -= amount;
        for key in &holder.0 {
            if let Some(there) = used.by.get_mut(key) {
                *there -= amount;
                if *there == 0 {
                    used.by.remove(key);
                }
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places that a client has.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    holder: Holder,
    amount: usize,
}

impl Place {
    /// Takes more of them.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        self.places.add(&self.holder, more)?;
        self.amount += more;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(&self.holder, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const SHARES: Shares = Shares { token: 25, organisation: 75, strangers: 12 };

    fn taken(places: &Arc<Places>, holder: &Holder) -> Vec<Place> {
        std::iter::from_fn(|| places.take(holder, 1).ok()).collect()
    }

    #[test]
    fn a_token_an_organisation_and_strangers_have_shares_and_give_them_back() {
        let places = Places::new(100, SHARES, 1);
        let one = taken(&places, &Holder::token("acme", "a"));
        let gateway = taken(&places, &Holder::gateway("acme", "a"));
        let two = taken(&places, &Holder::token("acme", "b"));
        assert_eq!((one.len(), gateway.len(), two.len()), (25, 25, 25));
        let refused = places.take(&Holder::token("acme", "c"), 1);
        assert_eq!(refused.err(), Some(Full::Share), "the organisation has its share");
        let strangers: Vec<Vec<Place>> = (1..=3)
            .map(|last| taken(&places, &Holder::stranger(Ipv4Addr::new(10, 0, 0, last).into())))
            .collect();
        let counts: Vec<usize> = strangers.iter().map(Vec::len).collect();
        assert_eq!(counts, [6, 6, 0]);
        let other = taken(&places, &Holder::token("other", "a"));
        assert_eq!(other.len(), 13, "what is left");
        assert_eq!(places.take(&Holder::token("other", "b"), 1).err(), Some(Full::All));
        drop((one, gateway, two, strangers, other));
        assert_eq!((places.used(), places.held().by.len()), (0, 0));
    }

    #[test]
    fn a_place_grows_within_its_share() {
        let places = Places::new(1000, SHARES, 1);
        let mut place = places.take(&Holder::token("acme", "a"), 0).unwrap();
        assert_eq!(place.grow(250), Ok(()));
        assert_eq!(place.grow(1), Err(Full::Share));
        drop(place);
        assert_eq!(places.used(), 0);
    }

    #[test]
    fn a_share_is_never_less_than_one_thing_needs() {
        let places = Places::new(2, SHARES, 1);
        assert_eq!(taken(&places, &Holder::token("acme", "a")).len(), 1);
        let places = Places::new(100, SHARES, 40);
        assert!(places.take(&Holder::stranger(Ipv4Addr::LOCALHOST.into()), 40).is_ok());
    }
}
