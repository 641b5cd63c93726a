//! What the engine expects of Cassandra's conditional writes, checked on a real node. Each rule that the engine relies
//! on has a test here, with the statements of its `src/statements.rs`.
//!
//! `PARTITA_TEST_CASSANDRA` names the nodes (`host[:port]`, separated by commas). The tests drop the keyspace
//! `partita_lwt_contract`.

mod answers;
mod conditions;
mod ground;
mod limits;
mod plain;
mod reads;
mod rivals;
mod settings;
mod tables;
