//! Lines of request logs, from the end of their request to the store that keeps them.
//!
//! Lines gather in memory, and go to the store every second. Like the service's, the log is best-effort: it never delays a
//! request, and lines that come faster than the store takes them are counted and left out.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::log_store::{LogFacts, LogHour, LogLines, LogStore};

/// Bytes of all lines that are not stored yet. The memory for them can be twice as much.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Of one hour of one service of an account, besides those that are being stored: so that one account leaves room for others.
const GATHERED_BYTES_MAX: usize = WAITING_BYTES_MAX / 4;
/// So many are stored at once, without waiting for the next second.
const STORED_AT_ONCE_BYTES: usize = GATHERED_BYTES_MAX / 2;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Accounts' services whose lines are stored at the same time.
const STORING_AT_ONCE: usize = 8;
/// How often the store is asked, a second after the other, to keep the same lines.
const ATTEMPTS_MAX: u32 = 600;

pub struct RequestLog {
    store: Arc<dyn LogStore>,
    gathered: Mutex<Gathered>,
    /// Something is to be stored at once.
    wake: Notify,
    left_out: AtomicU64,
}

#[derive(Default)]
struct Gathered {
    hours: HashMap<LogHour, Gathering>,
    /// Bytes of all lines, also of those that are being stored.
    bytes: usize,
    is_closed: bool,
}

struct Gathering {
    text: Vec<u8>,
    facts: LogFacts,
}

/// Lines that the store has refused so often.
struct Unstored {
    lines: LogLines,
    attempts: u32,
}

impl RequestLog {
    pub fn new(store: Arc<dyn LogStore>) -> Arc<Self> {
        let (gathered, wake, left_out) = (Mutex::default(), Notify::new(), AtomicU64::new(0));
        Arc::new(Self { store, gathered, wake, left_out })
    }

    pub fn store(&self) -> &dyn LogStore {
        &*self.store
    }

