//! Entity group transactions on the wire: `multipart/mixed`, both ways.
//!
//! Knows how operations are wrapped, not what they mean: targets, headers and bodies come out as they were written, and the
//! service decides which operations a batch may combine.

mod answer;
mod read;
mod request;
mod write;

pub use answer::{PartAnswerRef, read_answers};
pub use read::{Batch, BatchFault, BatchPart, read};
pub use request::{PartRequest, request_content_type, write_request};
pub use write::{PartAnswer, content_type, write_change_set, write_query};
