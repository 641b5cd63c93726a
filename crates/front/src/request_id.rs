//! Random ids: of requests, and of batches' answers.

use common::{Guid, ServiceKind};
use rand::Rng as _;

pub fn new_guid() -> String {
    Guid(rand::rng().random()).to_string()
}

/// In the shape of the service's own: `xxxxxxxx-x002-00xx-xxxx-xxxxxx000000`. The number of the service is 002 for tables,
/// 003 for queues and 01e for blobs.
pub fn new_request_id(service: ServiceKind) -> String {
    let number = match service {
        ServiceKind::Blob => 0x1e,
        ServiceKind::Table => 0x02,
        ServiceKind::Queue => 0x03,
    };
    let mut bytes: [u8; 16] = rand::rng().random();
    (bytes[4], bytes[5], bytes[6]) = (bytes[4] & 0xf0, number, 0);
    bytes[13..].fill(0);
    let mut id = Vec::with_capacity(36);
    Guid(bytes).write(&mut id);
    // A GUID is ASCII.
    String::from_utf8(id).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_have_the_services_shape() {
        let numbers =
            [(ServiceKind::Table, "002-00"), (ServiceKind::Queue, "003-00"), (ServiceKind::Blob, "01e-00")];
        for (service, number) in numbers {
            let id = new_request_id(service);
            assert_eq!(id.len(), 36);
            assert_eq!((&id[10..16], &id[30..]), (number, "000000"), "{id}");
            assert_ne!(id, new_request_id(service));
        }
    }
}
