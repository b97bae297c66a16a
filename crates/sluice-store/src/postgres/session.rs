//! One connection to the database.
//!
//! Statements are prepared once per connection. A pipeline sends several statements
//! without waiting in between. The server performs them in order; within a transaction,
//! a failed statement makes the later ones fail too.
//!
//! INVARIANT: all statements of a pipeline are prepared before the first one is sent,
//! so that they stay in order.

use super::address::DatabaseAddress;
use super::fault::Fault;
use crate::limits::{IDLE_TRANSACTION_MS_MAX, LOCK_MS_MAX, PREPARED_MAX};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, RowStream, Statement};

/// A parameter of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// An open connection.
pub(super) struct Session {
    client: Client,
    /// Longest wait for a response.
    patience: Duration,
    statements: RefCell<HashMap<String, Statement>>,
}

/// Statements that are sent together.
#[derive(Default)]
pub(super) struct Pipeline<'a> {
    steps: Vec<(&'a str, Vec<Box<dyn ToSql + Sync + 'a>>)>,
}

/// Adds a statement with parameters of different types to a pipeline.
macro_rules! step {
    ($pipeline:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $pipeline.add($sql, vec![$(Box::new($value)),*])
    };
}
pub(super) use step;

impl<'a> Pipeline<'a> {
    /// Adds a statement. Returns its index among the results.
    pub(super) fn add(&mut self, sql: &'a str, values: Vec<Box<dyn ToSql + Sync + 'a>>) -> usize {
        self.steps.push((sql, values));
        self.steps.len() - 1
    }
}

impl Session {
    /// Connects. Forwards the payload of each notification to `notifications`.
    pub(super) async fn connect(
        address: &DatabaseAddress,
        notifications: Option<mpsc::Sender<String>>,
    ) -> Result<Session, Fault> {
        let (client, mut connection) = address.connect().await?;
        tokio::task::spawn_local(async move {
            // An error ends the connection; its next user gets an error.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let (AsyncMessage::Notification(note), Some(notifications)) =
                    (message, &notifications)
                {
                    // If the queue is full, the notification is redundant.
                    let _ = notifications.try_send(note.payload().to_owned());
                }
            }
        });
        let patience = address.patience;
        let session = Session { client, patience, statements: RefCell::default() };
        session.configure().await?;
        Ok(session)
    }

    /// Sets what must hold, whatever the server's defaults are.
    async fn configure(&self) -> Result<(), Fault> {
        // A response must mean that the commit is on disk. And every statement here has
        // an index: a cached plan from when a table was small must not scan all of it
        // once it has grown. Databases with a different planner do not have these
        // settings.
        let sql = "SELECT set_config(name,
                       CASE name WHEN 'synchronous_commit' THEN 'on' ELSE 'off' END, false)
                   FROM pg_settings
                   WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')
                       OR (name = 'synchronous_commit' AND setting = 'off')";
        self.query(sql, &[]).await?;
        // A node that stalls in a transaction, or waits too long for a lock, holds
        // locks that other nodes need.
        let sql = "SELECT set_config('idle_in_transaction_session_timeout', $1, false),
                       set_config('lock_timeout', $2, false)";
        let (idle, lock) = (IDLE_TRANSACTION_MS_MAX.to_string(), LOCK_MS_MAX.to_string());
        self.query(sql, &[&idle, &lock]).await?;
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs several statements without parameters.
    pub(super) async fn script(&self, sql: &str) -> Result<(), Fault> {
        self.with_timeout(self.client.batch_execute(sql).map(|result| result.map_err(Fault::from)))
            .await
    }

    /// Runs one statement and returns its rows.
    pub(super) async fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepared(sql).await?;
        let request = self.client.query(&statement, values);
        self.with_timeout(request.map(|result| result.map_err(Fault::from))).await
    }

    /// Runs one statement and returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Fault> {
        let statement = self.prepared(sql).await?;
        let request = self.client.execute(&statement, values);
        self.with_timeout(request.map(|result| result.map_err(Fault::from))).await
    }

    /// Runs the statements of a pipeline and returns the rows of each, or the first
    /// error.
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
        let request = statements.iter().zip(&values);
        let request = request.map(|(statement, values)| self.client.query(statement, values));
        // Each statement is sent at its first poll, and they are polled in order.
        let answers = self.with_timeout(join_all(request).map(Ok)).await?;
        let lost = answers.iter().any(|answer| matches!(answer, Err(error) if error.is_closed()));
        let answers: Result<Vec<_>, _> = answers.into_iter().collect();
        answers.map_err(|error| match Fault::from(error) {
            // The server may have received a later COMMIT before the connection was
            // lost.
            fault if lost => Fault::Disconnected(fault.why().to_owned()),
            fault => fault,
        })
    }

    /// Runs one statement and streams its rows.
    pub(super) async fn stream(
        &self,
        sql: &str,
        values: &[Box<dyn ToSql + Sync + '_>],
    ) -> Result<RowStream, Fault> {
        let statement = self.prepared(sql).await?;
        let values = values.iter().map(|value| &**value as Value<'_>);
        let request = self.client.query_raw(&statement, values);
        self.with_timeout(request.map(|result| result.map_err(Fault::from))).await
    }

    async fn prepared(&self, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let preparing = self.client.prepare(sql);
        let statement =
            self.with_timeout(preparing.map(|result| result.map_err(Fault::from))).await?;
        let mut statements = self.statements.borrow_mut();
        // Only lists have many forms; starting over is simpler than tracking usage.
        if statements.len() >= PREPARED_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Treats a missing response as a lost connection.
    pub(super) async fn with_timeout<T>(
        &self,
        answer: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let answer = tokio::time::timeout(self.patience, answer).await;
        answer.unwrap_or_else(|_| {
            let patience_ms = self.patience.as_millis();
            Err(Fault::Disconnected(format!("the database did not answer for {patience_ms} ms")))
        })
    }
}
