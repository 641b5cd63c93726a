//! Bodies that are nearly batches: what is accepted is the same batch when a client writes it again.

use model::limits;
use proptest::collection::vec;
use proptest::prelude::*;
use testing::{Reading, bytes_near, check_near, text_near};
use wire::batch::{Batch, BatchPart, PartRequest, read, request_content_type, write_request};

#[derive(Clone, Debug)]
struct Written {
    method: &'static str,
    url: String,
    if_match: Option<&'static str>,
    body: String,
}

fn written() -> impl Strategy<Value = Written> {
    let change = ("[A-Za-z]{3,6}", "\\{[ -~é]{0,20}\\}");
    prop_oneof![
        change.prop_map(|(table, body)| ("POST", table, None, body)),
        change.prop_map(|(table, body)| (
            "PUT",
            format!("{table}(PartitionKey='p',RowKey='r')"),
            Some("*"),
            body
        )),
        change.prop_map(|(table, _)| (
            "DELETE",
            format!("{table}(PartitionKey='p',RowKey='r')"),
            Some("*"),
            String::new()
        )),
    ]
    .prop_map(|(method, path, if_match, body)| Written {
        method,
        url: format!("http://h/{path}"),
        if_match,
        body,
    })
}

fn write(batch: &str, changes: &str, parts: &[Written]) -> Vec<u8> {
    let operations = parts.iter().map(|part| PartRequest {
        method: part.method,
        url: &part.url,
        if_match: part.if_match,
        body: part.body.as_bytes(),
    });
    write_request(batch, changes, &operations.collect::<Vec<_>>())
}

fn batch() -> impl Strategy<Value = Vec<u8>> {
    vec(written(), 1..4).prop_map(|parts| write("b", "c", &parts))
}

fn parts<'a, 'b>(batch: &'b Batch<'a>) -> &'b [BatchPart<'a>] {
    match batch {
        Batch::ChangeSet(parts) => parts,
        Batch::Closed => &[],
        Batch::Query(part) => std::slice::from_ref(part),
    }
}

/// Boundaries that do not occur in any input.
const BATCH: &str = "batch_of_the_second_reading";
const CHANGES: &str = "changes_of_the_second_reading";

/// As most clients write it.
fn written_again(batch: &Batch<'_>) -> Vec<u8> {
    let is_query = matches!(batch, Batch::Query(_));
    let mut out = format!("--{BATCH}\r\n").into_bytes();
    if !is_query {
        out.extend(format!("Content-Type: multipart/mixed; boundary={CHANGES}\r\n\r\n").bytes());
    }
    for part in parts(batch) {
        if !is_query {
            out.extend(format!("--{CHANGES}\r\n").bytes());
        }
        out.extend(
            format!("Content-Type: application/http\r\n\r\n{} {} HTTP/1.1\r\n", part.method, part.target)
                .bytes(),
        );
        for (name, value) in part.headers.iter() {
            out.extend(format!("{name}: {value}\r\n").bytes());
        }
        out.extend(b"\r\n");
        out.extend_from_slice(part.body);
        out.extend(b"\r\n");
    }
    if !is_query {
        out.extend(format!("--{CHANGES}--\r\n").bytes());
    }
    out.extend(format!("--{BATCH}--\r\n").bytes());
    out
}

fn check(body: &[u8]) -> Result<Reading, TestCaseError> {
    let content_type = request_content_type("b");
    let read_batch = read(&content_type, body);
    let Ok(batch) = &read_batch else { return Ok(Reading::Refused) };
    let parts = parts(batch);
    prop_assert!(parts.len() <= limits::BATCH_OPERATIONS_MAX + 1);
    for part in parts {
        // An echoed header can't contain a line end.
        let texts =
            part.headers.iter().flat_map(|(name, value)| [*name, *value]).chain([part.method, part.target]);
        for text in texts {
            prop_assert!(!text.contains(|c: char| c.is_ascii_control() && c != '\t'), "{:?}", text);
        }
    }
    if !parts.is_empty() {
        let again = written_again(batch);
        let content_type = format!("multipart/mixed; boundary={BATCH}");
        let text = String::from_utf8_lossy(&again).into_owned();
        prop_assert_eq!(read(&content_type, &again), Ok(batch.clone()), "{}", text);
    }
    Ok(Reading::Accepted)
}

#[test]
fn bytes_that_are_nearly_a_batch_are_one_batch_or_refused() {
    check_near(bytes_near(batch()), 20..=90, |body| check(&body));
}

const PIECES: [&str; 14] = [
    "--batch_b",
    "--changeset_c",
    "--",
    "\r\n",
    "\n",
    "\r\n\r\n",
    ":",
    "Content-Type: multipart/mixed; boundary=c\r\n",
    "PUT /T HTTP/1.1\r\n",
    "GET",
    "Content-ID: 1\r\n",
    "é",
    "\t",
    " HTTP/1.1",
];

#[test]
fn text_that_is_nearly_a_batch_is_one_batch_or_refused() {
    let batch = batch().prop_map(|body| String::from_utf8(body).unwrap());
    check_near(text_near(batch, &PIECES), 20..=90, |body| check(body.as_bytes()));
}

#[test]
fn a_batch_cut_off_anywhere_is_never_taken_for_a_shorter_one() {
    let cut = (vec(written(), 2..4), any::<prop::sample::Index>());
    check_near(cut, 0..=20, |(parts, at)| {
        let body = write("b", "c", &parts);
        let kept = &body[..at.index(body.len())];
        let content_type = request_content_type("b");
        let read = read(&content_type, kept);
        if let Ok(batch) = &read {
            // An empty change set is refused later.
            let is_nothing = self::parts(batch).is_empty();
            let is_whole = Ok(batch) == self::read(&content_type, &body).as_ref();
            prop_assert!(is_nothing || is_whole, "{}", String::from_utf8_lossy(kept));
        }
        Ok(Reading::of(&read))
    });
}

#[test]
fn a_content_type_that_is_nearly_right_leads_to_the_same_batch_or_is_refused() {
    let content_type = text_near(
        prop_oneof![
            Just("multipart/mixed; boundary=batch_b"),
            Just("Multipart/Mixed;boundary=\"batch_b\"; charset=utf-8")
        ]
        .prop_map(str::to_owned),
        &["boundary=", "boundary=x", ";", "\"", "=", " ", "text/plain", "multipart/mixed"],
    );
    check_near((content_type, vec(written(), 1..3)), 20..=90, |(content_type, parts)| {
        let body = write("b", "c", &parts);
        let usual = request_content_type("b");
        let read_so = read(&content_type, &body);
        if read_so.is_ok() {
            prop_assert_eq!(&read_so, &read(&usual, &body), "{}", content_type);
        }
        Ok(Reading::of(&read_so))
    });
}
