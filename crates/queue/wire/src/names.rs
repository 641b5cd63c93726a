//! The words of the Queue service: headers, query options, parts of addresses.

pub const METADATA_PREFIX: &str = "x-ms-meta-";
pub const APPROXIMATE_MESSAGES_COUNT: &str = "x-ms-approximate-messages-count";
pub const POP_RECEIPT_HEADER: &str = "x-ms-popreceipt";
pub const TIME_NEXT_VISIBLE_HEADER: &str = "x-ms-time-next-visible";

pub const MESSAGES: &str = "messages";

pub const PREFIX: &str = "prefix";
pub const MARKER: &str = "marker";
pub const MAX_RESULTS: &str = "maxresults";
pub const INCLUDE: &str = "include";
pub const NUMBER_OF_MESSAGES: &str = "numofmessages";
pub const VISIBILITY_TIMEOUT: &str = "visibilitytimeout";
pub const MESSAGE_TTL: &str = "messagettl";
pub const PEEK_ONLY: &str = "peekonly";
pub const POP_RECEIPT: &str = "popreceipt";
