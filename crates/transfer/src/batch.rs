//! Entity group transactions: their bytes, and what an answer to one says.

use std::io::Write as _;

use crate::retry;
use crate::session::Answer;

pub const HEADERS: &str =
    "Accept: application/json;odata=nometadata\r\nContent-Type: multipart/mixed; boundary=batch_partita\r\n";

const PART_HEADERS: &str = "Accept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
                            DataServiceVersion: 3.0\r\n";

/// Writes a transaction of `(method, address, entity)`. Line breaks are escaped in JSON, so no entity holds a boundary.
pub fn write<'a>(out: &mut Vec<u8>, operations: impl Iterator<Item = (&'a str, String, &'a [u8])>) {
    out.clear();
    out.extend_from_slice(
        b"--batch_partita\r\nContent-Type: multipart/mixed; boundary=changeset_partita\r\n\r\n",
    );
    for (method, address, entity) in operations {
        // Writing into a vector can't fail.
        let _ = write!(
            out,
            "--changeset_partita\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {method} {address} HTTP/1.1\r\n{PART_HEADERS}{}\r\n",
            preference(method)
        );
        out.extend_from_slice(entity);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"--changeset_partita--\r\n--batch_partita--\r\n");
}

/// Only an insert is answered with its entity unless it is told not to; on other writes the header has no meaning.
pub fn preference(method: &str) -> &'static str {
    if method == "POST" { "Prefer: return-no-content\r\n" } else { "" }
}

/// Whether each of so many operations was carried out.
pub fn is_done(answer: &Answer, operations: usize) -> bool {
    answer.status == 202
        && statuses(&answer.body).filter(|status| matches!(status, 201 | 204)).count() == operations
}

/// Whether another attempt is worth while. A busy server may say so inside of an answer.
pub fn is_passing(answer: &Answer) -> bool {
    let inside = || statuses(&answer.body).any(retry::is_passing);
    retry::is_passing(answer.status) || answer.status == 202 && inside()
}

fn statuses(body: &[u8]) -> impl Iterator<Item = u16> {
    body.split(|byte| *byte == b'\n').filter_map(|line| {
        let rest = line.strip_prefix(b"HTTP/1.1 ")?;
        std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_answer_counts() {
        let check = |status, body: &str, done: bool, passing: bool| {
            let answer = Answer { status, body: body.as_bytes().to_vec(), ..Answer::default() };
            assert_eq!((is_done(&answer, 2), is_passing(&answer)), (done, passing), "{status} {body}");
        };
        check(202, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 201 Created\r\n", true, false);
        check(202, "HTTP/1.1 204 No Content\r\n", false, false);
        check(202, "HTTP/1.1 409 Conflict\r\n", false, false);
        check(202, "HTTP/1.1 503 Busy\r\n", false, true);
        check(503, "", false, true);
        check(400, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n", false, false);
    }
}
