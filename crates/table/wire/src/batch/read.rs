//! Takes a batch request apart.
//!
//! As lenient as the service (spec: table-operations 6.2): either line end, blank lines nearly anywhere, a last boundary
//! without its dashes. Strict about one thing: a part without a boundary after it was cut off, and half of a transaction
//! must not be mistaken for all of it.

use std::sync::Arc;

use model::limits;
use protocol::multipart::{self, CutOff, Lines, Sections, is_blank};
use thiserror::Error;

/// One operation of a batch, not decoded, borrowed from the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPart<'a> {
    pub method: &'a str,
    /// Absolute, origin-relative or relative; not decoded.
    pub target: &'a str,
    /// The HTTP headers, names in the case of the request. The headers of the MIME part are not included: the service
    /// echoes a `Content-ID` only if it is an HTTP header. Parts with the same headers share them.
    pub headers: PartHeaders<'a>,
    pub body: &'a [u8],
}

pub type PartHeaders<'a> = Arc<[(&'a str, &'a str)]>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch<'a> {
    /// The changes, in order; possibly none. At most one above the limit, which is enough to refuse the batch.
    ChangeSet(Vec<BatchPart<'a>>),
    /// A change set that is closed before any part of it is opened: the service answers with an empty change set.
    Closed,
    /// A single GET.
    Query(BatchPart<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BatchFault {
    #[error("the content type is not multipart or names no boundary")]
    NotMultipart,
    #[error("the multipart body is malformed or cut off")]
    Unreadable,
    #[error("a batch is one change set or one query, and nothing beside it")]
    Mixed,
}

impl From<CutOff> for BatchFault {
    fn from(_: CutOff) -> Self {
        Self::Unreadable
    }
}

// Headers of one part. Clients send about ten; without a bound, a body of colons would become a million strings.
const PART_HEADERS_MAX: usize = 100;

pub fn read<'a>(content_type: &'a str, body: &'a [u8]) -> Result<Batch<'a>, BatchFault> {
    let declared = multipart::boundary(content_type).ok_or(BatchFault::NotMultipart)?;
    let boundary = multipart::boundary_in_use(body, declared);
    let mut sections = Sections::new(body, boundary);
    let Some(section) = sections.section()? else {
        // Boundaries with nothing between them are an empty change set; a body without any boundary is not a batch.
        return if sections.opened() {
            Ok(Batch::ChangeSet(Vec::new()))
        } else {
            Err(BatchFault::Unreadable)
        };
    };
    let batch = top_level(section)?;
    match sections.section()? {
        None => Ok(batch),
        Some(_) => Err(BatchFault::Mixed),
    }
}

fn top_level(section: &[u8]) -> Result<Batch<'_>, BatchFault> {
    let mut lines = Lines::new(section);
    let mime = headers(&mut lines)?;
    let content_type = mime.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = content_type.map_or("", |(_, value)| value);
    if multipart::is_multipart(content_type) {
        let boundary = multipart::boundary(content_type).ok_or(BatchFault::Unreadable)?;
        let mut sections = Sections::new(lines.rest(), boundary);
        let parts = change_set(&mut sections)?;
        return Ok(if parts.is_empty() && !sections.opened_part() {
            Batch::Closed
        } else {
            Batch::ChangeSet(parts)
        });
    }
    let part = operation(lines)?;
    // A change without a change set around it is a change set of one.
    Ok(if part.method == "GET" { Batch::Query(part) } else { Batch::ChangeSet(vec![part]) })
}

fn change_set<'a>(sections: &mut Sections<'a>) -> Result<Vec<BatchPart<'a>>, BatchFault> {
    let mut parts = Vec::new();
    let mut reader = PartReader::default();
    while parts.len() <= limits::BATCH_OPERATIONS_MAX
        && let Some(section) = sections.section()?
    {
        let part = reader.part(section)?;
        if part.method == "GET" {
            return Err(BatchFault::Mixed);
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Reads one part after another. Nearly every part begins with the bytes of the part before it, at least with its MIME
/// headers: what was read of them holds for it too.
#[derive(Default)]
struct PartReader<'a> {
    last: Option<Head<'a>>,
}

/// What is before the body of a part. Each piece of bytes is a `block`.
struct Head<'a> {
    bytes: Option<&'a [u8]>,
    mime: Option<&'a [u8]>,
    http: Option<&'a [u8]>,
    method: &'a str,
    target: &'a str,
    headers: PartHeaders<'a>,
}

impl<'a> PartReader<'a> {
    fn part(&mut self, section: &'a [u8]) -> Result<BatchPart<'a>, BatchFault> {
        let same = |select: fn(&Head<'a>) -> Option<&'a [u8]>, bytes: &'a [u8]| {
            let last = self.last.as_ref()?;
            Some((last, bytes.strip_prefix(select(last)?)?))
        };
        if let Some((Head { method, target, headers, .. }, body)) = same(|last| last.bytes, section) {
            return Ok(BatchPart { method, target, headers: headers.clone(), body });
        }
        let after_mime = match same(|last| last.mime, section) {
            Some((_, rest)) => rest,
            None => {
                let mut lines = Lines::new(section);
                headers(&mut lines)?;
                lines.rest()
            }
        };
        let mut lines = Lines::new(after_mime);
        let (method, target) = request(&mut lines)?;
        let from_http = lines.rest();
        let (headers, body) = match same(|last| last.http, from_http) {
            Some((last, body)) => (last.headers.clone(), body),
            None => (http_headers(&mut lines)?.into(), lines.rest()),
        };
        let bytes = |from: &'a [u8], rest: &[u8]| block(&from[..from.len() - rest.len()]);
        self.last = Some(Head {
            bytes: bytes(section, body),
            mime: bytes(section, after_mime),
            http: bytes(from_http, body),
            method,
            target,
            headers: headers.clone(),
        });
        Ok(BatchPart { method, target, headers, body })
    }
}

/// Lines that end with a blank one, so that what they mean does not depend on what follows.
fn block(lines: &[u8]) -> Option<&[u8]> {
    let whole = lines.strip_suffix(b"\n")?;
    let last = memchr::memrchr(b'\n', whole).map_or(whole, |at| &whole[at + 1..]);
    is_blank(last).then_some(lines)
}

/// Request line, headers and body; `lines` starts after the MIME headers.
fn operation(mut lines: Lines<'_>) -> Result<BatchPart<'_>, BatchFault> {
    let (method, target) = request(&mut lines)?;
    let headers = http_headers(&mut lines)?.into();
    // The part's Content-Length is ignored: some clients count wrongly, and the boundary says where the part ends.
    Ok(BatchPart { method, target, headers, body: lines.rest() })
}

fn request<'a>(lines: &mut Lines<'a>) -> Result<(&'a str, &'a str), BatchFault> {
    lines.skip_blank();
    lines.next().and_then(text).and_then(request_line).ok_or(BatchFault::Unreadable)
}

/// `METHOD target HTTP/1.1`. Some clients do not encode spaces in the target, so the target is everything between the first
/// word and the last.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.trim().split_once(' ')?;
    let (target, version) = rest.rsplit_once(' ')?;
    let target = target.trim();
    let is_request = version.starts_with("HTTP/")
        && (1..=limits::TARGET_BYTES_MAX).contains(&target.len())
        && method.bytes().all(|b| b.is_ascii_alphabetic());
    is_request.then_some((method, target))
}

/// The headers of a MIME part, which may have blank lines before them.
fn headers<'a>(lines: &mut Lines<'a>) -> Result<Vec<(&'a str, &'a str)>, BatchFault> {
    lines.skip_blank();
    http_headers(lines)
}

