//! HTTP and nothing else: from bytes on a socket to the service's operations and back.
//!
//! Read `pipeline.rs` first: the checks stand there in the order the service makes them.

pub mod account;
mod address;
pub mod analytics;
mod answer;
mod authenticate;
pub mod bearer;
mod body;
mod connections;
mod cors;
mod guarded_stream;
mod headers;
mod listener;
mod memory;
mod operation;
mod operation_info;
mod pipeline;
mod refusal_log;
mod request;
mod request_id;
mod respond;
mod route;
pub mod sas;
mod settings;
mod table_request;
pub mod tls;

pub use authenticate::Denied;
pub use listener::{Bounds, Listener, Server};
