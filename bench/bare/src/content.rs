//! The content of a blob on its way to the client: fixed bytes from memory, or read from a file, the next piece while one is sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::task::JoinHandle;

use crate::answer::CONTENT;

/// What is read from a file at once.
const READ_AT_ONCE: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct Content {
    /// What the client has still to get.
    pub left: u64,
    file: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    file: Arc<File>,
    /// Where the piece after the one that is read now begins, and how many bytes are behind that.
    next: u64,
    left: u64,
    piece: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Content {
    pub fn memory(count: u64) -> Self {
        Self { left: count, file: None }
    }

    /// So many bytes of a file, which has them.
    pub fn file(file: File, start: u64, count: u64) -> Self {
        let mut reading = Reading { file: Arc::new(file), next: start, left: count, piece: None };
        reading.read_on();
        Self { left: count, file: Some(reading) }
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let bytes = match &mut self.file {
            None => Bytes::from_static(&CONTENT[..self.left.min(CONTENT.len() as u64) as usize]),
            Some(reading) => {
                let Some(piece) = &mut reading.piece else { return Poll::Ready(None) };
                let bytes = ready!(Pin::new(piece).poll(context)).map_err(io::Error::other).flatten();
                reading.read_on();
                match bytes {
                    Ok(bytes) => bytes,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
        };
        self.left -= bytes.len() as u64;
        Poll::Ready(Some(Ok(bytes)))
    }
}

impl Reading {
    fn read_on(&mut self) {
        let (start, count) = (self.next, self.left.min(READ_AT_ONCE));
        self.next += count;
        self.left -= count;
        let file = self.file.clone();
        self.piece = (count > 0).then(|| {
            tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; count as usize];
                file.read_exact_at(&mut piece, start)?;
                Ok(piece.into())
            })
        });
    }
}
