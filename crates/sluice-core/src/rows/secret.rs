//! Secrets that rows refer to, and which author may refer to which.
//!
//! Every row may contain `secret:NAME`; the operator declares its value and where it may be
//! sent. Only the operator may refer to a variable or a file of the machine, and the row
//! records that.
//!
//! INVARIANT: `operator_secret` is never copied from the written row. A row that another author
//! changes in any way loses its variable or file, or is rejected.

use super::settle::{canonical, kept};
use serde_json::{Map, Value};
use sluice_govern::registry::{Kind, Row};
use sluice_govern::secret::SecretRef;

/// The field that records that the operator set the variable or file.
const BY_OPERATOR: &str = "operator_secret";

/// Decides which secrets a row may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAuthor {
    /// The operator, on the machine of the data directory, for the first organisation.
    Operator,
    /// A caller of the API, or a command for one of the other organisations.
    Organisation,
}

/// A row that refers to a variable or a file, by an author without that right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotYours {
    /// The kind of row.
    pub kind: Kind,
    /// The name of the row.
    pub name: String,
    /// The field with the reference.
    pub field: &'static str,
}

/// The field that refers to a secret, for a kind of row.
pub(crate) const fn secret_field(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Gateway => Some("key"),
        Kind::Webhook | Kind::Hook => Some("secret"),
        _ => None,
    }
}

/// The secret that a row refers to.
pub fn secret_of(row: &Row) -> Option<SecretRef> {
    row.body.get(secret_field(row.kind)?)?.as_str()?.parse().ok()
}

/// Records in a settled row whether the operator set its secret; rejects a reference that the
/// author may not use.
pub fn entrust(row: &mut Row, before: Option<&Row>, author: RowAuthor) -> Result<(), NotYours> {
    let Some(field) = secret_field(row.kind) else { return Ok(()) };
    let of_machine = secret_of(row).is_some_and(|reference| reference.is_of_machine());
    let by_operator = match author {
        _ if !of_machine => false,
        RowAuthor::Operator => true,
        RowAuthor::Organisation => match before {
            // Fields kept by commands may change: a row that is paused stays the
            // operator's.
            Some(before) if written(before) == written(row) => is_by_operator(before),
            _ => return Err(NotYours { kind: row.kind, name: row.name.clone(), field }),
        },
    };
    if let Value::Object(body) = &mut row.body {
        if by_operator {
            body.insert(BY_OPERATOR.to_owned(), true.into());
        } else {
            body.shift_remove(BY_OPERATOR);
        }
    }
    // Fields have one order, so that equal rows have equal texts.
    if let Ok(body) = canonical(row.kind, row.body.clone()) {
        row.body = body;
    }
    Ok(())
}

fn is_by_operator(row: &Row) -> bool {
    row.body.get(BY_OPERATOR) == Some(&Value::Bool(true))
}

/// The row as its author wrote it, with defaults filled in.
fn written(row: &Row) -> Map<String, Value> {
    let whole = canonical(row.kind, row.body.clone());
    let whole = whole.unwrap_or_else(|_| row.body.clone());
    let mut body = whole.as_object().cloned().unwrap_or_default();
    body.retain(|field, _| !kept(row.kind).any(|name| name == field));
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(body: Value) -> Row {
        Row { kind: Kind::Gateway, name: "g".to_owned(), body }
    }

    /// What becomes of a gateway: the mark, or that it is refused.
    fn entrusted(before: Option<Value>, after: Value, author: RowAuthor) -> Option<bool> {
        let (before, mut after) = (before.map(row), row(after));
        entrust(&mut after, before.as_ref(), author).ok().map(|()| is_by_operator(&after))
    }

    #[test]
    fn only_the_operator_names_variables_and_files() {
        use RowAuthor::{Operator, Organisation};
        for reference in ["env:KEY", "file:/run/key"] {
            let body = json!({"key": reference});
            assert_eq!(entrusted(None, body.clone(), Operator), Some(true));
            assert_eq!(entrusted(None, body, Organisation), None);
            let claims = json!({"key": reference, "operator_secret": true});
            assert_eq!(entrusted(None, claims, Organisation), None);
        }
        for body in [json!({"key": "secret:openai"}), json!({})] {
            assert_eq!(entrusted(None, body.clone(), Organisation), Some(false));
            assert_eq!(entrusted(None, body, Operator), Some(false));
        }
    }

    #[test]
    fn another_author_cannot_change_a_row_with_a_secret_of_the_machine() {
        use RowAuthor::{Operator, Organisation};
        let own = json!({"key": "env:KEY", "operator_secret": true, "paused": false});
        let with = |field: &str, value: Value| {
            let mut body = own.clone();
            body[field] = value;
            body
        };
        let paused = with("paused", true.into());
        assert_eq!(entrusted(Some(own.clone()), paused, Organisation), Some(true));
        for (field, value) in [
            ("base_url", "http://127.0.0.1:1/"),
            ("url", "http://127.0.0.1:1/"),
            ("provider", "http"),
            ("key", "env:OTHER"),
        ] {
            let changed = with(field, value.into());
            assert_eq!(entrusted(Some(own.clone()), changed, Organisation), None, "{field}");
        }
        let named = with("key", "secret:x".into());
        assert_eq!(entrusted(Some(own.clone()), named, Organisation), Some(false));
        assert_eq!(entrusted(Some(own.clone()), with("url", "x".into()), Operator), Some(true));
        // A row of an earlier version has no mark, and nothing but the operator gives it one.
        let unmarked = json!({"key": "env:KEY", "paused": false});
        let claims = json!({"key": "env:KEY", "paused": true, "operator_secret": true});
        assert_eq!(entrusted(Some(unmarked.clone()), claims, Organisation), Some(false));
        assert_eq!(entrusted(Some(unmarked.clone()), unmarked, Operator), Some(true));
    }
}
