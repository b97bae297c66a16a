//! Reservation and settlement: how a dispatch changes an account.
//!
//! INVARIANT: held is spent plus reserved, so after every change held <= cap + over, if
//! nothing was reserved beyond the cap.

use crate::money::Money;

/// What a settlement adds to the counters of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// Change of the amount spent and reserved.
    pub held_delta: i64,
    /// Change of the amount spent.
    pub spent_delta: i64,
    /// Change of the overruns; a positive total closes the cap.
    pub over_delta: i64,
}

/// An amount that no counter can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is more than an account can count")]
pub struct BadFigure(pub Money);

/// Replaces a reservation by the actual cost. Work that never started settles at zero;
/// if the cost is unknown, it settles at the reserved amount.
pub fn settle(reserved: Money, actual: Money) -> Result<Settlement, BadFigure> {
    let (reserved, actual) = (counted(reserved)?, counted(actual)?);
    // Neither is negative, so the difference fits.
    let held_delta = actual - reserved;
    Ok(Settlement { held_delta, spent_delta: actual, over_delta: held_delta.max(0) })
}

fn counted(money: Money) -> Result<i64, BadFigure> {
    i64::try_from(money.micro_cents()).map_err(|_| BadFigure(money))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Cap, CapGate, Worst};
    use proptest::prelude::*;

    fn money(micro_cents: u64) -> Money {
        Money::from_micro_cents(micro_cents)
    }

    #[test]
    fn the_actual_cost_takes_the_place_of_the_reservation() {
        let settled = |reserved, actual| settle(money(reserved), money(actual)).unwrap();
        assert_eq!(settled(10, 4), Settlement { held_delta: -6, spent_delta: 4, over_delta: 0 });
        assert_eq!(settled(10, 15), Settlement { held_delta: 5, spent_delta: 15, over_delta: 5 });
        assert_eq!(settled(10, 0), Settlement { held_delta: -10, spent_delta: 0, over_delta: 0 });
    }

    #[test]
    fn figures_past_what_counters_hold_are_refused() {
        let max = money(u64::try_from(i64::MAX).unwrap());
        let more = money(u64::try_from(i64::MAX).unwrap() + 1);
        assert!(settle(max, Money::ZERO).is_ok());
        assert!(settle(Money::ZERO, max).is_ok());
        assert_eq!(settle(more, Money::ZERO), Err(BadFigure(more)));
        assert_eq!(settle(Money::ZERO, more), Err(BadFigure(more)));
    }

    /// An account with a cap and what is in flight.
    #[derive(Default)]
    struct Account {
        held: i64,
        spent: i64,
        over: i64,
        reserved: Vec<Money>,
    }

    impl Account {
        fn cap(&self, amount: u64) -> Cap<'static> {
            let counted = |counter: i64| money(u64::try_from(counter).unwrap());
            Cap {
                whose: CapGate::Budget,
                name: "cap".into(),
                account: "envelope/cap/total".into(),
                amount: money(amount),
                held: counted(self.held),
                over: counted(self.over),
                accepted: Money::ZERO,
            }
        }
    }

    proptest! {
        /// Each step reserves its worst case if the cap lets it, or settles what
        /// is longest in flight at some actual cost.
        #[test]
        fn no_order_of_reserving_and_settling_passes_a_cap(
            amount in 0..1000_u64,
            script in prop::collection::vec((any::<bool>(), 0..400_u64), 0..60),
        ) {
            let mut account = Account::default();
            for (starts, figure) in script {
                if starts {
                    let worst = money(figure);
                    if account.cap(amount).stops(Worst::Known(worst)).is_none() {
                        account.held += counted(worst).unwrap();
                        account.reserved.push(worst);
                    }
                } else if !account.reserved.is_empty() {
                    let settled = settle(account.reserved.remove(0), money(figure)).unwrap();
                    account.held += settled.held_delta;
                    account.spent += settled.spent_delta;
                    account.over += settled.over_delta;
                }
                let reserved: u64 = account.reserved.iter().map(|one| one.micro_cents()).sum();
                prop_assert_eq!(account.held, account.spent + i64::try_from(reserved).unwrap());
                prop_assert!(account.held <= i64::try_from(amount).unwrap() + account.over);
            }
        }
    }
}
