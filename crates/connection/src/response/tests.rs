//! Answers in every cut: a boundary anywhere must change nothing.

use super::*;

/// Feeds the bytes in pieces, and says what was read and how much was left over.
fn read(bytes: &[u8], cuts: &[usize]) -> Result<Option<(u16, Vec<u8>, usize)>, ResponseError> {
    let mut reader = ResponseReader::default();
    let mut from = 0;
    for to in cuts.iter().copied().chain([bytes.len()]) {
        reader.space()[..to - from].copy_from_slice(&bytes[from..to]);
        reader.received(to - from);
        from = to;
        if reader.advance()? {
            // What has not been fed yet belongs to what is left over too.
            let left = reader.filled - reader.at + bytes.len() - to;
            let response = reader.response();
            return Ok(Some((response.status, response.body.to_vec(), left)));
        }
    }
    Ok(None)
}

fn check(bytes: &str, status: u16, body: &str, left: usize) {
    let bytes = bytes.as_bytes();
    let expected = Ok(Some((status, body.as_bytes().to_vec(), left)));
    assert_eq!(read(bytes, &[]), expected);
    for first in 0..bytes.len() {
        assert_eq!(read(bytes, &[first]), expected, "cut at {first}");
    }
    let every: Vec<usize> = (1..bytes.len()).collect();
    assert_eq!(read(bytes, &every), expected, "byte by byte");
}

#[test]
fn answers_are_read_whatever_their_cuts() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 0);
    check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, "", 0);
    check("HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n", 204, "", 0);
    check("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200", 204, "", 12);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{chunked}0\r\n\r\n"), 200, "", 0);
    check(&format!("{chunked}5\r\nhello\r\n0\r\n\r\n"), 200, "hello", 0);
    check(
        &format!("{chunked}3\r\nhel\r\n002;x=y\r\nlo\r\n6\r\n\r\nyou\r\r\n0\r\n\r\n"),
        200,
        "hello\r\nyou\r",
        0,
    );
    check(&format!("{chunked}A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nHTTP"), 200, "0123456789", 4);
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, "x", 0);
}

#[test]
fn answers_longer_than_the_buffer_are_read() {
    let long = "0123456789abcdef".repeat(100_000);
    for bytes in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len()),
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
            long.len()
        ),
    ] {
        let cuts: Vec<usize> = (0..bytes.len()).step_by(1000).skip(1).collect();
        assert_eq!(read(bytes.as_bytes(), &cuts), Ok(Some((200, long.clone().into_bytes(), 0))));
    }
}

#[test]
fn what_came_after_an_answer_begins_the_next() {
    let mut reader = ResponseReader::default();
    let both =
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nb";
    reader.space()[..both.len()].copy_from_slice(both);
    reader.received(both.len());
    for (status, body) in [(200, b"a"), (404, b"b")] {
        assert_eq!(reader.advance(), Ok(true));
        assert_eq!((reader.response().status, reader.response().body), (status, body.as_slice()));
        reader.next();
    }
    assert!(reader.is_idle());
}

#[test]
fn headers_are_found_whatever_their_case() {
    let head = "HTTP/1.1 200 OK\r\netag: W/\"1\"\r\nConnection: Close\r\nX-MS-Continuation-NextPartitionKey: p\r\n\
                x-ms-continuation-nextrowkey: r\r\nx-ms-error-code: Oops\r\nContent-Length: 0\r\n\r\n";
    let mut reader = ResponseReader::default();
    reader.space()[..head.len()].copy_from_slice(head.as_bytes());
    reader.received(head.len());
    assert_eq!(reader.advance(), Ok(true));
    assert_eq!(
        reader.response(),
        Response {
            status: 200,
            closes: true,
            etag: Some(b"W/\"1\""),
            error_code: Some(b"Oops"),
            next_partition_key: Some(b"p"),
            next_row_key: Some(b"r"),
            head: head.as_bytes(),
            body: b"",
        }
    );
}

