//! The memory that requests may hold. `store` counts it, because engines and pages take part of it.

pub use store::{AccountMemory, FREE_BYTES, MemoryShare, RequestMemory as Memory};
