//! The Table protocol: `model` to bytes and back, shared by server and client so that they can't drift. What all services
//! share is in `protocol` and re-exported here.
//!
//! No sockets, no HTTP library, no storage.

pub mod access_policies;
pub mod atom;
pub mod batch;
mod binary;
mod entity_body;
pub mod entity_json;
pub mod error_body;
pub mod format;
pub mod names;
pub mod select;
pub mod token;
pub mod url;
mod version;

pub use common::Version;
pub use entity_body::{EntityBody, read_table_name};
pub use format::{Format, MetadataLevel};
pub use protocol::{connection_string, service_properties, service_stats, signing};
pub use select::Select;
pub use version::TableVersion;
