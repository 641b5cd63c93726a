//! What the Table, Queue and Blob services all talk about: account names, times, GUIDs, versions, limits, refusals, what
//! account tokens permit, throttling and hot partitions.
//!
//! No I/O and no HTTP. A value of these types is valid once built.

mod account_grant;
mod account_name;
mod datetime;
mod guid;
pub mod hot_partitions;
pub mod keyed_hash;
pub mod limits;
mod parse_error;
mod refusal;
#[cfg(feature = "serde")]
pub mod serde;
mod service_kind;
pub mod space_saving;
pub mod throttle;
mod version;
pub mod xml_character;

pub use account_grant::AccountGrant;
pub use account_name::AccountName;
pub use datetime::DateTime;
pub use guid::Guid;
pub use parse_error::ParseValueError;
pub use refusal::Refusal;
pub use service_kind::ServiceKind;
pub use version::Version;
