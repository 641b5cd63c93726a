//! The tests of this folder in one program: each program more is linked for long.

mod python;
mod service;
#[path = "../../client/tests/support/mod.rs"]
mod support;
