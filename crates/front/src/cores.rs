//! The threads that serve connections. Each has a runtime of its own, and a connection stays on its thread: the thread
//! that reads a request is the one that answers it, and no other thread is woken for it.
//!
//! Connections are accepted in one place and given to the thread that has the fewest. If every thread accepted from a
//! socket of its own (SO_REUSEPORT), the system would spread connections by chance, and a second server could bind the
//! same port.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime};

/// Dropping it stops the threads, so it must not be dropped in async code.
#[derive(Debug)]
pub struct Cores {
    runtimes: Vec<Runtime>,
}

impl Cores {
    /// One thread for each processor.
    pub fn start() -> io::Result<Self> {
        let count = available_parallelism().map_or(1, usize::from);
        // Of the kind with several threads, because only those can hand their other work to another thread
        // (`block_in_place`).
        let start = |_| Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self { runtimes: (0..count).map(start).collect::<io::Result<_>>()? })
    }

    pub fn seats(&self) -> Seats {
        Seats::on(self.runtimes.iter().map(|runtime| runtime.handle().clone()))
    }
}

/// Where connections are served, and how many are on each thread.
#[derive(Clone, Debug)]
pub struct Seats(Arc<[Core]>);

#[derive(Debug)]
struct Core {
    handle: Handle,
    connections: Arc<AtomicUsize>,
}

/// A connection's place on a thread, until dropped.
#[derive(Debug)]
pub struct Seat {
    pub handle: Handle,
    connections: Arc<AtomicUsize>,
}

impl Seats {
    /// All connections on the runtime of the caller.
    pub fn here() -> Self {
        Self::on([Handle::current()])
    }

    fn on(handles: impl IntoIterator<Item = Handle>) -> Self {
        let core = |handle| Core { handle, connections: Arc::default() };
        Self(handles.into_iter().map(core).collect())
    }

    /// On the thread with the fewest connections.
    pub fn take(&self) -> Seat {
        let fewest = self.0.iter().min_by_key(|core| core.connections.load(Ordering::Relaxed));
        // `start` and `here` make at least one.
        let Core { handle, connections } = fewest.unwrap_or_else(|| unreachable!("no thread to serve on"));
        connections.fetch_add(1, Ordering::Relaxed);
        Seat { handle: handle.clone(), connections: connections.clone() }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_where_the_fewest_are() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let seats = Seats::on([runtime.handle().clone(), runtime.handle().clone()]);
        let counts =
            || seats.0.iter().map(|core| core.connections.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let mut taken: Vec<Seat> = (0..5).map(|_| seats.take()).collect();
        assert_eq!(counts(), [3, 2]);
        taken.retain(|seat| !Arc::ptr_eq(&seat.connections, &seats.0[0].connections));
        assert_eq!(counts(), [0, 2]);
        taken.extend((0..3).map(|_| seats.take()));
        assert_eq!(counts(), [3, 2]);
        drop(taken);
        assert_eq!(counts(), [0, 0]);
    }
}
