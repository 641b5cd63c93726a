//! The stream of a connection, with the bounds that hyper does not have.
//!
//! hyper bounds the time and the size of a request's head. It does not bound how long an answer may stay unread, nor the
//! memory of all unfinished heads together.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::connections::Connection;
use crate::metrics::Metrics;

/// How many bytes of an answer a stalled peer must take to get the full time again.
const PROGRESS_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct GuardedStream<S> {
    stream: S,
    connection: Arc<Connection>,
    /// Counts its bytes, if anybody does.
    metrics: Option<Arc<Metrics>>,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Bytes written since it stalled last.
    written: usize,
}

impl<S> GuardedStream<S> {
    /// `patience`: how long the peer may stall.
    pub fn new(
        stream: S,
        connection: Arc<Connection>,
        metrics: Option<Arc<Metrics>>,
        patience: Duration,
    ) -> Self {
        Self { stream, connection, metrics, patience, stalled: None, written: 0 }
    }

    /// Called with the outcome of every write: fails if the peer has stalled for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
        bytes: impl Fn(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match &outcome {
            Poll::Ready(Ok(done)) => {
                let bytes = bytes(done);
                self.written += bytes;
                if let Some(metrics) = self.metrics.as_ref().filter(|_| bytes > 0) {
                    metrics.sent(bytes);
                }
                if self.written >= PROGRESS_BYTES {
                    self.stalled = None;
                }
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if self.stalled.is_none() {
                    self.written = 0;
                }
                let patience = self.patience;
                let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                ready!(stalled.as_mut().poll(context));
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the peer does not read the answer",
                )));
            }
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().len() - before;
        if let Some(metrics) = &self.metrics {
            metrics.received(bytes);
        }
        let has_room = self.connection.received(bytes);
        Poll::Ready(if has_room {
            Ok(())
        } else {
            Err(io::Error::other("no memory is left for the heads of requests"))
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, outcome, |written| *written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, outcome, |written| *written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        if outcome.is_ready() {
            // Everything has been handed to the network.
            self.stalled = None;
        }
        self.watch(context, outcome, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, outcome, |()| 0)
    }
}
