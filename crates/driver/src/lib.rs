//! What we ask of the Cassandra driver, each as a boxed future of one type.
//!
//! Futures are compiled where they are awaited, and generic ones again for every type of values. The driver's are most of
//! what there is to compile for a cluster, so they are compiled here once, and not in the engine, its tests and whatever
//! else waits for an answer.

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

/// The values of one statement, of whatever type.
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

/// Without preparing it first.
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