/// Headers, and the blank line that ends them. Without a blank line they end with the part, as in a DELETE of some clients.
fn http_headers<'a>(lines: &mut Lines<'a>) -> Result<Vec<(&'a str, &'a str)>, BatchFault> {
    let mut headers = Vec::with_capacity(8);
    for line in lines.by_ref() {
        if is_blank(line) {
            break;
        }
        let (name, value) = text(line).and_then(|line| line.split_once(':')).ok_or(BatchFault::Unreadable)?;
        let name = name.trim_end();
        if name.is_empty() || name.contains([' ', '\t']) || headers.len() == PART_HEADERS_MAX {
            return Err(BatchFault::Unreadable);
        }
        headers.push((name, value.trim()));
    }
    Ok(headers)
}

/// A line as text. `None` if it has control characters, which could end a header early when it is echoed.
fn text(line: &[u8]) -> Option<&str> {
    // Without a branch per byte, so that the compiler can vectorize it.
    let is_control = |byte: u8| ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f);
    if line.iter().fold(false, |found, byte| found | is_control(*byte)) {
        return None;
    }
    std::str::from_utf8(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    const TYPE: &str = "multipart/mixed; boundary=b";

    /// One line per part, so that an expectation fits into one line.
    fn show(result: Result<Batch, BatchFault>) -> String {
        let part = |part: &BatchPart| {
            let headers: String = part
                .headers
                .iter()
                .map(|(name, value)| format!(" {}={value}", name.to_ascii_lowercase()))
                .collect();
            format!("{} {}{headers} {:?}", part.method, part.target, Bytes::copy_from_slice(part.body))
        };
        match result {
            Ok(Batch::ChangeSet(parts)) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
            Ok(Batch::Closed) => "closed".to_owned(),
            Ok(Batch::Query(query)) => format!("query {}", part(&query)),
            Err(fault) => format!("{fault:?}"),
        }
    }

    /// Reads a batch with each kind of line end.
    fn check(body: &str, expected: &str) {
        for body in [body.to_owned(), body.replace('\n', "\r\n")] {
            let shown = show(read(TYPE, body.as_bytes())).replace("\\r\\n", "\\n");
            assert_eq!(shown, expected, "{body}");
        }
    }

    /// A batch of one change set around these parts.
    fn set(parts: &str) -> String {
        format!("--b\nContent-Type: multipart/mixed; boundary=c\n\n{parts}--c--\n--b--\n")
    }

    const HTTP: &str = "Content-Type: application/http\nContent-Transfer-Encoding: binary\n";
    const GET: &str = "GET /T(PartitionKey='a',RowKey='1') HTTP/1.1\nAccept: x\n\n\n";

    #[test]
    fn reads_operations_as_they_were_written() {
        check(
            &set(&format!(
                "--c\n{HTTP}\nPOST https://acct1.table.core.windows.net/Books HTTP/1.1\nContent-Type: application/json\nPrefer: return-no-content\nContent-ID: 7\n\n{{\"A\":1}}\n--c\n{HTTP}\nDELETE /Books(PartitionKey='sf',RowKey='2') HTTP/1.1\nIf-Match: *\n\n\n"
            )),
            "POST https://acct1.table.core.windows.net/Books content-type=application/json prefer=return-no-content content-id=7 b\"{\\\"A\\\":1}\"\nDELETE /Books(PartitionKey='sf',RowKey='2') if-match=* b\"\"",
        );
        check(
            &format!("--b\n{HTTP}\n{GET}--b--"),
            "query GET /T(PartitionKey='a',RowKey='1') accept=x b\"\"",
        );
        // A change outside a change set is a change set of one.
        check(&format!("--b\n{HTTP}\nPUT /T HTTP/1.1\n\n{{}}\n--b--"), "PUT /T b\"{}\"");
    }

    #[test]
    fn forgives_what_the_service_forgives() {
        let operation = "POST /T HTTP/1.1\nA: 1\n\n{}\n";
        let read = "POST /T a=1 b\"{}\"";
        let part = format!("--c\n{HTTP}\n{operation}");
        let head = "Content-Type: multipart/mixed; boundary=c\n";
        // The last boundary: without a line end, without dashes, without both.
        check(&format!("--b\n{head}\n{part}--c--\n--b--"), read);
        check(&format!("--b\n{head}\n{part}--c--\n\n--b\n"), read);
        check(&format!("--b\n{head}\n{part}--c--\n--b"), read);
        check(&format!("--b\n{head}\n{part}--c\n--b--\n"), read);
        // Preamble, epilogue, spaces after a boundary, blank lines.
        check(&format!("hello\n--b\n{head}\nhello\n{part}--c--\nbye\n--b--\nbye\n--b\nx"), read);
        check(&format!("--b  \n{head}\n--c \t\n{HTTP}\n{operation}--c-- \n--b--  "), read);
        check(&format!("\n\n--b\n\n{head}\n\n\n--c\n\n{HTTP}\n\n\n{operation}--c--\n\n\n--b--\n\n"), read);
        check(&set(&format!("--c\n{HTTP}\nPOST /T HTTP/1.1\n\n\n{{}}\n\n")), "POST /T b\"\\n{}\\n\"");
        // MIME headers in any order and case; a Content-ID among them is not echoed.
        check(&set(&format!("--c\ncontent-id: 3\nCONTENT-TYPE: application/http\n\n{operation}")), read);
        // Bodies of DELETE: none, no blank line even, or nonsense.
        check(&set(&format!("--c\n{HTTP}\nDELETE /T HTTP/1.1\n")), "DELETE /T b\"\"");
        check(&set(&format!("--c\n{HTTP}\nDELETE /T HTTP/1.1\nIf-Match: *\n")), "DELETE /T if-match=* b\"\"");
        check(
            &set(&format!("--c\n{HTTP}\nDELETE /T HTTP/1.1\nx-ms-date: a:b\n\nundefined\n")),
            "DELETE /T x-ms-date=a:b b\"undefined\"",
        );
        // A wrong length, a header without value, names as Go writes them.
        check(
            &set(&format!(
                "--c\n{HTTP}\nPOST /T HTTP/1.1\nContent-Length: 1\nDataserviceversion:3.0\nX:\n\n{{}}\n"
            )),
            "POST /T content-length=1 dataserviceversion=3.0 x= b\"{}\"",
        );
        // Targets: relative, with spaces, with a query.
        check(
            &set(&format!(
                "--c\n{HTTP}\nMERGE T(PartitionKey='a b',RowKey='é')?$format=a;b=c HTTP/1.1\n\n{{}}\n"
            )),
            "MERGE T(PartitionKey='a b',RowKey='é')?$format=a;b=c b\"{}\"",
        );
        // A line that only begins like the boundary is body.
        check(&set(&format!("--c\n{HTTP}\nPUT /T HTTP/1.1\n\n--cc\n--c-\n")), "PUT /T b\"--cc\\n--c-\"");
    }

    #[test]
    fn a_boundary_rewritten_in_the_header_is_read_from_the_body() {
        let body =
            |boundary: &str| format!("--{boundary}\n{HTTP}\nPUT /T HTTP/1.1\n\n{{}}\n--{boundary}--\n");
        let read = |body: &str| show(read(TYPE, body.as_bytes()));
        assert_eq!(read(&body("rewritten")), read(&body("b")));
        // If the declared boundary occurs anywhere, it alone counts.
        assert_eq!(read(&format!("--x\n{}", body("b"))), "PUT /T b\"{}\"");
    }

    #[test]
    fn an_empty_change_set_has_no_parts() {
        check(&set(""), "closed");
        check(&set("--c\n\n"), "");
        check("--b\nContent-Type: multipart/mixed; boundary=c\n\n\n--b--", "closed");
        check("--b\n--b--", "");
        check("--b--", "");
    }

    #[test]
    fn refuses_a_query_beside_anything() {
        let set = "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n";
        let change = format!("--b\n{HTTP}\nPUT /T HTTP/1.1\n\n{{}}\n");
        check(&format!("--b\n{HTTP}\n{GET}--b\n{HTTP}\n{GET}--b--"), "Mixed");
        check(&format!("--b\n{HTTP}\n{GET}{set}--b--"), "Mixed");
        check(&format!("{set}--b\n{HTTP}\n{GET}--b--"), "Mixed");
        check(&format!("{set}{set}--b--"), "Mixed");
        check(&format!("{change}{change}--b--"), "Mixed");
        check(&self::set(&format!("--c\n{HTTP}\n{GET}")), "Mixed");
    }

    #[test]
    fn refuses_what_is_no_batch() {
        for body in [
            "",
            "\n",
            "{}",
            "x\n--x\n--x--",
            // Cut off: in a body, before the change set was closed, with only the batch closed.
            &format!("--b\n{HTTP}\nPUT /T HTTP/1.1\n\n{{"),
            &format!(
                "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n{HTTP}\nPUT /T HTTP/1.1\n\n{{}}\n"
            ),
            &format!(
                "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n{HTTP}\nPUT /T HTTP/1.1\n\n{{}}\n--b--"
            ),
            // A change set without boundary, or with another one.
            "--b\nContent-Type: multipart/mixed\n\n--c--\n--b--",
            "--b\nContent-Type: multipart/mixed; boundary=d\n\n--c--\n--b--",
            // Change sets do not nest.
            &set("--c\nContent-Type: multipart/mixed; boundary=d\n\n--d--\n"),
            // No request in a part.
            &format!("--b\n{HTTP}\n--b--"),
            &format!("--b\n{HTTP}\n/T HTTP/1.1\n\n--b--"),
            &format!("--b\n{HTTP}\nPUT /T\n\n--b--"),
            &format!("--b\n{HTTP}\nPUT  HTTP/1.1\n\n--b--"),
            // A target that is too long for a single request.
            &format!("--b\n{HTTP}\nGET /T?{} HTTP/1.1\n\n--b--", "a".repeat(limits::TARGET_BYTES_MAX)),
            "--b\nPUT /T HTTP/1.1\n\n{}\n--b--",
            // Malformed headers.
            &format!("--b\n{HTTP}\nPUT /T HTTP/1.1\nA\n\n--b--"),
            &format!("--b\n{HTTP}\nPUT /T HTTP/1.1\n: a\n\n--b--"),
            &format!("--b\n{HTTP}\nPUT /T HTTP/1.1\nA: 1\n folded\n\n--b--"),
            &format!("--b\n{HTTP}\nPUT /T HTTP/1.1\nA: 1\rB: 2\n\n--b--"),
            &format!("--b\n{HTTP}\nPUT /T HTTP/1.1\n{}\n--b--", "A: 1\n".repeat(PART_HEADERS_MAX + 1)),
        ] {
            check(body, "Unreadable");
        }
        assert_eq!(read("text/plain", b"--b--"), Err(BatchFault::NotMultipart));
    }

    #[test]
    fn stops_one_past_the_limit_and_copies_no_body() {
        let part = format!("--c\n{HTTP}\nPOST /T HTTP/1.1\n\n{{\"A\":1}}\n");
        let body = set(&part.repeat(limits::BATCH_OPERATIONS_MAX + 50)).into_bytes();
        let Ok(Batch::ChangeSet(parts)) = read(TYPE, &body) else { panic!("no change set") };
        assert_eq!(parts.len(), limits::BATCH_OPERATIONS_MAX + 1);
        assert!(body.as_ptr_range().contains(&parts[7].body.as_ptr()));
    }

    #[derive(Clone, Copy, Debug)]
    struct Habits {
        line_end: &'static str,
        closing: &'static str,
        final_line_end: bool,
        content_id_in_mime: bool,
        blank_before_boundary: bool,
    }

    fn habits() -> impl Strategy<Value = Habits> {
        let habits = |line_end, closing, final_line_end, content_id_in_mime, blank_before_boundary| Habits {
            line_end,
            closing,
            final_line_end,
            content_id_in_mime,
            blank_before_boundary,
        };
        prop_oneof![
            Just(habits("\r\n", "--", true, true, true)), // azure-data-tables for Python
            Just(habits("\n", "--", false, false, false)), // azure-storage-python
            Just(habits("\r\n", "", true, false, true)),  // @azure/data-tables
            Just(habits("\r\n", "--", true, false, false)), // .NET, Go, Java
        ]
    }

    #[derive(Clone, Debug)]
    struct Written {
        method: String,
        target: String,
        headers: Vec<(String, String)>,
        body: String,
    }

    fn write(parts: &[Written], habits: Habits) -> Vec<u8> {
        let mut out = Vec::new();
        let mut line = |text: &[u8]| {
            out.extend_from_slice(text);
            out.extend_from_slice(habits.line_end.as_bytes());
        };
        line(b"--b");
        line(b"Content-Type: multipart/mixed; boundary=c");
        line(b"");
        for part in parts {
            line(b"--c");
            line(b"Content-Type: application/http");
            line(b"Content-Transfer-Encoding: binary");
            if habits.content_id_in_mime {
                line(b"Content-ID: 1");
            }
            line(b"");
            line(format!("{} {} HTTP/1.1", part.method, part.target).as_bytes());
            for (name, value) in &part.headers {
                line(format!("{name}: {value}").as_bytes());
            }
            line(b"");
            line(part.body.as_bytes());
        }
        line(b"--c--");
        if habits.blank_before_boundary {
            line(b"");
        }
        out.extend_from_slice(format!("--b{}", habits.closing).as_bytes());
        if habits.final_line_end {
            out.extend_from_slice(habits.line_end.as_bytes());
        }
        out
    }

    prop_compose! {
        fn part()(
            method in "POST|PUT|MERGE|PATCH|DELETE",
            target in "(https://h)?/?[A-Za-z]{3,9}(\\(PartitionKey='[ -~é]{0,9}',RowKey='[!-~]{0,9}'\\))?",
            headers in prop::collection::vec(("[a-z-]{1,9}", "([!-~]([ -~]{0,9}[!-~])?)?"), 0..4),
            body in "(\\{[ -~é\n]{0,40}\\})?",
        ) -> Written {
            Written { method, target, headers, body }
        }
    }

    proptest! {
        #[test]
        fn a_part_reads_the_same_whatever_part_is_before_it(
            sections in prop::collection::vec(
                "((Content-Type: a/b|X:)\r?\n){0,2}( ?\r?\n){0,2}(PUT|DELETE) /(T|U) HTTP/1.1\n(A: (1|2)\r?\n){0,2}( ?\r?\n){0,2}(\\{\\})?\n?",
                1..5,
            ),
        ) {
            let mut reader = PartReader::default();
            for section in &sections {
                let alone = PartReader::default().part(section.as_bytes());
                prop_assert_eq!(reader.part(section.as_bytes()), alone, "{:?}", sections);
            }
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_clients_write(parts in prop::collection::vec(part(), 0..6), habits in habits()) {
            let body = write(&parts, habits);
            let part = |part: &'_ Written| show(Ok(Batch::ChangeSet(vec![BatchPart {
                method: &part.method,
                target: &part.target,
                headers: part.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
                body: part.body.as_bytes(),
            }])));
            let expected: Vec<String> = parts.iter().map(part).collect();
            let expected = if parts.is_empty() { "closed".to_owned() } else { expected.join("\n") };
            prop_assert_eq!(show(read(TYPE, &body)), expected);
        }
    }
}
