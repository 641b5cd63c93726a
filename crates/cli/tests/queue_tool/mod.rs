//! `partita queue` with the real binary: its commands, and exports and imports that lose nothing when they are killed.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod commands;
mod export;
mod import;
mod kit;
