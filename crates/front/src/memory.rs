//! The memory that requests may hold. `store` counts it, because engines and pages take part of it.

pub use store::{FREE_BYTES, Held, RequestMemory as Memory};
