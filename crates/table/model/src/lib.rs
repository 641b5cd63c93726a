//! What the Table service talks about: names, keys, values, entities, limits and refusals. What it shares with the other
//! services is in `common` and re-exported here.
//!
//! No I/O, no async, no JSON. A value of these types is valid once built; every other crate relies on it.

mod convert;
mod double;
mod entity;
mod etag;
mod key;
pub mod limits;
mod refusal;
#[cfg(feature = "serde")]
pub mod serde;
mod table_name;
mod unread;
mod value;

pub use common::{AccountName, DateTime, Guid, ParseValueError, ServiceKind};
pub use convert::ValueMismatch;
pub use double::{format_double, write_double};
pub use entity::{Entity, EntityKey, Properties, Property, PropertyNames, is_property_name};
pub use etag::{ETag, IfMatch};
pub use key::{Cut, Key, KeyFault, KeyRange, comparable_with_keys, is_too_long_for_a_key, ordinal_cmp};
pub use refusal::{KeyName, Refusal};
pub use table_name::TableName;
pub use unread::{UnreadName, UnreadProperties, UnreadValue};
pub use value::{EdmType, Value, ValueCow, ValueRef, utf16_units};
