//! The open connections, and which of them can be closed to make room.
//!
//! At the limit of connections, a new one takes the place of the one that has been idle for longest. A client that opens
//! thousands of idle connections does not keep others out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::memory::{FREE_BYTES, Memory, MemoryShare};

/// A connection that is idle for less is not closed: its next request may be on its way.
const IDLE_MIN: Duration = Duration::from_secs(1);
/// Idle, and the first to be closed.
const FIRST: u64 = 0;
/// Serving a request.
const BUSY: u64 = u64::MAX;
/// Idle, and told to close.
const CLOSING: u64 = u64::MAX - 1;

#[derive(Debug)]
pub struct Connections {
    born: Instant,
    memory: Arc<Memory>,
    open: Mutex<Registry>,
    /// How often a connection was told to close.
    made_room: AtomicU64,
}

#[derive(Debug, Default)]
struct Registry {
    next_id: u64,
    by_id: HashMap<u64, Arc<Connection>>,
}

#[derive(Debug)]
pub struct Connection {
    born: Instant,
    /// In microseconds since `born`, or `FIRST`, or `BUSY`, or `CLOSING`.
    idle_since: AtomicU64,
    spared: Notify,
    /// Whether the body of a refused request is being discarded.
    discarding: AtomicBool,
    /// Bytes received of a request's head, and the memory held for those above `FREE_BYTES`, until the request is
    /// answered.
    head_bytes: AtomicUsize,
    head: Mutex<MemoryShare>,
}

/// A connection's place among the open ones; removed when dropped.
#[derive(Debug)]
pub struct Registration {
    connections: Weak<Connections>,
    id: u64,
    pub connection: Arc<Connection>,
}

/// A request being served on a connection, until this is dropped.
#[derive(Debug)]
pub struct ActiveRequest(Arc<Connection>);

/// A body being discarded, until this is dropped. Once the request is answered, its connection is the first to be closed
/// to make room.
#[derive(Debug)]
pub struct BodyDiscard(Arc<Connection>);

/// A request whose body is awaited although nobody knows yet who sends it, until this is dropped. Meanwhile its connection
/// may be closed to make room, as an idle one.
#[derive(Debug)]
pub struct StrangersBody(Arc<Connection>);

impl Connections {
    pub fn new(memory: Arc<Memory>) -> Arc<Self> {
        Self::born_at(Instant::now(), memory)
    }

    fn born_at(born: Instant, memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self { born, memory, open: Mutex::default(), made_room: AtomicU64::new(0) })
    }

    pub fn register(self: &Arc<Self>) -> Registration {
        let connection = Connection {
            born: self.born,
            idle_since: AtomicU64::new(FIRST),
            spared: Notify::new(),
            discarding: AtomicBool::new(false),
            head_bytes: AtomicUsize::new(0),
            head: Mutex::new(self.memory.nothing()),
        };
        connection.rest();
        let connection = Arc::new(connection);
        let mut open = self.open.lock();
        let id = open.next_id;
        open.next_id += 1;
        open.by_id.insert(id, connection.clone());
        Registration { connections: Arc::downgrade(self), id, connection }
    }

    /// Tells the connection that has been idle for longest to close. False if none is idle.
    pub fn make_room(&self) -> bool {
        let open = self.open.lock();
        let idle = open.by_id.values().map(|connection| (connection.idle_since(), connection));
        let longest = idle.min_by_key(|(since, _)| *since);
        let limit = micros(self.born.elapsed().saturating_sub(IDLE_MIN));
        let told = match longest {
            Some((since, connection)) if since <= limit => connection.spare(since),
            _ => false,
        };
        self.made_room.fetch_add(u64::from(told), Ordering::Relaxed);
        told
    }

    /// How many there are, and how many of them are at work on a request.
    pub fn open_and_busy(&self) -> (usize, usize) {
        let open = self.open.lock();
        (open.by_id.len(), open.by_id.values().filter(|connection| !connection.is_idle()).count())
    }

    /// How many there have been.
    pub fn accepted(&self) -> u64 {
        self.open.lock().next_id
    }

    /// How often one was told to close to make room.
    pub fn made_room(&self) -> u64 {
        self.made_room.load(Ordering::Relaxed)
    }
}

