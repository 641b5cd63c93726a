//! The Queue service's documents, to the byte: message lists, lists of queues, error documents, and the body that carries a
//! message. The server's half and the client's stand beside each other, so that they can't drift.
//!
//! No sockets, no HTTP library, no storage.

pub mod error_body;
pub mod message_body;
pub mod message_list;
pub mod names;
pub mod queue_list;
mod version;
mod xml;

pub use version::QueueVersion;