#[test]
fn any_header_can_be_asked_for() {
    let both = "HTTP/1.1 200 retry-after: 9\r\nContent-Length: 14\r\n\r\nRetry-After: 8\
                HTTP/1.1 503 Busy\r\nretry-AFTER:  120 \r\nX-None:\r\nContent-Length: 0\r\n\r\n";
    let mut reader = ResponseReader::default();
    reader.space()[..both.len()].copy_from_slice(both.as_bytes());
    reader.received(both.len());
    assert_eq!(reader.advance(), Ok(true));
    assert_eq!(reader.response().header("Retry-After"), None, "neither a reason nor a body is a header");
    reader.next();
    assert_eq!(reader.advance(), Ok(true));
    for (name, expected) in
        [("Retry-After", Some("120")), ("x-none", Some("")), ("Retry", None), ("HTTP/1.1 503 Busy", None)]
    {
        assert_eq!(reader.response().header(name), expected.map(str::as_bytes), "{name}");
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    let check = |bytes: &str, expected: &str| {
        let error = read(bytes.as_bytes(), &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("SSH-2.0-OpenSSH\r\n\r\n", "this is not an HTTP answer");
    check("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "Content-Length is \"x\", not a number");
    check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "longer than any");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{chunked}zz\r\n"), "the size of a chunk is \"zz\"");
    check(&format!("{chunked}2\r\nabc\r\n"), "a chunk is longer than its size says");
    check(&format!("{chunked}ffffffffffffff\r\n"), "longer than any");
    check(&format!("{chunked}1\r\na\r\nffffffffffffffff\r\n"), "longer than any");
}

#[test]
fn a_close_ends_only_what_has_no_other_end() {
    let check = |bytes: &str, expected: Result<&str, &str>| {
        let mut reader = ResponseReader::default();
        reader.space()[..bytes.len()].copy_from_slice(bytes.as_bytes());
        reader.received(bytes.len());
        assert_eq!(reader.advance(), Ok(false));
        let closed = reader.closed();
        match expected {
            Ok(body) => assert_eq!((closed, reader.response().body), (Ok(()), body.as_bytes())),
            Err(text) => assert!(closed.is_err_and(|error| error.to_string().contains(text))),
        }
    };
    check("", Err("without an answer"));
    check("HTTP/1.1 200", Err("in the middle of an answer"));
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", Err("in the middle of an answer"));
    check("HTTP/1.0 200 OK\r\n\r\nuntil the end", Ok("until the end"));
}

/// Feeds the bytes in pieces of this size, and says what was passed on, what was joined, and how long the buffer became.
fn stream(bytes: &[u8], size: usize) -> (Vec<u8>, Vec<u8>, usize) {
    let mut reader = ResponseReader::default();
    reader.stream(true);
    let (mut passed, mut is_whole) = (Vec::new(), false);
    for piece in bytes.chunks(size) {
        assert!(!is_whole, "the answer ended too early");
        reader.space()[..piece.len()].copy_from_slice(piece);
        reader.received(piece.len());
        is_whole = reader.advance().unwrap();
        reader.drain(&mut |content| passed.extend_from_slice(content));
    }
    assert!(is_whole);
    (passed, reader.response().body.to_vec(), reader.buffer.len())
}

#[test]
fn content_is_passed_on_whatever_its_cuts_and_an_error_is_not() {
    let chunks = "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    for rest in ["Content-Length: 5\r\n\r\nhello", chunks] {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        for (head, passed, joined) in
            [("HTTP/1.1 206 Partial", "hello", ""), ("HTTP/1.1 503 Busy", "", "hello")]
        {
            let answer = format!("{interim}{head}\r\n{rest}");
            for size in 1..=answer.len() {
                let (found, body, _) = stream(answer.as_bytes(), size);
                assert_eq!((&*found, &*body), (passed.as_bytes(), joined.as_bytes()), "{head} by {size}");
            }
        }
    }
}

#[test]
fn long_content_takes_no_more_than_the_buffer() {
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len()).into_bytes();
    answer.extend_from_slice(&content);
    let (passed, body, buffer) = stream(&answer, SPACE_MIN);
    assert!(passed == content && body.is_empty());
    assert!(buffer <= 4 * STREAMED_BYTES, "{buffer}");
}

#[test]
fn content_longer_than_any_answer_is_no_error_if_it_is_passed_on() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n";
    let mut reader = ResponseReader::default();
    reader.stream(true);
    reader.space()[..head.len()].copy_from_slice(head);
    reader.received(head.len());
    assert_eq!(reader.advance(), Ok(false));
    assert!(reader.space().len() <= 4 * STREAMED_BYTES);
}
