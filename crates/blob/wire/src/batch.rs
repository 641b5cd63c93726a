//! Batches of Delete Blob and Set Blob Tier: `multipart/mixed`, each part a request of its own (spec: blob-operations 4.4).

use blob_model::{Refusal, limits};
use protocol::multipart::{self, Lines, Sections, is_blank};

/// Headers of one part. Not a service figure: no client sends a third of it.
const PART_HEADERS_MAX: usize = 64;

/// Why a body is no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchFault {
    #[error("the content type is not multipart or names no boundary")]
    NotMultipart,
    #[error("the multipart body is malformed or cut off")]
    Unreadable,
    #[error("a batch has at most {} parts", limits::BATCH_PARTS_MAX)]
    TooManyParts,
}

/// One request of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPart<'a> {
    /// What its answer is told apart by.
    pub content_id: Option<&'a str>,
    pub method: &'a str,
    /// Path and query, as they were sent.
    pub target: &'a str,
    pub headers: Vec<(&'a str, &'a str)>,
}

impl<'a> BatchPart<'a> {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// The parts of a batch, in their order.
pub fn read<'a>(content_type: &'a str, body: &'a [u8]) -> Result<Vec<BatchPart<'a>>, BatchFault> {
    let boundary = multipart::boundary(content_type).ok_or(BatchFault::NotMultipart)?;
    let mut sections = Sections::new(body, boundary);
    let mut parts = Vec::new();
    while let Some(section) = sections.section().map_err(|_| BatchFault::Unreadable)? {
        if parts.len() == limits::BATCH_PARTS_MAX {
            return Err(BatchFault::TooManyParts);
        }
        parts.push(part(section).ok_or(BatchFault::Unreadable)?);
    }
    if parts.is_empty() { Err(BatchFault::Unreadable) } else { Ok(parts) }
}

fn part(section: &[u8]) -> Option<BatchPart<'_>> {
    let mut lines = Lines::new(section);
    lines.skip_blank();
    let mime = headers(&mut lines)?;
    let content_id = mime.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-id"));
    lines.skip_blank();
    let (method, target) = request_line(text(lines.next()?)?)?;
    // A body would be one of Set Blob Tier or Delete Blob, which have none.
    Some(BatchPart {
        content_id: content_id.map(|(_, id)| *id),
        method,
        target,
        headers: headers(&mut lines)?,
    })
}

/// `METHOD target HTTP/1.1`.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.trim_ascii().split_once(' ')?;
    let (target, version) = rest.rsplit_once(' ')?;
    let target = target.trim_ascii();
    let is_request = version.starts_with("HTTP/")
        && (1..=common::limits::TARGET_BYTES_MAX).contains(&target.len())
        && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_request.then_some((method, target))
}

/// Headers up to a blank line or the end.
fn headers<'a>(lines: &mut Lines<'a>) -> Option<Vec<(&'a str, &'a str)>> {
    let mut headers = Vec::new();
    for line in lines.by_ref() {
        if is_blank(line) {
            break;
        }
        let (name, value) = text(line)?.split_once(':')?;
        let name = name.trim_ascii_end();
        if name.is_empty() || name.contains([' ', '\t']) || headers.len() == PART_HEADERS_MAX {
            return None;
        }
        headers.push((name, value.trim_ascii()));
    }
    Some(headers)
}

/// A line as text. `None` if it has control characters, which could end a header early when it is echoed.
fn text(line: &[u8]) -> Option<&str> {
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    if line.iter().any(is_control) { None } else { std::str::from_utf8(line).ok() }
}

/// The answer of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAnswer {
    /// None in the only part of an answer that refuses the whole batch.
    pub content_id: Option<String>,
    pub status: u16,
    /// `Accepted` and such, or the message of a refusal.
    pub reason: String,
    pub headers: Vec<(&'static str, String)>,
    /// The error document.
    pub body: Vec<u8>,
}

/// The header `Content-Type` of an answer.
pub fn content_type(batch_id: &str) -> String {
    format!("multipart/mixed; boundary=batchresponse_{batch_id}")
}

/// The body of an answer.
pub fn write(batch_id: &str, parts: &[PartAnswer]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + parts.len() * 512);
    let mut line = |text: &[&str]| {
        text.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    };
    for part in parts {
        line(&["--batchresponse_", batch_id, "\r\nContent-Type: application/http\r\n"]);
        if let Some(id) = &part.content_id {
            line(&["Content-ID: ", id, "\r\n"]);
        }
        line(&["\r\nHTTP/1.1 ", &part.status.to_string(), " ", &part.reason, "\r\n"]);
        for (name, value) in &part.headers {
            line(&[name, ": ", value, "\r\n"]);
        }
        line(&["\r\n"]);
        if !part.body.is_empty() {
            // An error document is UTF-8.
            line(&[&String::from_utf8_lossy(&part.body), "\r\n"]);
        }
    }
    line(&["--batchresponse_", batch_id, "--"]);
    out
}

