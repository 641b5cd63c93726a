//! All tests of this folder in one program, because each program takes long to link.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod near_documents;
mod recordings;
