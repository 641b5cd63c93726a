//! All tests of this folder in one program, because each program takes long to link.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod entities;
mod errors;
mod group;
mod kit;
mod query;
mod tables;
mod throttling;