impl Connection {
    /// The head of a request has been received.
    pub fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.idle_since.store(BUSY, Ordering::Relaxed);
        ActiveRequest(self.clone())
    }

    /// The rest of a refused request's body is being discarded.
    pub fn discard(self: &Arc<Self>) -> BodyDiscard {
        self.discarding.store(true, Ordering::SeqCst);
        BodyDiscard(self.clone())
    }

    /// The body of a request is awaited that anybody may have sent.
    pub fn await_stranger(self: &Arc<Self>) -> StrangersBody {
        self.rest();
        StrangersBody(self.clone())
    }

    /// Counts bytes of an unfinished head, and of a stranger's body; `RequestBody` counts those of a body. False if there is no memory for them.
    pub fn received(&self, bytes: usize) -> bool {
        if !self.is_idle() || self.is_discarding() {
            return true;
        }
        let before = self.head_bytes.fetch_add(bytes, Ordering::Relaxed);
        let free = FREE_BYTES.saturating_sub(before);
        bytes <= free || self.head.lock().grow(bytes - free)
    }

    pub fn is_idle(&self) -> bool {
        self.idle_since() != BUSY
    }

    /// Resolves when the connection must close to make room, but never during a request: one that began at the same
    /// moment is answered, and so is a stranger's whose body has just arrived. Poll it in the task in which requests begin.
    pub async fn spared(&self) {
        loop {
            self.spared.notified().await;
            if self.idle_since() == CLOSING {
                return;
            }
        }
    }

    /// Tells it to close, unless a request has begun since it was `seen` idle.
    fn spare(&self, seen: u64) -> bool {
        let told =
            self.idle_since.compare_exchange(seen, CLOSING, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if told {
            self.spared.notify_one();
        }
        told
    }

    fn idle_since(&self) -> u64 {
        self.idle_since.load(Ordering::Relaxed)
    }

    fn rest(&self) {
        self.idle_since.store(micros(self.born.elapsed()), Ordering::Relaxed);
    }

    fn is_discarding(&self) -> bool {
        self.discarding.load(Ordering::SeqCst)
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

impl ActiveRequest {
    pub fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if self.0.head_bytes.swap(0, Ordering::Relaxed) > FREE_BYTES {
            self.0.head.lock().give_back();
        }
        if self.0.is_discarding() {
            self.0.idle_since.store(FIRST, Ordering::SeqCst);
        }
        // The body may have ended between the two checks.
        if !self.0.is_discarding() {
            self.0.rest();
        }
    }
}

impl Drop for BodyDiscard {
    fn drop(&mut self) {
        self.0.discarding.store(false, Ordering::SeqCst);
        // Unless the answer is still being written, or the connection has been told to close.
        let now = micros(self.0.born.elapsed());
        let _ = self.0.idle_since.compare_exchange(FIRST, now, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Drop for StrangersBody {
    fn drop(&mut self) {
        self.0.idle_since.store(BUSY, Ordering::Relaxed);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(connections) = self.connections.upgrade() {
            connections.open.lock().by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_for(registration: &Registration, seconds: u64) {
        let since = registration.connection.born.elapsed().saturating_sub(Duration::from_secs(seconds));
        registration.connection.idle_since.store(micros(since), Ordering::Relaxed);
    }

    async fn is_spared(registration: &Registration) -> bool {
        tokio::time::timeout(Duration::from_millis(1), registration.connection.spared()).await.is_ok()
    }

    #[tokio::test]
    async fn the_one_idle_for_longest_makes_room_and_one_at_work_never_does() {
        let old =
            Instant::now().checked_sub(Duration::from_secs(60)).expect("the machine has been on for longer");
        let connections = Connections::born_at(old, Memory::new(0));
        let (new, longer, longest, busy) =
            (connections.register(), connections.register(), connections.register(), connections.register());
        idle_for(&longer, 5);
        idle_for(&longest, 50);
        idle_for(&busy, 55);
        let request = busy.connection.begin();
        assert!(connections.make_room() && is_spared(&longest).await);
        assert!(connections.make_room() && is_spared(&longer).await);
        assert!(!connections.make_room());
        assert_eq!(
            (connections.open_and_busy(), connections.accepted(), connections.made_room()),
            ((4, 1), 4, 2)
        );
        assert!(!is_spared(&new).await && !is_spared(&busy).await);
        drop(request);
        assert!(busy.connection.is_idle());
        drop((new, longer, longest, busy));
        assert!(connections.open.lock().by_id.is_empty());
    }

    #[tokio::test]
    async fn a_request_that_begins_just_then_is_not_cut_off() {
        let connections = Connections::new(Memory::new(0));
        let registration = connections.register();
        let seen = registration.connection.idle_since();
        let request = registration.connection.begin();
        assert!(!registration.connection.spare(seen), "seen idle, but no longer");
        drop(request);
        assert!(registration.connection.spare(registration.connection.idle_since()));
        let request = registration.connection.begin();
        assert!(!is_spared(&registration).await, "told, but a request came first");
        drop(request);
        assert!(
            registration.connection.spare(registration.connection.idle_since())
                && is_spared(&registration).await
        );
    }

    #[tokio::test]
    async fn a_body_that_is_thrown_away_keeps_nobody_out() {
        let old =
            Instant::now().checked_sub(Duration::from_secs(60)).expect("the machine has been on for longer");
        let connections = Connections::born_at(old, Memory::new(0));
        let (refused, idle) = (connections.register(), connections.register());
        idle_for(&idle, 50);
        let request = refused.connection.begin();
        assert!(connections.make_room() && is_spared(&idle).await, "a request is never cut off");
        let discarding = refused.connection.discard();
        assert!(!connections.make_room(), "the answer is being written");
        drop(request);
        assert!(refused.connection.received(1 << 20), "what is thrown away is not counted");
        assert!(connections.make_room() && is_spared(&refused).await);
        drop(discarding);
        assert!(refused.connection.is_idle(), "told to close, and stays so");

        let request = refused.connection.begin();
        drop(refused.connection.discard());
        assert!(!connections.make_room(), "the answer is being written");
        drop(request);
        assert!(!connections.make_room(), "idle since just now");

        let request = refused.connection.begin();
        let discarding = refused.connection.discard();
        drop(request);
        drop(discarding);
        assert!(!connections.make_room(), "idle since just now");
    }

    #[tokio::test]
    async fn a_strangers_body_keeps_nobody_out() {
        let old =
            Instant::now().checked_sub(Duration::from_secs(60)).expect("the machine has been on for longer");
        let connections = Connections::born_at(old, Memory::new(0));
        let registration = connections.register();
        let request = registration.connection.begin();
        let awaited = registration.connection.await_stranger();
        assert!(!connections.make_room(), "it may be on its way");
        idle_for(&registration, 5);
        assert!(connections.make_room() && is_spared(&registration).await);
        idle_for(&registration, 5);
        assert!(connections.make_room());
        drop(awaited);
        assert!(!is_spared(&registration).await, "told, but the body came first");
        assert!(!connections.make_room(), "a request is never cut off");
        drop(request);
        assert!(registration.connection.is_idle());
    }

    #[test]
    fn long_heads_share_what_memory_there_is_until_they_are_whole() {
        let connections = Connections::new(Memory::new(100));
        let (one, two) = (connections.register(), connections.register());
        assert!(one.connection.received(FREE_BYTES - 10) && one.connection.received(70));
        assert!(two.connection.received(FREE_BYTES) && !two.connection.received(41));
        let request = one.connection.begin();
        assert!(!two.connection.received(100), "a head is there until its request is answered");
        assert!(one.connection.received(1 << 20), "a body is not counted here");
        drop(request);
        assert!(two.connection.received(100));
        assert!(!one.connection.received(FREE_BYTES + 1));
        drop(two);
        assert!(one.connection.received(1));
    }
}