    pub fn log(&self, of: LogHour, line: &str, facts: LogFacts) {
        let bytes = line.len() + "\n".len();
        let mut gathered = self.gathered();
        let Gathered { hours, bytes: all, is_closed } = &mut *gathered;
        let present = hours.get(&of).map_or(0, |hour| hour.text.len());
        let fits = *all + bytes <= WAITING_BYTES_MAX && present + bytes <= GATHERED_BYTES_MAX;
        if *is_closed || !fits {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        *all += bytes;
        let hour = hours.entry(of).or_insert_with(|| Gathering { text: Vec::new(), facts });
        hour.facts = hour.facts.and(facts);
        hour.text.extend_from_slice(line.as_bytes());
        hour.text.push(b'\n');
        drop(gathered);
        if present < STORED_AT_ONCE_BYTES && present + bytes >= STORED_AT_ONCE_BYTES {
            self.wake.notify_one();
        }
    }

    /// Takes no more lines. `run` stores those that it has, and ends.
    pub fn close(&self) {
        self.gathered().is_closed = true;
        self.wake.notify_one();
    }

    /// Stores lines until the log is closed.
    pub async fn run(self: Arc<Self>) {
        let mut unstored = Vec::new();
        loop {
            // It is the same to it which of the two it was.
            let _ = tokio::time::timeout(FLUSH_INTERVAL, self.wake.notified()).await;
            let is_last = self.gathered().is_closed;
            unstored = self.flush(unstored).await;
            let missed = self.left_out.swap(0, Ordering::Relaxed);
            if missed > 0 {
                tracing::warn!(
                    missed,
                    "requests came faster than the request log can be stored; lines are missing"
                );
            }
            if is_last {
                return;
            }
        }
    }

    /// Stores what has gathered; returns what the store has refused.
    async fn flush(&self, mut waiting: Vec<Unstored>) -> Vec<Unstored> {
        // What goes on failing is told once.
        let mut is_told = !waiting.is_empty();
        // Lines of an hour keep their order.
        let taken = self.take_but(&waiting);
        waiting.extend(taken.into_iter().map(|lines| Unstored { lines, attempts: 0 }));
        let mut left = Vec::new();
        while !waiting.is_empty() {
            let some: Vec<Unstored> = waiting.drain(..waiting.len().min(STORING_AT_ONCE)).collect();
            let storing = some.into_iter().map(|unstored| {
                let (store, lines) = (self.store.clone(), unstored.lines.clone());
                (unstored, tokio::spawn(async move { store.append(lines).await }))
            });
            // All of them are under way before the first is waited for.
            for (unstored, stored) in storing.collect::<Vec<_>>() {
                let failed = match stored.await {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(panic) => Some(panic.to_string()),
                };
                let Unstored { lines, attempts } = unstored;
                match failed {
                    Some(error) if attempts + 1 < ATTEMPTS_MAX => {
                        if !std::mem::replace(&mut is_told, true) {
                            tracing::warn!(error, account = %lines.of.account, "can't store the request log yet");
                        }
                        left.push(Unstored { lines, attempts: attempts + 1 });
                    }
                    failed => {
                        self.gathered().bytes -= lines.text.len();
                        if failed.is_some() {
                            let count = lines.text.iter().filter(|byte| **byte == b'\n').count();
                            self.left_out.fetch_add(count as u64, Ordering::Relaxed);
                        }
                    }
                }
            }
        }
        left
    }

    /// What has gathered for hours of which nothing else waits.
    fn take_but(&self, waiting: &[Unstored]) -> Vec<LogLines> {
        let mut taken = Vec::new();
        self.gathered().hours.retain(|of, Gathering { text, facts }| {
            let stays = waiting.iter().any(|unstored| unstored.lines.of == *of);
            if !stays {
                let text = Bytes::from(std::mem::take(text));
                taken.push(LogLines { of: of.clone(), text, facts: *facts });
            }
            stays
        });
        taken
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        // Whole after every statement that can panic.
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestLog")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::LogStoreError;
    use crate::operation_info::Class;
    use async_trait::async_trait;
    use common::{AccountName, DateTime, ServiceKind};

    /// Keeps lines in memory, and refuses as often as it is told.
    #[derive(Default)]
    struct Shelf {
        logs: Mutex<HashMap<String, String>>,
        refusals: AtomicU64,
    }

    impl Shelf {
        fn text(&self, account: &str, folder: &str) -> String {
            self.logs.lock().unwrap().get(&format!("{account}/{folder}")).cloned().unwrap_or_default()
        }
    }

    #[async_trait]
    impl LogStore for Shelf {
        async fn prepare(&self, _: &AccountName) -> Result<(), LogStoreError> {
            Ok(())
        }

        async fn append(&self, lines: LogLines) -> Result<(), LogStoreError> {
            let less = |left: u64| left.checked_sub(1);
            if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                return Err("refused".into());
            }
            let name = format!("{}/{}", lines.of.account, lines.of.folder());
            let text = String::from_utf8(lines.text.to_vec()).unwrap();
            self.logs.lock().unwrap().entry(name).or_default().push_str(&text);
            Ok(())
        }

        async fn expire(&self, _: &LogHour) -> Result<u64, LogStoreError> {
            Ok(0)
        }
    }

    fn log(log: &RequestLog, account: &str, service: ServiceKind, time: &str, line: &str) {
        let time = DateTime::parse(time).unwrap();
        let of = LogHour::of(AccountName::parse(account).unwrap(), service, time);
        log.log(of, line, LogFacts::of(time, Class::Read, false));
    }

    #[tokio::test]
    async fn lines_go_to_the_log_of_their_hour_account_and_service() {
        let shelf = Arc::new(Shelf::default());
        let requests = RequestLog::new(shelf.clone());
        log(&requests, "one", ServiceKind::Table, "2026-01-02T03:59:59Z", "a");
        log(&requests, "one", ServiceKind::Table, "2026-01-02T03:10:00Z", "b");
        log(&requests, "one", ServiceKind::Table, "2026-01-02T04:00:00Z", "c");
        log(&requests, "two", ServiceKind::Table, "2026-01-02T04:00:00Z", "d");
        log(&requests, "two", ServiceKind::Queue, "2026-01-02T04:00:00Z", "e");
        requests.close();
        requests.clone().run().await;
        let check = |account, folder, expected: &str| assert_eq!(shelf.text(account, folder), expected);
        check("one", "table/2026/01/02/0300/", "a\nb\n");
        check("one", "table/2026/01/02/0400/", "c\n");
        check("two", "table/2026/01/02/0400/", "d\n");
        check("two", "queue/2026/01/02/0400/", "e\n");
        assert_eq!(requests.gathered().bytes, 0);
    }

    #[tokio::test]
    async fn lines_that_the_store_refuses_are_stored_later_in_their_order() {
        let shelf = Arc::new(Shelf::default());
        shelf.refusals.store(3, Ordering::SeqCst);
        let requests = RequestLog::new(shelf.clone());
        let mut unstored = Vec::new();
        for n in 0..5 {
            log(&requests, "one", ServiceKind::Table, "2026-01-02T03:00:00Z", &n.to_string());
            unstored = requests.flush(unstored).await;
            assert_eq!(unstored.len(), usize::from(n < 3), "{n}");
        }
        assert_eq!(shelf.text("one", "table/2026/01/02/0300/"), "0\n1\n2\n3\n4\n");
        assert_eq!((requests.gathered().bytes, requests.left_out.load(Ordering::SeqCst)), (0, 0));
    }

    #[tokio::test]
    async fn one_account_can_take_only_its_part_of_the_memory() {
        let shelf = Arc::new(Shelf::default());
        let requests = RequestLog::new(shelf.clone());
        let line = "x".repeat(64 * 1024 - 1);
        for _ in 0..WAITING_BYTES_MAX / line.len() {
            log(&requests, "one", ServiceKind::Table, "2026-01-02T03:00:00Z", &line);
        }
        assert_eq!(requests.gathered().bytes, GATHERED_BYTES_MAX);
        log(&requests, "two", ServiceKind::Table, "2026-01-02T03:00:00Z", "y");
        for hour in 4..20 {
            for _ in 0..GATHERED_BYTES_MAX / line.len() {
                let time = format!("2026-01-02T{hour:02}:00:00Z");
                log(&requests, "one", ServiceKind::Table, &time, &line);
            }
        }
        assert!(requests.gathered().bytes <= WAITING_BYTES_MAX);
        requests.close();
        requests.clone().run().await;
        assert_eq!(shelf.text("two", "table/2026/01/02/0300/"), "y\n");
        assert_eq!(requests.gathered().bytes, 0);
    }

    #[tokio::test]
    async fn lines_that_can_never_be_stored_are_given_up_and_counted() {
        let shelf = Arc::new(Shelf::default());
        shelf.refusals.store(u64::MAX, Ordering::SeqCst);
        let requests = RequestLog::new(shelf.clone());
        for line in ["lost", "lost too"] {
            log(&requests, "one", ServiceKind::Table, "2026-01-02T03:00:00Z", line);
        }
        let mut unstored = requests.flush(Vec::new()).await;
        for _ in 1..ATTEMPTS_MAX {
            assert_eq!(unstored.len(), 1);
            unstored = requests.flush(unstored).await;
        }
        assert!(unstored.is_empty());
        assert_eq!((requests.gathered().bytes, requests.left_out.load(Ordering::SeqCst)), (0, 2));
    }
}
