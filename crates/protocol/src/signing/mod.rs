//! Strings to sign, and their signatures. The client signs and the server verifies with the same code.

pub mod jwt;
mod key;
pub mod sas;
pub mod shared_key;

pub use key::AccountKey;
