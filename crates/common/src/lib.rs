//! What the Table, Queue and Blob services share: account names, times, GUIDs, versions, limits and refusals.
//!
//! No I/O and no HTTP. A value of these types is valid once built.

mod account_name;
mod datetime;
mod guid;
pub mod limits;
mod parse_error;
mod refusal;
#[cfg(feature = "serde")]
pub mod serde;
mod service_kind;
mod version;

pub use account_name::AccountName;
pub use datetime::DateTime;
pub use guid::Guid;
pub use parse_error::ParseValueError;
pub use refusal::Refusal;
pub use service_kind::ServiceKind;
pub use version::Version;
