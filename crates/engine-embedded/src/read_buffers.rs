//! Buffers for large chunks that are read, used again and again. New memory for each mebibyte would be cleared and mapped by the
//! system page by page, or be kept by every part of the allocator that has had one.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// What is shorter is taken from the allocator.
const BYTES_MIN: usize = 256 * 1024;
/// Buffers that are kept while nobody needs them: those of one download that reads ahead.
const KEPT_MAX: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct ReadBuffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// Read bytes, whose buffer is given back when nobody has them any more.
struct Lent {
    bytes: Vec<u8>,
    buffers: ReadBuffers,
}

impl ReadBuffers {
    /// An empty buffer with room for so many bytes.
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let kept = if bytes < BYTES_MIN { None } else { self.0.lock().pop() };
        kept.filter(|buffer| buffer.capacity() >= bytes).unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    /// What was read into a buffer.
    pub fn lend(&self, bytes: Vec<u8>) -> Bytes {
        match bytes.capacity() < BYTES_MIN {
            true => bytes.into(),
            false => Bytes::from_owner(Lent { bytes, buffers: self.clone() }),
        }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.bytes);
        buffer.clear();
        let mut kept = self.buffers.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(buffers: &ReadBuffers, bytes: usize) -> Bytes {
        let mut buffer = buffers.take(bytes);
        assert!(buffer.is_empty() && buffer.capacity() >= bytes);
        buffer.resize(bytes, 7);
        buffers.lend(buffer)
    }

    #[test]
    fn a_buffer_is_used_again_when_nobody_has_a_part_of_it() {
        let buffers = ReadBuffers::default();
        let read = filled(&buffers, BYTES_MIN);
        let (place, part) = (read.as_ptr(), read.slice(5..10));
        drop(read);
        let other = filled(&buffers, BYTES_MIN);
        assert!(other.as_ptr() != place && part == [7; 5][..]);
        drop(part);
        assert_eq!(filled(&buffers, BYTES_MIN).as_ptr(), place);
    }

    #[test]
    fn one_that_is_too_short_is_not_used() {
        let buffers = ReadBuffers::default();
        drop(filled(&buffers, BYTES_MIN));
        assert_eq!(filled(&buffers, 3 * BYTES_MIN).len(), 3 * BYTES_MIN);
    }

    #[test]
    fn only_some_are_kept_and_none_that_are_small() {
        let buffers = ReadBuffers::default();
        let read: Vec<Bytes> = (0..KEPT_MAX + 3).map(|_| filled(&buffers, BYTES_MIN)).collect();
        drop(read);
        assert_eq!(buffers.0.lock().len(), KEPT_MAX);
        let buffers = ReadBuffers::default();
        drop(filled(&buffers, BYTES_MIN / 2));
        assert!(buffers.0.lock().is_empty());
    }
}
