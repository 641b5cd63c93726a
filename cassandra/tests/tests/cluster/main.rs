//! The engine on a real cluster: what it expects of Cassandra, and that it keeps the promises of every engine while
//! requests are lost and directories change.

#![allow(clippy::unwrap_used, reason = "these are tests: what is unwrapped is asserted")]

mod directory_under_fire;
mod janitor;
mod large_merges;
mod leases;
mod lost_answers;
mod lwt_contract;
mod old_names;
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
