//! The limits of queues, once, with where they come from. What all services share is in `common::limits`.

use std::time::Duration;

/// Queue name length. Spec: queue-operations 1.3.
pub const QUEUE_NAME_MIN: usize = 3;
pub const QUEUE_NAME_MAX: usize = 63;
/// Names and values of a queue's metadata together. Spec: queue-operations 4.3.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;
/// A message's text in UTF-8, after unescaping. Spec: queue-operations 6.6.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Messages that one Get or Peek asks for, and how many it is if it does not say. Spec: queue-operations 5.2.
pub const MESSAGES_MAX: u32 = 32;
pub const MESSAGES_DEFAULT: u32 = 1;
/// How long a message stays invisible at most, and after a Get that does not say. Spec: queue-operations 5.1, 5.2.
pub const VISIBILITY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
pub const VISIBILITY_OF_GET: Duration = Duration::from_secs(30);
/// How long a message lives if Put does not say; before 2017-07-29 also the longest. Spec: queue-operations 5.1.
pub const TIME_TO_LIVE_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Queues in a page of a list. Spec: queue-operations 3.1.
pub const LIST_MAX: usize = 5000;
/// Metadata in a page of a list: our own limit, so that a page is never larger than a server can hold. A page that ends early
/// says where the next one begins.
pub const LIST_METADATA_BYTES_MAX: usize = 1024 * 1024;
/// One queue's and one account's messages a second. Spec: queue-operations 10.
pub const QUEUE_MESSAGES_PER_SECOND: u32 = 2000;
pub const ACCOUNT_MESSAGES_PER_SECOND: u32 = 20_000;
