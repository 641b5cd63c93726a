//! All tests of this folder in one program, because each program takes long to link.

mod depth;
mod plan;
