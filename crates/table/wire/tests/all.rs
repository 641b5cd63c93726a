//! Every test of this folder in one program: each program more is linked for long.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod near_batches;
mod near_documents;
mod near_entities;
mod near_urls;
