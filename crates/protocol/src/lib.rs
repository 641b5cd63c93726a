//! What the Table, Queue and Blob services share on the wire, both halves of it: what a client writes and a server reads, and
//! the other way round, so that they can't drift.
//!
//! No sockets, no HTTP library, no storage.

pub mod access_policies;
pub mod connection_string;
pub mod names;
mod query;
pub mod service_properties;
pub mod service_stats;
pub mod signing;
pub mod xml_fault;
pub mod xml_text;
pub mod xml_tree;

pub use query::Query;
