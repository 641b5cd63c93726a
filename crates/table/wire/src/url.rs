//! Addresses: paths to resources, key predicates, query options, and the links of answers.

mod link;
mod predicate;
mod resource;

pub use link::{entity_address, entity_link, table_link};
pub use protocol::QueryString;
pub use resource::Resource;

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Percent-decodes once. `None` if the result is not UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'%', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    percent_decode(text.as_bytes()).decode_utf8().ok()
}
