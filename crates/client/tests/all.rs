//! The tests of this folder in one program: each program more is linked for long. `kills` stays apart, since it starts itself.

mod encryption_python;
mod indexes;
mod partita;
mod patterns;
mod queue;
mod retries;
mod support;
mod surface;
