//! The front of a storage server: from bytes on a socket to the service that a request is for, and back.
//!
//! Everything that the services of an account share is here: listeners, TLS, limits on connections and memory, addresses,
//! authentication, service properties, CORS, request logs and metrics, health. A service is a
//! [`StorageService`]; read `service.rs`, then `pipeline.rs`.

pub mod access;
pub mod account;
mod address;
pub mod analytics;
pub mod authenticate;
pub mod bearer;
mod body;
mod connections;
mod cores;
mod cors;
pub mod delegation;
mod fault;
mod guarded_stream;
mod head_timer;
pub mod header_case;
pub mod headers;
mod health;
mod listener;
mod memory;
pub mod metrics;
mod operation_info;
mod pipeline;
mod port;
mod preflight;
mod properties_store;
mod refusal_log;
mod request;
pub mod request_id;
mod response_body;
pub mod response_headers;
pub mod sas;
mod service;
mod side_door;
mod slow_queries;
pub mod tls;
pub mod traces;

pub use address::{Address, Site};
pub use body::{BodyFailure, RequestBody};
pub use common::ServiceKind;
pub use connections::Connection;
pub use cores::{Cores, Seats};
pub use fault::refusal_of_fault;
pub use listener::{Bounds, Listener, OpenServer, Server};
pub use memory::{AccountMemory, Memory, MemoryShare};
pub use operation_info::{Class, OperationInfo};
pub use pipeline::{AnyService, Arrival, Front, Services, admit, require_length, time_allowed};
pub use port::Port;
pub use properties_store::PropertiesStore;
pub use refusal_log::{RefusalLog, cut};
pub use request::Request;
pub use response_body::{Body, BrokenStream, held_bytes};
pub use service::{Admission, RefusalFacts, RefusedRequest, StorageService};
pub use side_door::{Handler, LocalServices, SideDoor};
pub use slow_queries::SlowQueries;
