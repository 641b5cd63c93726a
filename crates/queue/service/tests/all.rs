//! The tests of this crate, in one program.

#![allow(clippy::unwrap_used, reason = "tests: what is unwrapped is what is asserted")]

mod costs;
mod counts;
mod kit;
mod messages;
mod model;
mod oracle;
mod queues;
mod side_by_side;
mod walk;
