//! Lists runs without reading their journals.

use super::column::{Id, Text, get, int, number, some_number, sql_limit, status, text};
use super::fault::Fault;
use super::session::Session;
use sluice_core::id::RunId;
use sluice_core::port::store::{Filter, RunRow};
use sluice_core::status::RunStatus;
use std::fmt::Write as _;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Columns in the order in which `read` reads them.
const COLUMNS: &str = "id, workflow, release, status, started_at, ended_at, parent, owner, due_at,
    initiator";
/// Whether the owner's lease is valid. Uses the database's clock if no time is given.
const OWNER: &str = "EXISTS (SELECT 1 FROM node WHERE node.id = listed.owner AND node.ends_at
    > coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))";

/// The newest runs that match the filter, of one moment.
pub(super) async fn list(
    session: &Session,
    filter: &Filter,
    now: Option<i64>,
) -> Result<Vec<RunRow>, Fault> {
    let mut statuses: Vec<Option<RunStatus>> = filter.statuses.iter().copied().map(Some).collect();
    statuses.sort_unstable();
    statuses.dedup();
    if statuses.is_empty() {
        statuses.push(None);
    }
    let lower = filter.text.as_ref().map(|text| text.to_ascii_lowercase());
    let mut query = ListQuery { sql: String::new(), values: vec![Box::new(now)] };
    let limit = sql_limit(crate::page(filter.limit));
    // One subquery per status: each reads its own range of the index in order. A single
    // query would have to sort all runs.
    for (number, only) in statuses.into_iter().enumerate() {
        query.sql.push_str(if number == 0 { "" } else { " UNION ALL " });
        query.subquery(filter, lower.as_deref(), only, limit);
    }
    let sql = format!(
        "SELECT {COLUMNS}, {OWNER} FROM ({}) AS listed ORDER BY id DESC LIMIT {limit}",
        query.sql
    );
    let values: Vec<super::session::Value<'_>> =
        query.values.iter().map(|value| &**value as super::session::Value<'_>).collect();
    let rows = session.query(&sql, &values).await?;
    rows.iter().map(read).collect()
}

/// A query being built, with its parameters.
struct ListQuery<'a> {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync + 'a>>,
}

impl<'a> ListQuery<'a> {
    fn subquery(
        &mut self,
        filter: &'a Filter,
        lower: Option<&'a str>,
        only: Option<RunStatus>,
        limit: i64,
    ) {
        let _ = write!(self.sql, "(SELECT {COLUMNS} FROM run WHERE TRUE");
        let id = |run: RunId| Id::from(run);
        self.condition(" AND id = ", filter.run.map(id));
        self.condition(" AND id < ", filter.before.map(id));
        self.condition(" AND parent = ", filter.parent.map(id));
        self.condition(" AND workflow = ", filter.workflow.as_deref().map(Text));
        self.condition(" AND initiator = ", filter.initiator.as_deref().map(Text));
        self.condition(" AND started_at >= ", filter.since_ms.map(int));
        self.condition(" AND started_at < ", filter.until_ms.map(int));
        self.condition(" AND status = ", only.map(RunStatus::as_str));
        self.sql.push_str(if filter.asking { " AND asks" } else { "" });
        if let Some(lower) = lower {
            // Not LIKE: the text has no wildcards.
            self.condition(" AND (strpos(lower(workflow), ", Some(Text(lower)));
            self.condition(") > 0 OR strpos(lower(initiator), ", Some(Text(lower)));
            // An empty range matches if no id begins with the text.
            let (least, most) = crate::text::ids_beginning(lower).unwrap_or((RunId(1), RunId(0)));
            self.condition(") > 0 OR id BETWEEN ", Some(id(least)));
            self.condition(" AND ", Some(id(most)));
            self.sql.push(')');
        }
        let _ = write!(self.sql, " ORDER BY id DESC LIMIT {limit})");
    }

    fn condition(&mut self, condition: &str, value: Option<impl ToSql + Sync + 'a>) {
        if let Some(value) = value {
            self.values.push(Box::new(value));
            let _ = write!(self.sql, "{condition}${}", self.values.len());
        }
    }
}

fn read(row: &Row) -> Result<RunRow, Fault> {
    let lives: bool = get(row, 10)?;
    let owner = get::<Option<Id>>(row, 7)?.map(Id::node);
    Ok(RunRow {
        run: get::<Id>(row, 0)?.run(),
        workflow: text(row, 1)?.into_owned(),
        version: some_number(row, 2)?,
        status: status(get(row, 3)?)?,
        started_at_ms: number(row, 4)?,
        ended_at_ms: some_number(row, 5)?,
        parent: get::<Option<Id>>(row, 6)?.map(Id::run),
        owner: owner.filter(|_| lives),
        due_at_ms: some_number(row, 8)?,
        initiator: text(row, 9)?.into_owned(),
    })
}
