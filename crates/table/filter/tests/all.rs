//! Every test of this folder in one program: each program more is linked for long.

mod depth;
mod plan;
