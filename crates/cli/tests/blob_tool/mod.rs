//! `partita blob` with the real binary: its commands, and containers that go to folders of files and back.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod commands;
mod folders;
mod kit;
