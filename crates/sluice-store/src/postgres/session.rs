//! One connection to the database.
//!
//! Statements are prepared once per connection. A pipeline is several of them
//! sent without waiting in between: they are performed in their order, and one
//! that fails makes those after it fail too, where they share a transaction.
//!
//! INVARIANT: all statements of a pipeline are prepared before the first is sent,
//! so that none overtakes another.

use super::address::Address;
use super::fault::Fault;
use crate::limits::{LOCK_MS_MAX, PREPARED_MAX, STANDSTILL_MS_MAX};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, RowStream, Statement};

/// A value that is sent with a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// An open connection.
pub(super) struct Session {
    client: Client,
    /// How long an answer may take.
    patience: Duration,
    statements: RefCell<HashMap<String, Statement>>,
}

/// Statements that are sent together.
#[derive(Default)]
pub(super) struct Pipeline<'a> {
    steps: Vec<(&'a str, Vec<Box<dyn ToSql + Sync + 'a>>)>,
}

/// Sends values of different types along with a statement of a pipeline.
macro_rules! step {
    ($pipeline:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $pipeline.add($sql, vec![$(Box::new($value)),*])
    };
}
pub(super) use step;

impl<'a> Pipeline<'a> {
    /// Adds a statement. Answers its place among the answers.
    pub(super) fn add(&mut self, sql: &'a str, values: Vec<Box<dyn ToSql + Sync + 'a>>) -> usize {
        self.steps.push((sql, values));
        self.steps.len() - 1
    }
}

impl Session {
    /// Connects. What others notify goes to `heard`: who it is from.
    pub(super) async fn connect(
        address: &Address,
        heard: Option<mpsc::Sender<String>>,
    ) -> Result<Session, Fault> {
        let (client, mut connection) = address.connect().await?;
        tokio::task::spawn_local(async move {
            // An error ends the connection, which everyone who uses it notices.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let (AsyncMessage::Notification(note), Some(heard)) = (message, &heard) {
                    // One that finds no place is like one that is there already.
                    let _ = heard.try_send(note.payload().to_owned());
                }
            }
        });
        let patience = address.patience;
        let session = Session { client, patience, statements: RefCell::default() };
        session.settle().await?;
        Ok(session)
    }

    /// Settings that must hold, whatever the server's defaults are.
    async fn settle(&self) -> Result<(), Fault> {
        // An answer means that it is on the disk. And every statement here has its index: a
        // plan that was made while a table was small, and is kept, must not read all of it
        // when it has grown. Databases that plan otherwise do not know those settings.
        let sql = "SELECT set_config(name,
                       CASE name WHEN 'synchronous_commit' THEN 'on' ELSE 'off' END, false)
                   FROM pg_settings
                   WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')
                       OR (name = 'synchronous_commit' AND setting = 'off')";
        self.query(sql, &[]).await?;
        // A node that stands still in a transaction holds rows that others need, and
        // one that waits for such rows holds others.
        let sql = "SELECT set_config('idle_in_transaction_session_timeout', $1, false),
                       set_config('lock_timeout', $2, false)";
        let (idle, lock) = (STANDSTILL_MS_MAX.to_string(), LOCK_MS_MAX.to_string());
        self.query(sql, &[&idle, &lock]).await?;
        Ok(())
    }

    /// Whether it is of no use any more.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Performs several statements that take no values.
    pub(super) async fn script(&self, sql: &str) -> Result<(), Fault> {
        self.in_time(self.client.batch_execute(sql).map(|done| done.map_err(Fault::from))).await
    }

    /// Performs one statement, and answers its rows.
    pub(super) async fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepared(sql).await?;
        let asked = self.client.query(&statement, values);
        self.in_time(asked.map(|done| done.map_err(Fault::from))).await
    }

    /// Performs one statement, and answers how many rows it changed.
    pub(super) async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Fault> {
        let statement = self.prepared(sql).await?;
        let asked = self.client.execute(&statement, values);
        self.in_time(asked.map(|done| done.map_err(Fault::from))).await
    }

    /// Performs statements one after the other without waiting in between, and
    /// answers the rows of each. The first that fails is the one that counts.
    pub(super) async fn run(&self, pipeline: &Pipeline<'_>) -> Result<Vec<Vec<Row>>, Fault> {
        let mut statements = Vec::with_capacity(pipeline.steps.len());
        for (sql, _) in &pipeline.steps {
            statements.push(self.prepared(sql).await?);
        }
        let values: Vec<Vec<Value<'_>>> = pipeline
            .steps
            .iter()
            .map(|(_, values)| values.iter().map(|value| &**value as Value<'_>).collect())
            .collect();
        let asked = statements.iter().zip(&values);
        let asked = asked.map(|(statement, values)| self.client.query(statement, values));
        // Each is sent when it is first polled, and they are polled in their order.
        let answers = self.in_time(join_all(asked).map(Ok)).await?;
        let lost = answers.iter().any(|answer| matches!(answer, Err(error) if error.is_closed()));
        let answers: Result<Vec<_>, _> = answers.into_iter().collect();
        answers.map_err(|error| match Fault::from(error) {
            // A commit behind it may have been heard before the connection went.
            fault if lost => Fault::Gone(fault.why().to_owned()),
            fault => fault,
        })
    }

    /// Performs one statement, and answers its rows as they come.
    pub(super) async fn stream(
        &self,
        sql: &str,
        values: &[Box<dyn ToSql + Sync + '_>],
    ) -> Result<RowStream, Fault> {
        let statement = self.prepared(sql).await?;
        let values = values.iter().map(|value| &**value as Value<'_>);
        let asked = self.client.query_raw(&statement, values);
        self.in_time(asked.map(|done| done.map_err(Fault::from))).await
    }

    async fn prepared(&self, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let preparing = self.client.prepare(sql);
        let statement = self.in_time(preparing.map(|done| done.map_err(Fault::from))).await?;
        let mut statements = self.statements.borrow_mut();
        // Only lists have many forms; starting over is simpler than keeping an order.
        if statements.len() >= PREPARED_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// No answer for very long is as good as no connection.
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let answer = tokio::time::timeout(self.patience, answer).await;
        answer.unwrap_or_else(|_| {
            let patience_ms = self.patience.as_millis();
            Err(Fault::Gone(format!("the database did not answer for {patience_ms} ms")))
        })
    }
}
