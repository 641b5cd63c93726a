//! The requests as they are answered, for people who watch. Without anybody who watches it costs one look at a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use common::ServiceKind;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use super::{Answered, Metrics};

/// Requests that a slow watcher may be behind. Those before them are lost to it, and counted.
const EVENTS: usize = 1024;
/// Of a path. So all events together hold less than a megabyte.
const PATH_BYTES_MAX: usize = 512;

/// A request and how it ended.
#[derive(Clone, Debug)]
pub struct RequestEvent {
    pub at: SystemTime,
    pub service: ServiceKind,
    pub operation: &'static str,
    pub method: String,
    /// Without the query, and only its beginning. It names keys of the account's entities.
    pub path: String,
    pub status: u16,
    /// Of a refusal.
    pub code: Option<&'static str>,
    pub elapsed: Duration,
    /// The account that it addresses, if there is such an account. The caller need not be it.
    pub account: Option<String>,
}

#[derive(Debug)]
pub struct TailSource {
    watchers: AtomicUsize,
    events: Sender<Arc<RequestEvent>>,
}

impl Default for TailSource {
    fn default() -> Self {
        Self { watchers: AtomicUsize::new(0), events: Sender::new(EVENTS) }
    }
}

impl TailSource {
    pub fn tell(&self, answered: &Answered<'_>) {
        if self.watchers.load(Ordering::Relaxed) == 0 {
            return;
        }
        // An error means that the last watcher has just gone.
        let _ = self.events.send(Arc::new(RequestEvent::of(answered)));
    }
}

impl RequestEvent {
    fn of(answered: &Answered<'_>) -> Self {
        let mut end = answered.path.len().min(PATH_BYTES_MAX);
        while !answered.path.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            at: SystemTime::now(),
            service: answered.service,
            operation: answered.info.name,
            method: answered.method.chars().take(16).collect(),
            path: answered.path[..end].to_owned(),
            status: answered.status,
            code: answered.code,
            elapsed: answered.elapsed,
            account: answered.account.map(str::to_owned),
        }
    }
}

/// One who watches, until dropped.
#[derive(Debug)]
pub struct Tail {
    metrics: Arc<Metrics>,
    events: Receiver<Arc<RequestEvent>>,
}

#[derive(Clone, Debug)]
pub enum TailItem {
    Request(Arc<RequestEvent>),
    /// So many were lost, because this watcher was too slow.
    Skipped(u64),
}

impl Tail {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        let events = metrics.tail.events.subscribe();
        metrics.tail.watchers.fetch_add(1, Ordering::Relaxed);
        Self { metrics, events }
    }

    /// Waits for the next one. It may be cancelled without a loss.
    pub async fn next(&mut self) -> TailItem {
        match self.events.recv().await {
            Ok(event) => TailItem::Request(event),
            Err(RecvError::Lagged(count)) => TailItem::Skipped(count),
            // `metrics` holds the sender.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.metrics.tail.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation_info::{Class, OperationInfo};
    use crate::pipeline::Services;

    static GET: OperationInfo = OperationInfo {
        name: "Get",
        class: Class::Read,
        writes: false,
        takes_body: false,
        shows_document: false,
    };

    fn answered(path: &str) -> Answered<'_> {
        Answered {
            service: ServiceKind::Table,
            info: &GET,
            status: 404,
            code: Some("TableNotFound"),
            elapsed: Duration::from_millis(2),
            method: "GET",
            path,
            account: Some("shop"),
        }
    }

    async fn path(tail: &mut Tail) -> String {
        match tail.next().await {
            TailItem::Request(event) => event.path.clone(),
            TailItem::Skipped(count) => format!("{count} skipped"),
        }
    }

    #[tokio::test]
    async fn a_watcher_sees_what_is_answered_while_it_watches() {
        let metrics = Metrics::new(&Services::new());
        metrics.count(&answered("/before"));
        let mut tail = metrics.tail();
        metrics.count(&answered("/shop/Books"));
        let TailItem::Request(event) = tail.next().await else { panic!("nothing was skipped") };
        assert_eq!((event.path.as_str(), event.account.as_deref()), ("/shop/Books", Some("shop")));
        assert_eq!((event.operation, event.status, event.code), ("Get", 404, Some("TableNotFound")));
        drop(tail);
        assert_eq!(metrics.tail.watchers.load(Ordering::Relaxed), 0);
        metrics.count(&answered("/nobody"));
        let mut tail = metrics.tail();
        metrics.count(&answered("/after"));
        assert_eq!(path(&mut tail).await, "/after");
    }

    #[tokio::test]
    async fn a_slow_watcher_loses_events_and_hears_how_many() {
        let metrics = Metrics::new(&Services::new());
        let mut tail = metrics.tail();
        for n in 0..EVENTS + 10 {
            metrics.count(&answered(&format!("/{n}")));
        }
        assert_eq!(path(&mut tail).await, "10 skipped");
        assert_eq!(path(&mut tail).await, "/10");
    }

    #[tokio::test]
    async fn a_long_path_is_cut_between_characters() {
        let metrics = Metrics::new(&Services::new());
        let mut tail = metrics.tail();
        metrics.count(&answered(&format!("/a{}", "é".repeat(40_000))));
        let shown = path(&mut tail).await;
        assert!(shown.len() <= PATH_BYTES_MAX && shown.ends_with('é'), "{}", shown.len());
    }
}
