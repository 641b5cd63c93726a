#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

mod ground;
mod look_ups;
mod second_service;
mod toy;
