//! The engine on a real cluster: what it believes of Cassandra, the promises of every engine, and what becomes of
//! them when requests are lost and directories change.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod directory_under_fire;
mod janitor;
mod large_merges;
mod leases;
mod lost_answers;
mod lwt_contract;
mod queues;
mod scan;
mod slots;
mod suite;
mod tombstones;
mod upgrade;

// What the tests of the Queue service judge by.
#[path = "../../../../crates/queue/service/tests/kit.rs"]
#[allow(dead_code, reason = "those tests use more of it")]
mod kit;
#[path = "../../../../crates/queue/service/tests/oracle.rs"]
mod oracle;
#[path = "../../../../crates/queue/service/tests/walk.rs"]
mod walk;
