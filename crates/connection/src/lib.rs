//! One connection to a Table endpoint, for the tools that speak to servers from outside: any that speaks the protocol.
//!
//! Connection strings, signing, TLS, one request after the other. Knows nothing of entities, and retries nothing that
//! a server may have carried out.

mod client;
mod response;
mod tls;

pub use client::{Client, Request, Target, Trouble};
pub use response::Response;
pub use tls::connector;
pub use wire::connection_string::{Credential, DEVELOPMENT, Endpoint};
