//! The tests of this folder in one program: each program more is linked for long.

mod partita;
mod retries;
mod support;
mod surface;
