//! Writes a batch request, for clients (spec: table-operations 6.2).

/// One change of a transaction.
#[derive(Clone, Debug)]
pub struct PartRequest<'a> {
    pub method: &'a str,
    /// Absolute.
    pub url: &'a str,
    pub if_match: Option<&'a str>,
    /// Empty for a deletion.
    pub body: &'a [u8],
}

pub fn request_content_type(batch_id: &str) -> String {
    format!("multipart/mixed; boundary=batch_{batch_id}")
}

/// The caller chooses the ids. JSON escapes line breaks, so a body can't contain a boundary.
pub fn write_request(batch_id: &str, changeset_id: &str, operations: &[PartRequest<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(operations.iter().map(|operation| 512 + operation.body.len()).sum());
    let push = |out: &mut Vec<u8>, pieces: &[&str]| {
        pieces.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    };
    push(&mut out, &["--batch_", batch_id, "\r\n"]);
    push(&mut out, &["Content-Type: multipart/mixed; boundary=changeset_", changeset_id, "\r\n\r\n"]);
    for operation in operations {
        push(&mut out, &["--changeset_", changeset_id, "\r\nContent-Type: application/http\r\n"]);
        push(&mut out, &["Content-Transfer-Encoding: binary\r\n\r\n"]);
        push(&mut out, &[operation.method, " ", operation.url, " HTTP/1.1\r\n"]);
        push(&mut out, &["Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"]);
        if !operation.body.is_empty() {
            push(&mut out, &["Content-Type: application/json\r\n"]);
        }
        if operation.method == "POST" {
            push(&mut out, &["Prefer: return-no-content\r\n"]);
        }
        if let Some(if_match) = operation.if_match {
            push(&mut out, &["If-Match: ", if_match, "\r\n"]);
        }
        push(&mut out, &["\r\n"]);
        out.extend_from_slice(operation.body);
        push(&mut out, &["\r\n"]);
    }
    push(&mut out, &["--changeset_", changeset_id, "--\r\n--batch_", batch_id, "--\r\n"]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, BatchPart, read};

    #[test]
    fn a_server_reads_what_a_client_writes() {
        let operations = [
            PartRequest { method: "POST", url: "http://h/Books", if_match: None, body: b"{\"a\":1}" },
            PartRequest {
                method: "DELETE",
                url: "http://h/Books(PartitionKey='a b')",
                if_match: Some("*"),
                body: b"",
            },
        ];
        let body = write_request("1", "2", &operations);
        let content_type = request_content_type("1");
        let Ok(Batch::ChangeSet(parts)) = read(&content_type, &body) else { panic!("no change set") };
        let found =
            |part: &BatchPart<'_>| (part.method.to_owned(), part.target.to_owned(), part.body.to_vec());
        let sent = |operation: &PartRequest<'_>| {
            (operation.method.to_owned(), operation.url.to_owned(), operation.body.to_vec())
        };
        assert_eq!(
            parts.iter().map(found).collect::<Vec<_>>(),
            operations.iter().map(sent).collect::<Vec<_>>()
        );
        assert!(parts[0].headers.contains(&("Prefer", "return-no-content")), "{:?}", parts[0].headers);
        assert!(parts[1].headers.contains(&("If-Match", "*")), "{:?}", parts[1].headers);
    }
}
