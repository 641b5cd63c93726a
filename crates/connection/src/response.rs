//! Reads HTTP/1.1 answers from a buffer that is reused.
//!
//! Knows no sockets: bytes come in through `space` and `received`, in pieces of any size. The chunks of a body are joined
//! in the buffer; a body of one chunk, as Partita sends them, is not moved. Content of any length is passed on as it comes,
//! if `stream` has said so.

use std::ops::Range;

use thiserror::Error;

/// `httparse` needs a bound. No Table service sends so many headers.
const HEADERS_MAX: usize = 64;
const INITIAL_BYTES: usize = 16 * 1024;
/// Free space before every read, so that no read is tiny.
const SPACE_MIN: usize = 4 * 1024;
/// The service's answers have 4 MiB at most; a length far above that is an error.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Of content that is passed on, the most that the buffer holds.
const STREAMED_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub struct ResponseReader {
    buffer: Vec<u8>,
    /// Received so far.
    filled: usize,
    /// Parsed so far.
    at: usize,
    stage: Stage,
    head: Head,
    body: Range<usize>,
    /// The content of a good answer is passed on, not joined.
    streams: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Sized { missing: usize },
    ChunkSize,
    Chunk { missing: usize },
    ChunkEnd,
    Trailer,
    UntilClose,
    Complete,
}

/// The head of an answer. Ranges are positions in the buffer: nothing is copied.
#[derive(Clone, Debug, Default)]
struct Head {
    status: u16,
    closes: bool,
    /// The status line and every header.
    text: Range<usize>,
    etag: Option<Range<usize>>,
    error_code: Option<Range<usize>>,
    next_partition_key: Option<Range<usize>>,
    next_row_key: Option<Range<usize>>,
}

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    pub status: u16,
    /// The server closes the connection after this answer.
    pub closes: bool,
    pub etag: Option<&'a [u8]>,
    pub error_code: Option<&'a [u8]>,
    pub next_partition_key: Option<&'a [u8]>,
    pub next_row_key: Option<&'a [u8]>,
    /// The status line and every header, as received.
    pub head: &'a [u8],
    pub body: &'a [u8],
}

/// Why the bytes from a server are not an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResponseError {
    #[error("this is not an HTTP answer: {0}; is it an HTTP server, and http or https as it expects?")]
    NotHttp(#[source] httparse::Error),
    #[error("Content-Length is {0:?}, not a number")]
    ContentLength(String),
    #[error("an answer of {bytes} bytes is longer than any of the service")]
    BodyTooLong { bytes: usize },
    #[error("the size of a chunk is {0:?}, not a hexadecimal number")]
    ChunkSize(String),
    #[error("a chunk is longer than its size says")]
    ChunkEnd,
    #[error("the server closed the connection without an answer")]
    ClosedBefore,
    #[error("the server closed the connection in the middle of an answer")]
    ClosedWithin,
}

impl<'a> Response<'a> {
    /// The value of any header; the frequent ones have fields.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
        })
    }
}

impl Default for ResponseReader {
    fn default() -> Self {
        Self {
            buffer: vec![0; INITIAL_BYTES],
            filled: 0,
            at: 0,
            stage: Stage::Head,
            head: Head::default(),
            body: 0..0,
            streams: false,
        }
    }
}

impl ResponseReader {
    /// Whether the content of the next answer is passed on by `drain`. An error's body is joined as always.
    pub fn stream(&mut self, streams: bool) {
        self.streams = streams;
    }

