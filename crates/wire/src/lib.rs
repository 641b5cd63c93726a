//! The protocol: `model` to bytes and back, shared by server and client so that they can't drift.
//!
//! No sockets, no HTTP library, no storage.

pub mod access_policies;
pub mod atom;
pub mod batch;
pub mod connection_string;
mod entity_body;
pub mod entity_json;
pub mod error_body;
pub mod format;
pub mod names;
pub mod select;
pub mod service_properties;
pub mod service_stats;
pub mod signing;
pub mod token;
pub mod url;
mod version;
mod xml_text;
mod xml_tree;

pub use entity_body::{EntityBody, read_table_name};
pub use format::{Format, MetadataLevel};
pub use select::Select;
pub use version::Version;
