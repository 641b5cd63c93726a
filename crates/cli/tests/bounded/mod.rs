//! What one request, or a few at once, may take of the server: the process's peak memory is measured, not guessed.
//!
//! Every form here is legal for whoever holds a token of few rights. `SECURITY.md` states the bound; `guard` holds the
//! server to it for every kind of request together.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod guard;
mod kit;
mod latency;
mod places;
mod queries;
mod writes;
