//! Entity group transactions on the wire: `multipart/mixed`, both ways.
//!
//! Knows how operations are wrapped, not what they mean: targets, headers and bodies come out as they were
//! written, and which operations may stand together is the service's business.

mod answer;
mod multipart;
mod read;
mod request;
mod write;

pub use answer::{Answer, read_answers};
pub use read::{Batch, BatchFault, Part, read};
pub use request::{Operation, request_content_type, write_request};
pub use write::{PartAnswer, content_type, write_change_set, write_query};
