//! Batch requests: the first line is the content type, the rest the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::limits;
use wire::batch::{Batch, BatchPart, read};

const BATCH: &str = "batch_of_the_second_reading";
const CHANGES: &str = "changes_of_the_second_reading";

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (content_type, body) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let Ok(content_type) = std::str::from_utf8(content_type) else { return };
    let Ok(batch) = read(content_type, body) else { return };
    let parts = match &batch {
        Batch::ChangeSet(parts) => parts.as_slice(),
        Batch::Closed => &[],
        Batch::Query(part) => std::slice::from_ref(part),
    };
    assert!(parts.len() <= limits::BATCH_OPERATIONS_MAX + 1);
    for part in parts {
        let is_control = |c: char| c.is_ascii_control() && c != '\t';
        let texts = part.headers.iter().flat_map(|(name, value)| [*name, *value]);
        for text in texts.chain([part.method, part.target]) {
            assert!(!text.contains(is_control), "{text:?} could end a line early");
        }
    }
    // The same operations, written as most clients do, are the same batch.
    let query = matches!(batch, Batch::Query(_));
    let written = write(parts, query);
    let holds = |word: &str| data.windows(word.len()).any(|window| window == word.as_bytes());
    let counts = (1..=limits::BATCH_OPERATIONS_MAX).contains(&parts.len());
    if counts && !holds(BATCH) && !holds(CHANGES) {
        let content_type = format!("multipart/mixed; boundary={BATCH}");
        let text = String::from_utf8_lossy(&written);
        assert_eq!(read(&content_type, &written), Ok(batch), "{text}");
    }
});

fn write(parts: &[BatchPart<'_>], query: bool) -> Vec<u8> {
    let mut out = format!("--{BATCH}\r\n").into_bytes();
    if !query {
        out.extend(format!("Content-Type: multipart/mixed; boundary={CHANGES}\r\n\r\n").bytes());
    }
    for part in parts {
        if !query {
            out.extend(format!("--{CHANGES}\r\n").bytes());
        }
        out.extend(b"Content-Type: application/http\r\n\r\n");
        out.extend(format!("{} {} HTTP/1.1\r\n", part.method, part.target).bytes());
        for (name, value) in part.headers.iter() {
            out.extend(format!("{name}: {value}\r\n").bytes());
        }
        out.extend(b"\r\n");
        out.extend(part.body);
        out.extend(b"\r\n");
    }
    if !query {
        out.extend(format!("--{CHANGES}--\r\n").bytes());
    }
    out.extend(format!("--{BATCH}--\r\n").bytes());
    out
}
