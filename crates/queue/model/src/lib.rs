//! What the Queue service talks about: names, metadata, messages, pop receipts, limits and refusals. What it shares with the
//! other services is in `common` and shown here too.
//!
//! No I/O, no async, no XML. A value of these types is valid once built; every other crate relies on it.

pub mod limits;
mod message;
mod metadata;
mod pop_receipt;
mod queue_name;
mod refusal;

pub use common::{AccountName, DateTime, Guid, ServiceKind};
pub use message::{Message, MessageId, MessageText, NewMessage, TakenMessage, TextFault};
pub use metadata::Metadata;
pub use pop_receipt::{NotBase64, PopReceipt};
pub use queue_name::QueueName;
pub use refusal::Refusal;
