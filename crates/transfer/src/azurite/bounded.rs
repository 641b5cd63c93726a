//! JSON that somebody else may have written, read with bounds: on how deep it is, and on how long a part is that has to be
//! kept in memory.

use std::cell::Cell;
use std::io::{self, Read};

/// Deeper than anything that Azurite writes.
const DEPTH_MAX: u32 = 100;

/// What may be read before the next call of one of its functions.
#[derive(Debug)]
pub struct Bounds {
    rest: Cell<u64>,
    part_bytes_max: u64,
}

impl Bounds {
    pub fn new(part_bytes_max: u64) -> Self {
        Self { rest: Cell::new(part_bytes_max), part_bytes_max }
    }

    /// A part begins that is kept in memory.
    pub fn begin_part(&self) {
        self.rest.set(self.part_bytes_max);
    }

    /// What follows is only skipped.
    pub fn begin_skipped(&self) {
        self.rest.set(u64::MAX);
    }
}

/// A reader of JSON that fails where the bounds end.
#[derive(Debug)]
pub struct Bounded<'a, R> {
    inner: R,
    bounds: &'a Bounds,
    depth: u32,
    in_text: bool,
    /// The character before was a backslash.
    escaped: bool,
}

impl<'a, R: Read> Bounded<'a, R> {
    pub fn new(inner: R, bounds: &'a Bounds) -> Self {
        Self { inner, bounds, depth: 0, in_text: false, escaped: false }
    }

    /// Only the depth: whether it is JSON at all is for the parser to say.
    fn follow(&mut self, byte: u8) {
        match (self.in_text, byte) {
            (true, _) if self.escaped => self.escaped = false,
            (true, b'\\') => self.escaped = true,
            (_, b'"') => self.in_text = !self.in_text,
            (false, b'[' | b'{') => self.depth += 1,
            (false, b']' | b'}') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for byte in buffer.iter().take(read) {
            self.follow(*byte);
            if self.depth > DEPTH_MAX {
                return Err(io::Error::other(format!("it is nested more than {DEPTH_MAX} levels deep")));
            }
        }
        match self.bounds.rest.get().checked_sub(read as u64) {
            Some(rest) => {
                self.bounds.rest.set(rest);
                Ok(read)
            }
            None => {
                let most = self.bounds.part_bytes_max;
                Err(io::Error::other(format!("a record or a name has more than {most} bytes")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, most: u64) -> Result<(), String> {
        let bounds = Bounds::new(most);
        let mut reader = Bounded::new(text.as_bytes(), &bounds);
        // Byte by byte, as the parser reads.
        for expected in text.bytes() {
            let mut byte = [0];
            reader.read_exact(&mut byte).map_err(|error| error.to_string())?;
            assert_eq!(byte, [expected]);
        }
        Ok(())
    }

    #[test]
    fn depth_is_counted_outside_of_text() {
        let deep = |depth: usize| "[{".repeat(depth / 2) + &"}]".repeat(depth / 2);
        assert!(read(&deep(100), 1000).is_ok());
        assert!(read(&deep(102), 1000).unwrap_err().contains("nested"));
        let in_text = format!(r#"["\\\"{}"]"#, "[".repeat(200));
        assert!(read(&in_text, 1000).is_ok());
        assert!(read(&format!(r#"["\\"{}"#, "[".repeat(200)), 1000).is_err(), "the text has ended");
    }

    #[test]
    fn a_part_has_a_longest_length() {
        assert!(read("12345", 5).is_ok());
        assert!(read("123456", 5).unwrap_err().contains("more than 5 bytes"));
        let bounds = Bounds::new(3);
        let mut reader = Bounded::new(&b"abcdefghij"[..], &bounds);
        let mut next = |count: usize| reader.read_exact(&mut vec![0; count]);
        assert!(next(3).is_ok());
        bounds.begin_part();
        assert!(next(3).is_ok());
        bounds.begin_skipped();
        assert!(next(4).is_ok());
    }
}
