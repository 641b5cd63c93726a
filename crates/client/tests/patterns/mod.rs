//! The patterns on a real service.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod bulk;
mod daily;
mod keys;
mod large;
mod place;
mod proxy;
mod series;
mod wide;
