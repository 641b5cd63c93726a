//! Every limit of the Table service, once, with where it comes from. Those that all services share are in `common`.
//!
//! "Units" are UTF-16 code units: the service keeps text as UTF-16 and counts that way.

use std::time::Duration;

pub use common::limits::*;

/// Properties of one entity besides PartitionKey, RowKey and Timestamp. Spec: table-operations 3.5.
pub const CUSTOM_PROPERTIES_MAX: usize = 252;
/// Members of one entity's body: keys, properties, nulls and annotations. Not a service figure: a body of only names would
/// take many times its size in memory before its properties are counted.
pub const BODY_MEMBERS_MAX: usize = 2048;
/// System properties every entity has.
pub const SYSTEM_PROPERTIES: usize = 3;
/// Property name. Spec: 3.5.
pub const PROPERTY_NAME_UNITS_MAX: usize = 255;
/// One String or Binary value. Spec: 3.5.
pub const PROPERTY_VALUE_BYTES_MAX: usize = 64 * 1024;
/// One key: 1 KiB of UTF-16. Spec: 3.4 and open question 5.
pub const KEY_UNITS_MAX: usize = 512;
/// One stored key of any service. Not a service figure: the name of a blob has up to 1,024 units, its stored form up to two
/// units for each.
pub const STORED_KEY_UNITS_MAX: usize = 4096;
/// One entity by the storage team's size formula. Spec: 3.5.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// One request body, a batch included. Spec: 3.5.
pub const REQUEST_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Operations in one entity group transaction. Spec: 6.1.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Table name length. Spec: 2.5.
pub const TABLE_NAME_MIN: usize = 3;
pub const TABLE_NAME_MAX: usize = 63;
/// Entities or tables in one page. Spec: 5.8.
pub const PAGE_ENTITIES_MAX: usize = 1000;
/// How long one query may run before it answers with what it has and a continuation. Spec: 5.8.
pub const QUERY_TIME_MAX: Duration = Duration::from_secs(5);
/// Stored bytes collected for one page. Not a service figure: a page of 1,000 entities of 1 MiB would be
/// a gigabyte, and the service too cuts pages by size.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes written for one page. Not a service figure: when it is reached, the page ends with the current entity, so that
/// values that are short in the store and long in an answer can't make a page much larger. Text without escapes stays below
/// it.
pub const PAGE_WRITTEN_BYTES_MAX: usize = 2 * PAGE_BYTES_MAX;
/// Names in one `$select`. Spec: 5.6.
pub const SELECT_NAMES_MAX: usize = 255;
/// Nesting of a `$filter`. Not a service figure: bounds the parser's stack.
pub const FILTER_DEPTH_MAX: usize = 256;

const _: () = assert!(BATCH_OPERATIONS_MAX <= u8::MAX as usize); // an index travels as u8
const _: () = assert!(ENTITY_BYTES_MAX <= PAGE_BYTES_MAX); // one entity always fits into a page
const _: () = assert!(ENTITY_BYTES_MAX <= REQUEST_BODY_BYTES_MAX);
