//! The protocol's words: headers, query options, media types, property names.

pub const X_MS_VERSION: &str = "x-ms-version";
pub const X_MS_DATE: &str = "x-ms-date";
pub const X_MS_REQUEST_ID: &str = "x-ms-request-id";
pub const X_MS_CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";
pub const X_MS_ERROR_CODE: &str = "x-ms-error-code";
pub const X_HTTP_METHOD: &str = "x-http-method";
pub const DATA_SERVICE_VERSION: &str = "dataserviceversion";
pub const MAX_DATA_SERVICE_VERSION: &str = "maxdataserviceversion";
pub const DATA_SERVICE_ID: &str = "dataserviceid";
pub const PREFER: &str = "prefer";
pub const PREFERENCE_APPLIED: &str = "preference-applied";
pub const CONTENT_MD5: &str = "content-md5";
/// Of a request, with any value: its answer shall say how many entities were looked at. Partita's own.
pub const X_PARTITA_EXAMINED: &str = "x-partita-examined";
pub const NEXT_PARTITION_KEY_HEADER: &str = "x-ms-continuation-nextpartitionkey";
pub const NEXT_ROW_KEY_HEADER: &str = "x-ms-continuation-nextrowkey";
pub const NEXT_TABLE_NAME_HEADER: &str = "x-ms-continuation-nexttablename";

pub const FILTER: &str = "$filter";
pub const SELECT: &str = "$select";
pub const TOP: &str = "$top";
pub const FORMAT: &str = "$format";
pub const TIMEOUT: &str = "timeout";
pub const NEXT_PARTITION_KEY: &str = "NextPartitionKey";
pub const NEXT_ROW_KEY: &str = "NextRowKey";
pub const NEXT_TABLE_NAME: &str = "NextTableName";
pub const COMP: &str = "comp";
pub const RESTYPE: &str = "restype";

pub const PARTITION_KEY: &str = "PartitionKey";
pub const ROW_KEY: &str = "RowKey";
pub const TIMESTAMP: &str = "Timestamp";
pub const TABLE_NAME: &str = "TableName";
/// The set of tables, as it is named in URLs, links and types.
pub const TABLES: &str = "Tables";
pub const BATCH: &str = "$batch";

pub const RETURN_CONTENT: &str = "return-content";
pub const RETURN_NO_CONTENT: &str = "return-no-content";

/// Follows an account's name in the address of its read-only secondary.
pub const SECONDARY_SUFFIX: &str = "-secondary";
/// How the service names itself in `Server`; some tools look for it.
pub const SERVER: &str = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0";
pub const FRONT_END_SERVER: &str = "Microsoft-HTTPAPI/2.0";
