//! Amounts in registry rows: numbers of cents, with fractions, exact.

use super::Money;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// Writes an amount as a number of cents.
pub fn serialize<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = money.micro_cents() / super::MICRO_CENTS_PER_CENT;
    let below = money.micro_cents() % super::MICRO_CENTS_PER_CENT;
    if below == 0 {
        return whole.serialize(serializer);
    }
    let text = format!("{whole}.{below:06}");
    let number: f64 = text.parse().map_err(serde::ser::Error::custom)?;
    number.serialize(serializer)
}

/// Reads an amount from a number of cents.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
    let number = Number::deserialize(deserializer)?;
    Money::from_cents(&number).map_err(D::Error::custom)
}

/// The same for an optional amount.
pub mod option {
    use super::{Deserializer, Money, Number, Serializer};
    use serde::Deserialize as _;
    use serde::de::Error as _;

    /// Writes an amount or null.
    pub fn serialize<S: Serializer>(
        money: &Option<Money>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match money {
            Some(money) => super::serialize(money, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads an amount or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Money>, D::Error> {
        let number = Option::<Number>::deserialize(deserializer)?;
        number.map(|number| Money::from_cents(&number).map_err(D::Error::custom)).transpose()
    }
}
