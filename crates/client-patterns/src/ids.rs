//! Unique ids.

use partita_client::Guid;

/// A random GUID.
pub fn random() -> String {
    Guid(rand::random()).to_string()
}
