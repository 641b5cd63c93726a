//! `partita export` and `partita import` against the real binary: what goes in comes out, whatever happens on the way.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod gate;
mod kit;
mod refusals;
mod resuming;
mod round_trip;
