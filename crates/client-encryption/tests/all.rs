//! The tests of this folder in one program, because every test program takes long to link.

mod python;
mod service;
#[path = "../../client/tests/support/mod.rs"]
mod support;
