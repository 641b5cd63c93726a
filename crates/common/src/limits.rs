//! The limits that the services share, each with its source.
//!
//! "Units" are UTF-16 code units: the services count text in them.

use std::time::Duration;

/// Account name length. Spec: access-and-service 1.7.
pub const ACCOUNT_NAME_MIN: usize = 3;
pub const ACCOUNT_NAME_MAX: usize = 24;
/// How long one request may take in total. Spec: table-operations 5.10, queue-operations 10.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// The target of a request. The HTTP library has this bound; a part of a batch has the same.
pub const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;
/// `x-ms-client-request-id`. Spec: table-operations 2.1, queue-operations 2.1.
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;
/// How far a signed request's date may be from the server's clock. Spec: access-and-service 1.4.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(15 * 60);
/// Stored access policies of a table, queue or container, and the length of their ids. Spec: access-and-service 2.8.
pub const STORED_POLICIES_MAX: usize = 5;
pub const POLICY_ID_UNITS_MAX: usize = 64;
/// Days that logs, metrics or deleted blobs are kept. Spec: access-and-service 5.1, blob-operations 4.2.
pub const RETENTION_DAYS_MAX: u16 = 365;
/// CORS rules of a service, their text in total, and the items of each list. Spec: access-and-service 4.1.
pub const CORS_RULES_MAX: usize = 5;
pub const CORS_TEXT_BYTES_MAX: usize = 2048;
pub const CORS_ITEMS_MAX: usize = 64;
pub const CORS_PREFIXES_MAX: usize = 2;
pub const CORS_ITEM_BYTES_MAX: usize = 256;
