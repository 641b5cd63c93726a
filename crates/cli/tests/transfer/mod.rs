//! `partita export` and `partita import` with the real binary: copies are exact, even after interruptions.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

pub mod gate;
mod kit;
mod refusals;
mod resuming;
mod round_trip;
