//! Runs clients against real servers, and records everything they were told.

mod client;
mod exchange;
mod killer;
mod round;
mod run;
mod server;

pub use run::{Plan, Summary, Target, run};
pub use server::Server;
