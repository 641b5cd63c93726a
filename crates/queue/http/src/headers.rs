//! Headers that only the Queue service has. Made once, so that looking one up is not also reading its name.

use http::HeaderName;
use queue_wire::names;

pub static APPROXIMATE_MESSAGES_COUNT: HeaderName =
    HeaderName::from_static(names::APPROXIMATE_MESSAGES_COUNT);
pub static POP_RECEIPT: HeaderName = HeaderName::from_static(names::POP_RECEIPT_HEADER);
pub static TIME_NEXT_VISIBLE: HeaderName = HeaderName::from_static(names::TIME_NEXT_VISIBLE_HEADER);
