//! Collects spans for a while and sends them together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::RequestSpan;
use super::endpoint::{OtlpEndpoint, SendError};
use super::otlp::{self, Resource};
use crate::metrics::Metrics;

/// Spans in one message.
const MESSAGE_SPANS_MAX: usize = 512;
const SEND_TIME_MAX: Duration = Duration::from_secs(10);
/// Meanwhile the queue fills; what does not fit is dropped.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Exporter {
    pub endpoint: OtlpEndpoint,
    pub resource: Resource,
    pub delay: Duration,
    pub metrics: Arc<Metrics>,
}

impl Exporter {
    /// Runs until told to stop, then sends what is left.
    pub async fn run(self, mut queue: mpsc::Receiver<RequestSpan>, mut stopped: watch::Receiver<()>) {
        let mut spans = Vec::with_capacity(MESSAGE_SPANS_MAX);
        // The last attempt failed, and the log says so.
        let mut is_down = false;
        loop {
            tokio::select! {
                // An error, as nothing is ever sent: the sender was dropped.
                _ = stopped.changed() => queue.close(),
                () = collect(&mut queue, &mut spans, self.delay) => {}
            }
            // Closed and empty.
            if spans.is_empty() && queue.recv_many(&mut spans, MESSAGE_SPANS_MAX).await == 0 {
                return;
            }
            self.send(&mut spans, &mut is_down).await;
        }
    }

    async fn send(&self, spans: &mut Vec<RequestSpan>, is_down: &mut bool) {
        let message = Bytes::from(otlp::encode(&self.resource, spans));
        match self.post(message).await {
            Ok(()) => {
                self.metrics.spans_sent(spans.len());
                *is_down = false;
            }
            Err(error) => {
                self.metrics.spans_dropped(spans.len());
                if !*is_down {
                    let error = store::with_causes(&error);
                    tracing::warn!(endpoint = %self.endpoint, %error, "traces can't be sent; they are dropped until they can");
                }
                *is_down = true;
            }
        }
        spans.clear();
    }

    async fn post(&self, message: Bytes) -> Result<(), SendError> {
        let mut attempt = 1;
        loop {
            let posted = timeout(SEND_TIME_MAX, self.endpoint.post(message.clone())).await;
            match posted.unwrap_or(Err(SendError::Late)) {
                Err(error) if error.is_temporary() && attempt < ATTEMPTS => {
                    tokio::time::sleep(PAUSE * attempt).await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Waits for a span, and then for more until the time is over or they are a message. May be cancelled: spans stay in
/// the queue or are in `spans`.
async fn collect(queue: &mut mpsc::Receiver<RequestSpan>, spans: &mut Vec<RequestSpan>, delay: Duration) {
    if queue.recv_many(spans, MESSAGE_SPANS_MAX).await == 0 {
        return;
    }
    let deadline = Instant::now() + delay;
    while spans.len() < MESSAGE_SPANS_MAX {
        let room = MESSAGE_SPANS_MAX - spans.len();
        match timeout_at(deadline, queue.recv_many(spans, room)).await {
            Ok(more) if more > 0 => {}
            _ => return,
        }
    }
}
