//! The names that all services share: headers, query options, parts of addresses.

pub const X_MS_VERSION: &str = "x-ms-version";
pub const X_MS_DATE: &str = "x-ms-date";
pub const X_MS_REQUEST_ID: &str = "x-ms-request-id";
pub const X_MS_CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";
pub const X_MS_ERROR_CODE: &str = "x-ms-error-code";
pub const CONTENT_MD5: &str = "content-md5";

pub const TIMEOUT: &str = "timeout";
pub const COMP: &str = "comp";
pub const RESTYPE: &str = "restype";

/// The suffix of an account's name in the address of its read-only secondary.
pub const SECONDARY_SUFFIX: &str = "-secondary";
/// The `Server` header of the service's front end, which answers before any service sees the request.
pub const FRONT_END_SERVER: &str = "Microsoft-HTTPAPI/2.0";
