//! What the engine believes of Cassandra's conditional writes, asked of a real node: each rule that `src` rests
//! on is one test here, with the statements `src/statements.rs` sends.
//!
//! `PARTITA_TEST_CASSANDRA` names the node or nodes (`host[:port]`, commas between). The keyspace
//! `partita_lwt_contract` is theirs to drop.

mod answers;
mod conditions;
mod ground;
mod limits;
mod plain;
mod reads;
mod rivals;
mod settings;
mod tables;
