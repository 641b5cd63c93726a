//! How much memory requests may hold of this process; `store` counts it, because engines and pages take part of it.

pub use store::{FREE_BYTES, MemoryShare, RequestMemory as Memory};
