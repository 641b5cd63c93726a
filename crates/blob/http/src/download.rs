//! Content on its way out: each piece holds its share of the memory for requests until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use blob_service::BlobContent;
use bytes::Bytes;
use front::{AccountMemory, BrokenStream, held_bytes};
use futures_core::Stream;

pub struct Outgoing {
    content: BlobContent,
    memory: AccountMemory,
    request_id: String,
}

impl Outgoing {
    pub fn new(content: BlobContent, memory: AccountMemory, request_id: &str) -> Self {
        Self { content, memory, request_id: request_id.to_owned() }
    }
}

impl Stream for Outgoing {
    type Item = Result<Bytes, BrokenStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match std::task::ready!(self.content.as_mut().poll_next(context)) {
            None => Poll::Ready(None),
            Some(Ok(piece)) => {
                let mut held = self.memory.nothing();
                // It is there already. If memory is short, later requests are refused, and this answer goes on.
                held.grow_anyway(piece.len());
                Poll::Ready(Some(Ok(held_bytes(piece, held))))
            }
            Some(Err(fault)) => {
                // The client has the status already; the connection is closed.
                tracing::error!(request_id = self.request_id, kind = %fault.kind(), %fault, "a download broke off");
                Poll::Ready(Some(Err(BrokenStream(Box::new(fault)))))
            }
        }
    }
}