impl From<BatchFault> for Refusal {
    fn from(fault: BatchFault) -> Self {
        match fault {
            BatchFault::TooManyParts => Self::TooManyBatchParts,
            // No code of the service is known for these.
            BatchFault::NotMultipart | BatchFault::Unreadable => common::Refusal::InputNotValid.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/mixed; boundary=b";

    fn part(n: usize) -> String {
        format!(
            "--b\r\nContent-Type: application/http\r\nContent-ID: {n}\r\nContent-Transfer-Encoding: binary\r\n\r\nDELETE /c/blob{n}? HTTP/1.1\r\nx-ms-date: Thu, 04 Aug 2022 23:32:52 GMT\r\nContent-Length: 0\r\n\r\n\r\n"
        )
    }

    #[test]
    fn every_clients_batch_is_read() {
        let body = format!("{}{}--b--\r\n", part(0), part(1));
        let parts = read(TYPE, body.as_bytes()).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(
            (parts[1].content_id, parts[1].method, parts[1].target),
            (Some("1"), "DELETE", "/c/blob1?")
        );
        assert_eq!(parts[1].header("X-MS-DATE"), Some("Thu, 04 Aug 2022 23:32:52 GMT"));
        assert_eq!(read(TYPE, body.replace("\r\n", "\n").as_bytes()), Ok(parts));
        // Python's asynchronous client.
        let quoted = "multipart/mixed; boundary=\"===============29==\"";
        let body = body.replace("--b", "--===============29==");
        assert_eq!(read(quoted, body.as_bytes()).map(|parts| parts.len()), Ok(2));
    }

    #[test]
    fn a_batch_has_at_most_256_parts() {
        let parts: String = (0..256).map(part).collect();
        assert_eq!(read(TYPE, format!("{parts}--b--").as_bytes()).map(|parts| parts.len()), Ok(256));
        let more = format!("{parts}{}--b--", part(256));
        assert_eq!(read(TYPE, more.as_bytes()), Err(BatchFault::TooManyParts));
        assert_eq!(Refusal::from(BatchFault::TooManyParts).code(), "ExceedsMaxBatchRequestCount");
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        assert_eq!(read("application/xml", b""), Err(BatchFault::NotMultipart));
        let part = |request: &str| format!("--b\nContent-Type: application/http\n\n{request}--b--");
        assert!(read(TYPE, part("DELETE /x HTTP/1.1\na: b\n").as_bytes()).is_ok());
        let long = part(&format!("DELETE /{} HTTP/1.1\n\n", "x".repeat(70_000)));
        let wide = part(&format!("DELETE /x HTTP/1.1\n{}\n", "a: b\n".repeat(65)));
        for body in [
            "",
            "x",
            "--b--",
            "--b\nContent-Type: application/http\n\nDELETE /x HTTP/1.1\n",
            &part(""),
            &part("DELETE\n"),
            &part("DELETE  HTTP/1.1\n"),
            &part("DELETE /x\n"),
            &part("DELETE /x HTTP/1.1\nno header\n"),
            &part("DELETE /x HTTP/1.1\na b: c\n"),
            &part("DELETE /x HTTP/1.1\na: b\u{1}\n"),
            &part("DEL3TE /x HTTP/1.1\n"),
            &long,
            &wide,
        ] {
            assert_eq!(read(TYPE, body.as_bytes()), Err(BatchFault::Unreadable), "{body:.80}");
        }
    }

    /// Recorded, but for the length of the document.
    #[test]
    fn an_answer_is_the_services_to_the_byte() {
        let part =
            |content_id: Option<&str>, status, reason: &str, headers: &[(&'static str, &str)], body: &str| {
                PartAnswer {
                    content_id: content_id.map(str::to_owned),
                    status,
                    reason: reason.to_owned(),
                    headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
                    body: body.as_bytes().to_vec(),
                }
            };
        let parts = [
            part(
                Some("0"),
                202,
                "Accepted",
                &[("x-ms-delete-type-permanent", "true"), ("x-ms-version", "2021-08-06")],
                "",
            ),
            part(None, 412, "It is not met.", &[("Content-Length", "8")], "<Error/>"),
        ];
        assert_eq!(
            String::from_utf8(write("G", &parts)).unwrap(),
            "--batchresponse_G\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\nx-ms-version: 2021-08-06\r\n\r\n--batchresponse_G\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 412 It is not met.\r\nContent-Length: 8\r\n\r\n<Error/>\r\n--batchresponse_G--"
        );
        assert_eq!(content_type("G"), "multipart/mixed; boundary=batchresponse_G");
    }
}
