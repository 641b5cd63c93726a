//! Shared access signatures and stored policies against the real binary: what each token may do and what it may
//! not, alone and within a batch. Tokens are signed here, not by the code under test.
//! What the owner sets and gets is in `conformance/wire/{policies,service_properties,statistics}.http`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod kit;
mod permissions;
mod policies;
mod ranges;
mod tokens;
