//! Runs clients against real servers, and records everything they were told.

mod blob_exchange;
mod blob_run;
mod client;
mod exchange;
mod killer;
mod lease_round;
mod queue_exchange;
mod queue_round;
mod queue_run;
mod round;
mod run;
mod server;
mod stage;
mod totals;
mod wire;

pub use blob_run::{BlobPlan, BlobSummary, run_blobs};
pub use queue_run::{QueuePlan, QueueSummary, run_queues};
pub use run::{Plan, Summary, run};
pub use server::Server;
pub use stage::Target;
pub use totals::{RunPlan, Totals};
