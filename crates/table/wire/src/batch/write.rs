//! Writes a batch answer, byte for byte as the service does (spec: table-operations 6.3).
//!
//! Several clients read it with patterns instead of a MIME parser: the case of names, the order of the
//! lines and every CRLF are part of the protocol.

use std::borrow::Cow;

use bytes::Bytes;

/// The answer to one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAnswer {
    pub status: u16,
    /// In the order they are written.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    pub body: Bytes,
}

/// The content type of the whole answer. The ids, here and below, are GUIDs.
pub fn content_type(batch_id: &str) -> String {
    format!("multipart/mixed; boundary=batchresponse_{batch_id}")
}

/// One answer per operation, or the single one of the operation that failed.
pub fn write_change_set(batch_id: &str, changeset_id: &str, answers: &[PartAnswer]) -> Vec<u8> {
    let mut out = Vec::with_capacity(answers.iter().map(|answer| 512 + answer.body.len()).sum());
    push(&mut out, &["--batchresponse_", batch_id, "\r\n"]);
    push(&mut out, &["Content-Type: multipart/mixed; boundary=changesetresponse_", changeset_id, "\r\n\r\n"]);
    for answer in answers {
        push(&mut out, &["--changesetresponse_", changeset_id, "\r\n"]);
        write_answer(&mut out, answer);
    }
    push(&mut out, &["--changesetresponse_", changeset_id, "--\r\n"]);
    push(&mut out, &["--batchresponse_", batch_id, "--\r\n"]);
    out
}

/// The answer to a single GET: no change set around it.
pub fn write_query(batch_id: &str, answer: &PartAnswer) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + answer.body.len());
    push(&mut out, &["--batchresponse_", batch_id, "\r\n"]);
    write_answer(&mut out, answer);
    push(&mut out, &["--batchresponse_", batch_id, "--\r\n"]);
    out
}

fn write_answer(out: &mut Vec<u8>, answer: &PartAnswer) {
    push(out, &["Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"]);
    let status = itoa::Buffer::new().format(answer.status).to_owned();
    push(out, &["HTTP/1.1 ", &status, " ", reason(answer.status), "\r\n"]);
    for (name, value) in &answer.headers {
        push(out, &[name, ": ", value, "\r\n"]);
    }
    push(out, &["\r\n"]);
    out.extend_from_slice(&answer.body);
    // This line end belongs to the next boundary, so it also follows an empty body.
    push(out, &["\r\n"]);
}

fn push(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// ODataLib's words for the statuses a part can have.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Unknown Status Code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &[u8], expected: &[&str]) {
        let expected: String = expected.iter().map(|line| format!("{line}\r\n")).collect();
        assert_eq!(String::from_utf8_lossy(written), expected);
    }

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> PartAnswer {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned().into())).collect();
        PartAnswer { status, headers, body: Bytes::from_static(body.as_bytes()) }
    }

    #[test]
    fn a_change_set_is_nested_in_its_batch() {
        let merged = answer(204, &[("Cache-Control", "no-cache"), ("DataServiceVersion", "1.0;")], "");
        let inserted = answer(201, &[("Content-ID", "1"), ("ETag", "W/\"e\"")], "{\"A\":1}");
        check(
            &write_change_set("G", "H", &[merged, inserted]),
            &[
                "--batchresponse_G",
                "Content-Type: multipart/mixed; boundary=changesetresponse_H",
                "",
                "--changesetresponse_H",
                "Content-Type: application/http",
                "Content-Transfer-Encoding: binary",
                "",
                "HTTP/1.1 204 No Content",
                "Cache-Control: no-cache",
                "DataServiceVersion: 1.0;",
                "",
                "",
                "--changesetresponse_H",
                "Content-Type: application/http",
                "Content-Transfer-Encoding: binary",
                "",
                "HTTP/1.1 201 Created",
                "Content-ID: 1",
                "ETag: W/\"e\"",
                "",
                "{\"A\":1}",
                "--changesetresponse_H--",
                "--batchresponse_G--",
            ],
        );
    }

    #[test]
    fn a_query_stands_directly_in_its_batch() {
        check(
            &write_query("G", &answer(200, &[("DataServiceVersion", "3.0;")], "{}")),
            &[
                "--batchresponse_G",
                "Content-Type: application/http",
                "Content-Transfer-Encoding: binary",
                "",
                "HTTP/1.1 200 OK",
                "DataServiceVersion: 3.0;",
                "",
                "{}",
                "--batchresponse_G--",
            ],
        );
        assert_eq!(content_type("G"), "multipart/mixed; boundary=batchresponse_G");
    }

    #[test]
    fn every_refusal_in_a_part_has_a_reason_phrase() {
        for status in [200, 201, 202, 204, 400, 403, 404, 405, 409, 411, 412, 413, 415, 500, 501, 503] {
            assert_ne!(reason(status), reason(0), "{status}");
        }
    }
}
