//! A storage service as one stored byte.
//!
//! Account names consist of letters and digits, so none begins with one of these bytes.

use model::ServiceKind;

pub const fn to_byte(service: ServiceKind) -> u8 {
    match service {
        ServiceKind::Table => 1,
        ServiceKind::Queue => 2,
        ServiceKind::Blob => 3,
    }
}

/// `None` for the byte of a service that this version does not know.
pub fn from_byte(byte: u8) -> Option<ServiceKind> {
    ServiceKind::ALL.into_iter().find(|service| to_byte(*service) == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_a_byte_of_its_own() {
        let bytes = ServiceKind::ALL.map(to_byte);
        let of = |service| to_byte(service);
        let (table, queue, blob) = (of(ServiceKind::Table), of(ServiceKind::Queue), of(ServiceKind::Blob));
        assert_eq!([table, queue, blob], [1, 2, 3], "these bytes are on disks and never change");
        assert_eq!(bytes.map(from_byte), ServiceKind::ALL.map(Some));
        assert_eq!(from_byte(0), None);
        assert_eq!(from_byte(b'a'), None);
    }
}
