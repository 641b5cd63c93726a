//! Histories of queues: what concurrent producers and consumers were told, and whether it is possible.
//!
//! Nothing is promised across messages, so each message is judged alone: `message` collects what was said of it, `search`
//! looks for an order of that, and `judge` names the promise that was broken.

pub mod choice;
pub mod history;
pub mod judge;
mod message;
mod search;
pub mod timeline;
