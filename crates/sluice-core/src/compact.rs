//! Serde forms for formats that write a struct by position, as MessagePack in snapshots does:
//! types whose own form leaves fields out cannot be written that way.

use crate::contract::envelope::Envelope;
use crate::money::Money;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_govern::registry::Price;

/// Amounts as whole micro-cents, without a rounding.
#[derive(Serialize, Deserialize)]
struct PinnedPrice {
    input: Money,
    output: Money,
    cached: Option<Money>,
}

/// A price that a dispatch pinned.
pub(crate) mod price {
    use super::{Deserialize, Deserializer, PinnedPrice, Price, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        price: &Option<Price>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let pinned = price.as_ref().map(|price| PinnedPrice {
            input: price.input_cents_per_mtok,
            output: price.output_cents_per_mtok,
            cached: price.cached_input_cents_per_mtok,
        });
        pinned.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Price>, D::Error> {
        let pinned = Option::<PinnedPrice>::deserialize(deserializer)?;
        Ok(pinned.map(|PinnedPrice { input, output, cached }| Price {
            input_cents_per_mtok: input,
            output_cents_per_mtok: output,
            cached_input_cents_per_mtok: cached,
            max_output_tokens: None,
        }))
    }
}

/// A type that is written as the JSON value that its own serde form gives.
pub(crate) mod json {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use serde::de::DeserializeOwned;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde_json::Value;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let value = serde_json::to_value(value).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let value = Value::deserialize(deserializer)?;
        serde_json::from_value(value).map_err(D::Error::custom)
    }
}

/// An output envelope. A part that is null stays null.
pub(crate) mod envelope {
    use super::{Deserialize, Deserializer, Envelope, Serializer, json};
    use serde::de::Error as _;
    use serde_json::Value;

    pub(crate) fn serialize<S: Serializer>(
        envelope: &Option<Envelope>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        json::serialize(envelope, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Envelope>, D::Error> {
        let value = Option::<Value>::deserialize(deserializer)?;
        let envelope = value.as_ref().map(Envelope::from_value).transpose();
        envelope.map_err(D::Error::custom)
    }
}

/// A value that can be null or absent, which are not the same.
pub(crate) mod present {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_slice().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Ok(Vec::<T>::deserialize(deserializer)?.pop())
    }
}
