//! The tests of this folder in one program, because every test program takes long to link.

mod blob_access;
mod blob_retries;
mod blobs;
mod console_code;
mod partita;
mod queue_access;
mod queues;
mod retries;
mod support;
mod surface;
