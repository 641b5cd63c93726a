//! The `$filter` language: text to tree, the answer of the tree for a row, and the key ranges of its rows.
//!
//! Pure: knows neither storage nor HTTP. `parse` reads the text, `eval` is the reference meaning, and `plan`
//! turns a tree into key ranges; scanning those and keeping what the residual accepts gives the rows `eval`
//! accepts over the whole table.

mod ast;
mod compiled;
mod error;
mod eval;
mod lexer;
mod literal;
mod parser;
mod plan;
mod region;
mod shape;
mod span;

pub use ast::{Comparison, Expr, Operator};
pub use compiled::CompiledFilter;
pub use error::FilterError;
pub use eval::{PropertyLookup, eval};
pub use parser::parse;
pub use plan::{Plan, plan};
pub use shape::{SHAPE_BYTES_MAX, shape};
