//! Shared access signatures and stored policies with the real binary: what each token may and may not do, alone and in
//! a batch. Tokens are signed here, not by the code under test.
//! `conformance/wire/{policies,service_properties,statistics}.http` tests what the owner sets and gets.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

pub mod kit;
mod permissions;
mod policies;
mod ranges;
mod tokens;
