//! The Blob service's documents, to the byte: lists of containers and of blobs, block lists, page ranges, tags, errors,
//! delegation keys, batches; and the texts in its headers and options: markers, expressions over tags. The server's half and
//! the client's stand beside each other, so that they can't drift.
//!
//! Stored access policies, service properties and statistics are `protocol`'s. No sockets, no HTTP library, no storage.

pub mod batch;
pub mod blob_headers;
pub mod blob_list;
pub mod block_list;
pub mod container_list;
pub mod delegation_key;
pub mod error_body;
pub mod found_blobs;
mod include;
mod listed;
pub mod marker;
pub mod names;
pub mod page_list;
pub mod tag_document;
pub mod tag_expression;
mod xml;

pub use include::{BlobInclude, ContainerInclude};
pub use xml::Writer;
