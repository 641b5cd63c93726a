//! Clients at work on real servers, and everything they were told.

mod client;
mod exchange;
mod killer;
mod round;
mod run;
mod server;

pub use run::{Plan, Summary, Target, run};
pub use server::Server;
