//! Measures how much memory the server takes for one request, or for several at once: the peak of the process.
//!
//! Every request here is legal, and a token with few rights is enough for it. `SECURITY.md` states the bound; `guard`
//! checks it for every kind of request.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod guard;
mod kit;
mod latency;
mod places;
mod queries;
mod queues;
mod writes;
