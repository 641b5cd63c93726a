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
pub mod config;
mod connections;
pub mod control;
mod cors;
mod guarded_stream;
mod headers;
mod listener;
mod memory;
mod operation;
mod pipeline;
mod refusal_log;
mod respond;
mod route;
mod sas;
pub mod sas_command;
mod settings;
pub mod telemetry;
pub mod tls;

pub use listener::{Bounds, Listener, Server};
