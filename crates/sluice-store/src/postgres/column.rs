//! Conversions between our types and PostgreSQL columns.

use super::fault::Fault;
use sluice_core::choice;
use sluice_core::hash::Hash;
use sluice_core::id::RunId;
use sluice_core::port::store::NodeId;
use sluice_core::status::RunStatus;
use sluice_govern::account::Name;
use std::borrow::Cow;
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use tokio_util::bytes::BytesMut;

/// A 16-byte id as type `uuid`, which sorts like the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) u128);

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
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
    pub(super) fn run(self) -> RunId {
        RunId(self.0)
    }

    pub(super) fn node(self) -> NodeId {
        NodeId(self.0)
    }
}

/// A count or a time. PostgreSQL integers are signed; no real value is too large.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads what `int` wrote.
pub(super) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A limit as a SQL parameter.
pub(super) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads a column.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Fault> {
    row.try_get(at).map_err(|error| Fault::Corrupt(error.to_string()))
}

/// Reads a count or a time.
pub(super) fn number(row: &Row, at: usize) -> Result<u64, Fault> {
    Ok(uint(get(row, at)?))
}

/// Reads a count or a time that may be NULL.
pub(super) fn some_number(row: &Row, at: usize) -> Result<Option<u64>, Fault> {
    Ok(get::<Option<i64>>(row, at)?.map(uint))
}

/// Reads a hash.
pub(super) fn hash(row: &Row, at: usize) -> Result<Hash, Fault> {
    let bytes: &[u8] = get(row, at)?;
    let bytes = bytes.try_into();
    bytes.map(Hash).map_err(|_| Fault::Corrupt("a hash that is not 32 bytes long".to_owned()))
}

/// Reads what `as_str` wrote.
pub(super) fn status(word: &str) -> Result<RunStatus, Fault> {
    choice::find(word).ok_or_else(|| Fault::Corrupt(format!("{word:?} is not a run status")))
}

/// A text from outside Sluice. PostgreSQL cannot store NUL, so NUL and U+0001 are each
/// written as two characters that sort in the same order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl ToSql for Text<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        if self.0.bytes().all(|byte| byte > 1) {
            return self.0.to_sql(kind, out);
        }
        self.0.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}").to_sql(kind, out)
    }

    accepts!(TEXT);
    to_sql_checked!();
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CounterText<'a>(pub(super) Name<'a>);

impl ToSql for CounterText<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Text(&self.0.whole()).to_sql(kind, out)
    }

    accepts!(TEXT);
    to_sql_checked!();
}

/// Reads what `Text` wrote.
pub(super) fn text(row: &Row, at: usize) -> Result<Cow<'_, str>, Fault> {
    Ok(plain(get(row, at)?))
}

/// Reads what `Text` wrote, or NULL.
pub(super) fn some_text(row: &Row, at: usize) -> Result<Option<String>, Fault> {
    Ok(get::<Option<&str>>(row, at)?.map(|text| plain(text).into_owned()))
}

fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1}') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\u{1}\u{1}", "\0").replace("\u{1}\u{2}", "\u{1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_kept_and_sorts_as_it_did() {
        let texts = [
            "",
            "\0",
            "\0\0",
            "\0a",
            "\0\u{1}",
            "\u{1}",
            "\u{1}\0",
            "\u{1}\u{1}",
            "\u{1}\u{2}",
            "\u{2}",
            "\u{2}\u{1}",
            "a",
            "a\0",
            "a\0b",
            "a\u{1}",
            "ab",
            "é",
        ];
        let mut texts = texts.to_vec();
        texts.sort_unstable();
        let written = texts.iter().map(|text| {
            let mut out = BytesMut::new();
            Text(text).to_sql(&Type::TEXT, &mut out).unwrap();
            String::from_utf8(out.to_vec()).unwrap()
        });
        let written: Vec<String> = written.collect();
        assert!(written.is_sorted_by(|one, next| one < next), "{written:?}");
        assert!(written.iter().all(|text| !text.contains('\0')));
        assert_eq!(written.iter().map(|text| plain(text)).collect::<Vec<_>>(), texts);
    }
}
