//! SIGTERM and Ctrl-C.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for a signal to stop, and returns its name. Signals count from the call on, not from the first poll.
pub fn stop_signal() -> impl Future<Output = &'static str> {
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = received(terminate) => "SIGTERM",
            () = received(interrupt) => "SIGINT",
        }
    }
}

async fn received(signal: io::Result<Signal>) {
    match signal {
        Ok(mut signal) => drop(signal.recv().await),
        // A signal without a handler ends the process, as it does by default.
        Err(_) => std::future::pending().await,
    }
}
