//! The patterns on a real service, in one program, because every test program takes long to link. `kills` is a separate
//! program, because it starts itself.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod bulk;
mod daily;
mod indexes;
mod keys;
mod large;
mod place;
mod proxy;
mod queue;
mod queued_outbox;
mod series;
#[path = "../../client/tests/support/mod.rs"]
mod support;
mod wide;
