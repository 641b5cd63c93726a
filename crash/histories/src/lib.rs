//! Whether what concurrent clients were told can have happened, one operation after the other.
//!
//! `recorder` lets clients loose on a server and writes down what they asked and heard; `judge` looks for an order
//! that explains it all. The judge knows the protocol's promises and nothing of any server; it opens nothing.

pub mod choice;
pub mod history;
pub mod judge;
pub mod random;
pub mod recorder;
mod search;
mod shrink;
mod state;
mod step;
pub mod timeline;
mod versions;
