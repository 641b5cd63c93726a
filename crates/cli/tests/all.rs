//! Every test of this folder in one program: each program more is linked for long. Those that stay apart are named
//! in Cargo.toml.

mod analytics;
mod authentication;
mod batch;
mod bearer;
mod bench;
mod bounded;
mod cluster;
mod commands;
mod confined;
mod crash;
mod formats;
mod hostile;
mod migrate;
mod model;
mod paging;
mod process;
mod properties;
mod queues;
mod refused_bodies;
mod rotation;
mod shared_access;
mod support;
mod throttling;
mod tls;
mod transfer;
mod upkeep;
mod wire;
