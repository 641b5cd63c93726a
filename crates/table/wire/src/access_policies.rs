//! Stored access policies of tables.

use common::ServiceKind;
use model::Refusal;

pub use protocol::access_policies::{AccessPolicy, write};

/// An empty body, or an empty list, means no policies.
pub fn read(body: &[u8]) -> Result<Vec<AccessPolicy>, Refusal> {
    Ok(protocol::access_policies::read(ServiceKind::Table, body)?)
}

/// Letters of `raud`, each at most once, in that order.
pub fn in_order(permissions: &str) -> bool {
    protocol::access_policies::in_order(ServiceKind::Table, permissions)
}
