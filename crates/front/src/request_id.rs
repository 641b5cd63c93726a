//! Random ids: of requests, and of batches' answers.

use common::Guid;
use rand::Rng as _;

pub fn new_guid() -> String {
    Guid(rand::rng().random()).to_string()
}

/// In the shape of the service's own: `xxxxxxxx-x002-00xx-xxxx-xxxxxx000000`.
pub fn new_request_id() -> String {
    let mut bytes: [u8; 16] = rand::rng().random();
    (bytes[4], bytes[5], bytes[6]) = (bytes[4] & 0xf0, 0x02, 0);
    bytes[13..].fill(0);
    Guid(bytes).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn request_ids_have_the_services_shape() {
        let id = super::new_request_id();
        assert_eq!(id.len(), 36);
        assert_eq!((&id[10..16], &id[30..]), ("002-00", "000000"), "{id}");
        assert_ne!(id, super::new_request_id());
    }
}