    /// Where the caller puts the next bytes.
    pub fn space(&mut self) -> &mut [u8] {
        let (wanted, needed) = match self.stage {
            Stage::Sized { missing } | Stage::Chunk { missing } if self.passes_on() => {
                let some = missing.min(STREAMED_BYTES) + SPACE_MIN;
                (some, some)
            }
            Stage::Sized { missing } | Stage::Chunk { missing } => (missing + SPACE_MIN, SPACE_MIN),
            _ => (SPACE_MIN, SPACE_MIN),
        };
        if self.buffer.len() - self.filled < needed {
            self.buffer.resize((self.filled + wanted).next_power_of_two(), 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// The caller has put `count` bytes into `space`.
    pub fn received(&mut self, count: usize) {
        self.filled += count;
    }

    /// No byte of an answer has been received.
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Head && self.at == self.filled
    }

    /// Parses the received bytes; true once the answer is whole.
    pub fn advance(&mut self) -> Result<bool, ResponseError> {
        loop {
            let before = (self.stage, self.at);
            match self.stage {
                Stage::Head => self.read_head()?,
                Stage::Sized { missing } => {
                    let left = self.take(missing);
                    self.stage = if left == 0 { Stage::Complete } else { Stage::Sized { missing: left } };
                }
                Stage::ChunkSize => self.read_chunk_size()?,
                Stage::Chunk { missing } => {
                    let left = self.take(missing);
                    self.stage = if left == 0 { Stage::ChunkEnd } else { Stage::Chunk { missing: left } };
                }
                Stage::ChunkEnd => {
                    if let Some(line) = self.line() {
                        if !line.is_empty() {
                            return Err(ResponseError::ChunkEnd);
                        }
                        self.stage = Stage::ChunkSize;
                    }
                }
                Stage::Trailer => {
                    if let Some(line) = self.line() {
                        self.stage = if line.is_empty() { Stage::Complete } else { Stage::Trailer };
                    }
                }
                Stage::UntilClose => {
                    self.take(self.filled - self.at);
                }
                Stage::Complete => return Ok(true),
            }
            if before == (self.stage, self.at) {
                return Ok(false);
            }
        }
    }

    /// Passes on the content that has been received, and forgets it.
    pub fn drain(&mut self, sink: &mut dyn FnMut(&[u8])) {
        if self.stage == Stage::Head || !self.passes_on() {
            return;
        }
        if !self.body.is_empty() {
            sink(&self.buffer[self.body.clone()]);
        }
        // Only the head stays, and what has not been parsed.
        let end = self.head.text.end;
        self.buffer.copy_within(self.at..self.filled, end);
        self.filled -= self.at - end;
        self.at = end;
        self.body = end..end;
    }

    fn passes_on(&self) -> bool {
        self.streams && (200..300).contains(&self.head.status)
    }

    /// The server has closed the connection. This ends an answer without a length; any other answer is cut off.
    pub fn closed(&mut self) -> Result<(), ResponseError> {
        match self.stage {
            Stage::UntilClose => {
                self.stage = Stage::Complete;
                Ok(())
            }
            _ if self.is_idle() => Err(ResponseError::ClosedBefore),
            _ => Err(ResponseError::ClosedWithin),
        }
    }

    /// The answer that `advance` found whole.
    pub fn response(&self) -> Response<'_> {
        let text = |range: &Option<Range<usize>>| range.clone().map(|range| &self.buffer[range]);
        Response {
            status: self.head.status,
            closes: self.head.closes,
            etag: text(&self.head.etag),
            error_code: text(&self.head.error_code),
            next_partition_key: text(&self.head.next_partition_key),
            next_row_key: text(&self.head.next_row_key),
            head: &self.buffer[self.head.text.clone()],
            body: &self.buffer[self.body.clone()],
        }
    }

    /// Forgets the answer. Bytes after it begin the next one.
    pub fn next(&mut self) {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        self.stage = Stage::Head;
    }

    /// Forgets everything, for a new connection.
    pub fn reset(&mut self) {
        self.at = self.filled;
        self.next();
    }

    fn read_head(&mut self) -> Result<(), ResponseError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Response::new(&mut headers);
        let bytes = &self.buffer[self.at..self.filled];
        let length = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(()),
            Err(error) => return Err(ResponseError::NotHttp(error)),
        };
        let mut head = Head { status: parsed.code.unwrap_or(0), ..Head::default() };
        let (mut sized, mut chunked) = (None, false);
        let base = self.buffer.as_ptr() as usize;
        for header in parsed.headers.iter() {
            let start = header.value.as_ptr() as usize - base;
            let place = Some(start..start + header.value.len());
            // The length first: it rules out most headers.
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("etag") => head.etag = place,
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    head.closes = header.value.eq_ignore_ascii_case(b"close");
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let value =
                        std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok());
                    sized = Some(value.ok_or_else(|| {
                        ResponseError::ContentLength(String::from_utf8_lossy(header.value).into_owned())
                    })?);
                }
                15 if header.name.eq_ignore_ascii_case("x-ms-error-code") => head.error_code = place,
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    chunked = header.value.to_ascii_lowercase().ends_with(b"chunked");
                }
                28 if header.name.eq_ignore_ascii_case("x-ms-continuation-nextrowkey") => {
                    head.next_row_key = place;
                }
                34 if header.name.eq_ignore_ascii_case("x-ms-continuation-nextpartitionkey") => {
                    head.next_partition_key = place;
                }
                _ => {}
            }
        }
        head.text = self.at..self.at + length;
        self.at += length;
        self.body = self.at..self.at;
        self.stage = match (head.status, chunked, sized) {
            // `100 Continue` and other interim answers come before the final one.
            (100..=199, ..) => Stage::Head,
            (204 | 304, ..) => Stage::Complete,
            (_, true, _) => Stage::ChunkSize,
            (_, false, Some(length)) => Stage::Sized { missing: length },
            (_, false, None) => Stage::UntilClose,
        };
        self.head = head;
        match self.stage {
            Stage::Sized { missing: bytes } if bytes > BODY_BYTES_MAX && !self.passes_on() => {
                Err(ResponseError::BodyTooLong { bytes })
            }
            _ => Ok(()),
        }
    }

    fn read_chunk_size(&mut self) -> Result<(), ResponseError> {
        let Some(line) = self.line() else { return Ok(()) };
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size =
            std::str::from_utf8(digits).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        self.stage = match size {
            None => return Err(ResponseError::ChunkSize(String::from_utf8_lossy(digits).into_owned())),
            Some(0) => Stage::Trailer,
            Some(size) if size > BODY_BYTES_MAX - self.body.len() => {
                return Err(ResponseError::BodyTooLong { bytes: self.body.len().saturating_add(size) });
            }
            Some(missing) => {
                if self.body.is_empty() {
                    self.body = self.at..self.at;
                }
                Stage::Chunk { missing }
            }
        };
        Ok(())
    }

    /// Adds up to `count` bytes to the body; returns how many are missing.
    fn take(&mut self, count: usize) -> usize {
        let here = count.min(self.filled - self.at);
        if self.body.end != self.at {
            self.buffer.copy_within(self.at..self.at + here, self.body.end);
        }
        self.body.end += here;
        self.at += here;
        count - here
    }

    /// The next line without its line end, if it has been received whole.
    fn line(&mut self) -> Option<&[u8]> {
        let start = self.at;
        let length = memchr::memchr(b'\n', &self.buffer[start..self.filled])?;
        self.at += length + 1;
        let line = &self.buffer[start..start + length];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests;
