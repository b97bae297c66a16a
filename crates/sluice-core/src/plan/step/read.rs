//! Readers of step parts whose variant depends on their keys.
//!
//! Written by hand: a derived reader would reject keys that a later version adds, and its error
//! would only say that no variant matches.

use super::{EdgeCondition, Items};
use crate::edge::test::Test;
use crate::expr::Expr;
use crate::path::Path;
use crate::wire;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

/// Items, under one of two keys.
#[derive(serde::Deserialize)]
pub(super) struct ItemsJson {
    from: Option<Path>,
    #[serde(default, deserialize_with = "list")]
    list: Option<Vec<Value>>,
}

fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Value>>, D::Error> {
    wire::values(deserializer).map(Some)
}

impl TryFrom<ItemsJson> for Items {
    type Error = &'static str;

    fn try_from(written: ItemsJson) -> Result<Items, &'static str> {
        match (written.from, written.list) {
            (Some(path), None) => Ok(Items::From(path)),
            (None, Some(items)) => Ok(Items::List(items)),
            _ => Err("expected either `from` or `list`"),
        }
    }
}

impl<'de> Deserialize<'de> for EdgeCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EdgeCondition, D::Error> {
        let fields = wire::map(deserializer)?;
        let read = match fields.get("expr") {
            Some(expr) => Expr::deserialize(expr).map(|expr| EdgeCondition::Expression { expr }),
            None => Test::deserialize(Value::Object(fields)).map(EdgeCondition::Test),
        };
        read.map_err(D::Error::custom)
    }
}
