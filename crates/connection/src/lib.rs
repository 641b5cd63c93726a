//! One connection to any Table endpoint, for the tools that load and judge servers.
//!
//! Connection strings, signing, TLS, one request after the other. Knows nothing of entities, and never repeats a write.

mod client;
mod response;
mod tls;

pub use client::{BrokenConnection, Client, ConnectError, SendError, Target, UnsignedRequest};
pub use response::{Response, ResponseError};
pub use tls::{ConnectorError, connector};
pub use wire::connection_string::{Credential, DEVELOPMENT, Endpoint, EndpointError};
