//! The words that all services share: headers, query options, addresses.

pub const X_MS_VERSION: &str = "x-ms-version";
pub const X_MS_DATE: &str = "x-ms-date";
pub const X_MS_REQUEST_ID: &str = "x-ms-request-id";
pub const X_MS_CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";
pub const X_MS_ERROR_CODE: &str = "x-ms-error-code";
pub const CONTENT_MD5: &str = "content-md5";

pub const TIMEOUT: &str = "timeout";
pub const COMP: &str = "comp";
pub const RESTYPE: &str = "restype";

/// Follows an account's name in the address of its read-only secondary.
pub const SECONDARY_SUFFIX: &str = "-secondary";
/// How the front end names itself in `Server`, before any service answers.
pub const FRONT_END_SERVER: &str = "Microsoft-HTTPAPI/2.0";
