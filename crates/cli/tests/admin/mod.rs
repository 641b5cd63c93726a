//! The administration's listener: who gets an answer, what it answers, and what strangers can't do with it.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod api;
mod blobs;
mod bounds;
mod doors;
mod events;
mod forward;
pub mod kit;
mod sessions;
