//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "tests: what is unwrapped is what is asserted")]

mod containers;
mod kit;
mod oracle;
mod walk;
