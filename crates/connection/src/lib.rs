//! One connection to any endpoint of tables, queues or blobs, for the tools that load and judge servers.
//!
//! Connection strings, signing, TLS, one request after the other. Knows nothing of entities and messages, and never repeats a write.

mod client;
mod response;
mod tls;

pub use client::{BrokenConnection, Client, ConnectError, Content, SendError, Sink, Target, UnsignedRequest};
pub use common::ServiceKind;
pub use protocol::connection_string::{Credential, DEVELOPMENT, Endpoint, EndpointError};
pub use response::{Response, ResponseError};
pub use tls::{ConnectorError, connector};
