//! Entity group transactions of inserts: writes their bytes, and checks the answers.

use std::io::Write as _;

use memchr::memmem;

use crate::data::{DataSet, EntityKeys};
use crate::tally::OperationFailure;
use connection::Response;

/// The service's limit for a batch.
pub const OPERATIONS_MAX: u64 = 100;
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

pub const HEADERS: &str =
    "Accept: application/json;odata=nometadata\r\nContent-Type: multipart/mixed; boundary=batch_partita\r\n";

/// The number of entities of this size that fit into one batch.
pub fn operations(data: &DataSet) -> u64 {
    OPERATIONS_MAX.min((BODY_BYTES_MAX / data.entity_bytes()).max(1) as u64)
}

/// A batch that is being written.
#[derive(Debug)]
pub struct BatchWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The address for inserts into the table.
    url: &'a str,
}

impl<'a> BatchWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>, url: &'a str) -> Self {
        out.clear();
        out.extend_from_slice(
            b"--batch_partita\r\nContent-Type: multipart/mixed; boundary=changeset_partita\r\n\r\n",
        );
        Self { out, url }
    }

    pub fn insert(&mut self, data: &DataSet, key: &EntityKeys, number: u64) {
        // Writing into a vector can't fail.
        let _ = write!(
            self.out,
            "--changeset_partita\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST {} HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\nContent-Type: application/json\r\n\
             Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n",
            self.url
        );
        data.write_entity(self.out, key, number);
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn finish(self) {
        self.out.extend_from_slice(b"--changeset_partita--\r\n--batch_partita--\r\n");
    }
}

/// Whether the answer has a "no content" for each operation.
pub fn check(response: &Response<'_>, operations: u64, trust: bool) -> Result<(), OperationFailure> {
    if response.status != 202 {
        return Err(OperationFailure::status(response));
    }
    if trust {
        return Ok(());
    }
    let done = memmem::find_iter(response.body, b"HTTP/1.1 204 ").count()
        + memmem::find_iter(response.body, b"HTTP/1.1 201 ").count();
    if done as u64 == operations {
        return Ok(());
    }
    // If an operation failed, the answer has only its part.
    Err(OperationFailure::wrong(
        format!("{done} of a batch's {operations} operations were done"),
        response.body,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_counted() {
        let check = |status, body: &str, expected: bool| {
            let response = Response {
                status,
                closes: false,
                etag: None,
                error_code: None,
                next_partition_key: None,
                next_row_key: None,
                head: b"",
                body: body.as_bytes(),
            };
            assert_eq!(check(&response, 2, false).is_ok(), expected, "{status} {body}");
        };
        check(202, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 201 Created\r\n", true);
        check(202, "HTTP/1.1 204 No Content\r\n", false);
        check(202, "HTTP/1.1 409 Conflict\r\n", false);
        check(400, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n", false);
    }

    #[test]
    fn a_batch_of_the_largest_entities_is_within_the_services_limit() {
        for (bytes, expected) in [(1024, 100), (32_000, 95)] {
            assert_eq!(operations(&DataSet::new(1000, bytes).unwrap()), expected);
        }
    }
}
