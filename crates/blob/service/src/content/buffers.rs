//! Buffers for chunks, used again and again. A new one for each mebibyte of an upload would be new memory each time, which the
//! system clears and maps page by page: that took a quarter of the time of an upload.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use store::CHUNK_BYTES_MAX;

/// Buffers that are kept while nobody needs them: those of four uploads.
const KEPT_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<BytesMut>>);

impl Buffers {
    /// An empty buffer with room for a chunk.
    pub fn take(&self) -> BytesMut {
        self.kept().pop().unwrap_or_else(|| BytesMut::with_capacity(CHUNK_BYTES_MAX))
    }

    /// Takes the buffer of a chunk back, if nobody else has it.
    pub fn give_back(&self, chunk: Bytes) {
        let Ok(mut buffer) = chunk.try_into_mut() else { return };
        buffer.clear();
        let mut kept = self.kept();
        if buffer.capacity() >= CHUNK_BYTES_MAX && kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<BytesMut>> {
        // A list of buffers is whole at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(buffers: &Buffers) -> usize {
        buffers.kept().len()
    }

    #[test]
    fn the_buffer_of_a_chunk_is_used_again() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        let place = buffer.as_ptr();
        buffer.extend_from_slice(&[7; CHUNK_BYTES_MAX]);
        let chunk = buffer.freeze();
        let written = chunk.clone();
        drop(written);
        buffers.give_back(chunk);
        let again = buffers.take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        assert!(again.capacity() >= CHUNK_BYTES_MAX);
    }

    #[test]
    fn what_somebody_else_has_or_is_too_short_is_not_kept() {
        let buffers = Buffers::default();
        let chunk = buffers.take().freeze();
        buffers.give_back(Bytes::from(vec![1; 100]));
        let mut long = buffers.take();
        long.extend_from_slice(b"chunk");
        let long = long.freeze();
        let reader = long.clone();
        buffers.give_back(long);
        assert_eq!((kept(&buffers), &reader[..]), (0, &b"chunk"[..]));
        drop(chunk);
    }

    #[test]
    fn only_some_are_kept() {
        let buffers = Buffers::default();
        let taken: Vec<BytesMut> = (0..KEPT_MAX + 3).map(|_| buffers.take()).collect();
        for mut buffer in taken {
            buffer.extend_from_slice(b"c");
            buffers.give_back(buffer.freeze());
        }
        assert_eq!(kept(&buffers), KEPT_MAX);
    }
}
