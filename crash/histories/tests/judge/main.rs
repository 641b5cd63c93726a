//! The judge, with histories whose verdict is known.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod every_order;
mod faults;
mod handmade;
mod queues;
mod simulated;
mod simulator;
