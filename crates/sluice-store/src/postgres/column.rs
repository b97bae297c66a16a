//! How our values lie in columns.

use super::fault::Fault;
use sluice_core::choice;
use sluice_core::port::store::{Hash, NodeId};
use sluice_core::run::id::RunId;
use sluice_core::run::status::RunStatus;
use std::borrow::Cow;
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use tokio_util::bytes::BytesMut;

/// An id of 16 bytes, as the type `uuid`, which sorts as the number does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) u128);

impl ToSql for Id {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Id, Box<dyn Error + Sync + Send>> {
        Ok(Id(u128::from_be_bytes(raw.try_into()?)))
    }

    accepts!(UUID);
}

impl From<RunId> for Id {
    fn from(run: RunId) -> Id {
        Id(run.0)
    }
}

impl From<NodeId> for Id {
    fn from(node: NodeId) -> Id {
        Id(node.0)
    }
}

impl Id {
    /// The run of this id.
    pub(super) fn run(self) -> RunId {
        RunId(self.0)
    }

    /// The node of this id.
    pub(super) fn node(self) -> NodeId {
        NodeId(self.0)
    }
}

/// A count or a time. The database's integers have a sign; nothing real comes near it.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads what `int` wrote.
pub(super) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// How many at most, as the database counts.
pub(super) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Fault> {
    row.try_get(at).map_err(|error| Fault::Corrupt(error.to_string()))
}

/// A count or a time in a column.
pub(super) fn number(row: &Row, at: usize) -> Result<u64, Fault> {
    Ok(uint(get(row, at)?))
}

/// A count or a time in a column that may be empty.
pub(super) fn some_number(row: &Row, at: usize) -> Result<Option<u64>, Fault> {
    Ok(get::<Option<i64>>(row, at)?.map(uint))
}

/// A hash in a column.
pub(super) fn hash(row: &Row, at: usize) -> Result<Hash, Fault> {
    let bytes: &[u8] = get(row, at)?;
    let bytes = bytes.try_into();
    bytes.map(Hash).map_err(|_| Fault::Corrupt("a hash that is not 32 bytes long".to_owned()))
}

/// Reads what `as_str` wrote.
pub(super) fn status(word: &str) -> Result<RunStatus, Fault> {
    choice::find(word).ok_or_else(|| Fault::Corrupt(format!("{word:?} is no run status")))
}

/// What is only shown to people, without the one character that no text of the
/// database may hold.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
