//! Shared Key and Shared Key Lite: the `Authorization` header, and the strings that are signed. Tables have one form;
//! queues and blobs share another.

mod blob_queue;
mod header_order;
mod table;

pub use blob_queue::BlobQueueRequest;
pub use table::SignedRequest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    SharedKey,
    SharedKeyLite,
}

/// The parts of an `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authorization<'a> {
    pub scheme: Scheme,
    pub account: &'a str,
    pub signature: &'a str,
}

impl<'a> Authorization<'a> {
    /// `<scheme> <account>:<signature>`; `None` for anything else.
    pub fn parse(header: &'a str) -> Option<Self> {
        let (scheme, credentials) = header.trim().split_once(' ')?;
        let scheme = match scheme {
            s if s.eq_ignore_ascii_case("SharedKey") => Scheme::SharedKey,
            s if s.eq_ignore_ascii_case("SharedKeyLite") => Scheme::SharedKeyLite,
            _ => return None,
        };
        let (account, signature) = credentials.trim().split_once(':')?;
        Some(Self { scheme, account, signature })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_apart() {
        let parsed = Authorization::parse("SharedKeyLite acct:sig=").unwrap();
        assert_eq!(
            (parsed.scheme, parsed.account, parsed.signature),
            (Scheme::SharedKeyLite, "acct", "sig=")
        );
        for header in ["", "SharedKey", "SharedKey acct", "Basic acct:sig", "Bearer x.y.z", "acct:sig"] {
            assert_eq!(Authorization::parse(header), None, "{header}");
        }
    }
}
