//! What the Table, Queue and Blob services share on the wire. Client and server use the same code, so that they can't
//! drift.
//!
//! No sockets, no HTTP library, no storage.

pub mod access_policies;
pub mod connection_string;
pub mod multipart;
pub mod names;
mod query;
pub mod service_properties;
pub mod service_stats;
pub mod signing;
pub mod xml_fault;
pub mod xml_text;
pub mod xml_tree;

pub use query::QueryString;
