//! The calls of the Cassandra driver that we use, each as a boxed future of one type.
//!
//! A future is compiled in every crate that awaits it, and a generic one again for every type of its values. The driver's
//! futures take most of the time to compile the cluster code, so they are compiled here, once.

use futures_util::future::BoxFuture;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{ExecutionError, NewSessionError, PrepareError, UseKeyspaceError};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;
use scylla::value::CqlValue;

/// The values of one statement, of any type.
pub type Values<'a> = &'a (dyn SerializeRow + Sync);

pub fn connect(builder: SessionBuilder) -> BoxFuture<'static, Result<Session, NewSessionError>> {
    Box::pin(async move { builder.build().await })
}

pub fn use_keyspace<'a>(
    session: &'a Session,
    keyspace: &'a str,
) -> BoxFuture<'a, Result<(), UseKeyspaceError>> {
    Box::pin(session.use_keyspace(keyspace, true))
}

pub fn prepare<'a>(
    session: &'a Session,
    text: &'a str,
) -> BoxFuture<'a, Result<PreparedStatement, PrepareError>> {
    Box::pin(session.prepare(text))
}

pub fn execute<'a>(
    session: &'a Session,
    statement: &'a PreparedStatement,
    values: Values<'a>,
) -> BoxFuture<'a, Result<QueryResult, ExecutionError>> {
    Box::pin(session.execute_unpaged(statement, values))
}

/// Executes a statement that is not prepared.
pub fn query<'a>(
    session: &'a Session,
    statement: Statement,
    values: Values<'a>,
) -> BoxFuture<'a, Result<QueryResult, ExecutionError>> {
    Box::pin(session.query_unpaged(statement, values))
}

pub fn batch<'a>(
    session: &'a Session,
    batch: &'a Batch,
    values: Vec<Vec<Option<CqlValue>>>,
) -> BoxFuture<'a, Result<QueryResult, ExecutionError>> {
    Box::pin(session.batch(batch, values))
}
