//! The names of the Table protocol: headers, query options, media types, properties. Those of all services are re-exported.

use common::ServiceKind;

pub use protocol::names::*;

pub const X_HTTP_METHOD: &str = "x-http-method";
pub const DATA_SERVICE_VERSION: &str = "dataserviceversion";
pub const MAX_DATA_SERVICE_VERSION: &str = "maxdataserviceversion";
pub const DATA_SERVICE_ID: &str = "dataserviceid";
pub const PREFER: &str = "prefer";
pub const PREFERENCE_APPLIED: &str = "preference-applied";
/// A request header, with any value: the answer then says how many entities were examined. Partita's own.
pub const X_PARTITA_EXAMINED: &str = "x-partita-examined";
/// A request header; its value is 1. The answer to a query then says what was read, and what that takes on Azure.
/// Partita's own.
pub const X_PARTITA_EXPLAIN: &str = "x-partita-explain";
/// A request header: a query that examines more entities than this for a page is refused. Partita's own.
pub const X_PARTITA_MAX_EXAMINED: &str = "x-partita-max-examined";
pub const NEXT_PARTITION_KEY_HEADER: &str = "x-ms-continuation-nextpartitionkey";
pub const NEXT_ROW_KEY_HEADER: &str = "x-ms-continuation-nextrowkey";
pub const NEXT_TABLE_NAME_HEADER: &str = "x-ms-continuation-nexttablename";

pub const FILTER: &str = "$filter";
pub const SELECT: &str = "$select";
pub const TOP: &str = "$top";
pub const FORMAT: &str = "$format";
pub const NEXT_PARTITION_KEY: &str = "NextPartitionKey";
pub const NEXT_ROW_KEY: &str = "NextRowKey";
pub const NEXT_TABLE_NAME: &str = "NextTableName";

pub const PARTITION_KEY: &str = "PartitionKey";
pub const ROW_KEY: &str = "RowKey";
pub const TIMESTAMP: &str = "Timestamp";
pub const TABLE_NAME: &str = "TableName";
/// The set of tables, in URLs, links and types.
pub const TABLES: &str = "Tables";
pub const BATCH: &str = "$batch";

pub const RETURN_CONTENT: &str = "return-content";
pub const RETURN_NO_CONTENT: &str = "return-no-content";

/// The service's name in `Server`.
pub const SERVER: &str = ServiceKind::Table.server();
