//! Writes: conditions on large rows, merges, bodies in many chunks.

use std::io::Write;

use super::kit::{BATCH, JSON, JSON_BODY, Target, change_set};

/// Twenty rows of a megabyte.
fn large_rows(target: &Target) {
    let mut client = target.client();
    for row in 0..20 {
        let values: Vec<String> = (0..15).map(|n| format!(r#""V{n}":"{}""#, "v".repeat(32_000))).collect();
        target.insert(&mut client, &row.to_string(), &values.join(","));
    }
}

#[test]
fn a_condition_does_not_read_the_whole_row() {
    // The cache is too small for the rows, so reading one would take memory.
    let target = Target::start_with(&["--cache-mib", "8"]);
    large_rows(&target);
    // Refused because the last row is missing, so nothing changes however often it is sent.
    let parts = (0..21).map(|row| {
        let target = format!("/Big(PartitionKey='p',RowKey='{row}')");
        ("PUT", target, "If-Match: *\r\n", "{}".to_owned())
    });
    let request = target.client().signed("POST", "/$batch", &[BATCH, JSON], &change_set(parts));
    let grown = target.peak_of(|| assert_eq!(target.flood(64, 4, &request), [202; 256]));
    assert!(grown <= 64, "{grown} MiB");
    target.is_well();
}

#[test]
fn merges_into_large_rows_take_memory_for_one_transaction_at_a_time() {
    let target = Target::start(&[]);
    large_rows(&target);
    let parts = (0..20).map(|row| {
        let target = format!("/Big(PartitionKey='p',RowKey='{row}')");
        ("MERGE", target, "", r#"{"A":1}"#.to_owned())
    });
    let request = target.client().signed("POST", "/$batch", &[BATCH, JSON], &change_set(parts));
    let grown = target.peak_of(|| {
        let statuses = target.flood(24, 1, &request);
        assert!(statuses.iter().all(|status| matches!(status, 202 | 503)), "{statuses:?}");
        assert!(statuses.contains(&202), "{statuses:?}");
    });
    // One transaction at a time with its batch and its memtable, and the write buffers, which belong to the cache.
    assert!(grown <= 224, "{grown} MiB");
    target.is_well();
}

#[test]
fn a_body_in_chunks_of_one_byte_takes_no_more_memory_than_its_length() {
    let target = Target::start(&[]);
    let headers = [JSON_BODY, JSON, ("Transfer-Encoding", "chunked")];
    let head = target.client().signed("POST", "/Big", &headers, b"");
    let grown = target.peak_of(|| {
        let mut unfinished: Vec<_> = (0..8).map(|_| target.connect()).collect();
        let pieces = b"1\r\n \r\n".repeat(64 * 1024);
        for stream in &mut unfinished {
            stream.write_all(&head).unwrap();
        }
        // Not more chunks, because a request has 30 seconds, even on a busy machine.
        for _ in 0..4 {
            for stream in &mut unfinished {
                stream.write_all(&pieces).unwrap();
            }
        }
        for stream in &mut unfinished {
            stream.write_all(b"1\r\n{\r\n0\r\n\r\n").unwrap();
            let answer =
                crate::support::http::read_answer(&mut std::io::BufReader::new(stream), false).unwrap();
            assert_eq!(answer.code(), "InvalidInput");
        }
    });
    assert!(grown <= 96, "{grown} MiB");
}

#[test]
fn a_body_with_very_many_members_does_not_take_memory_for_each() {
    let target = Target::start(&[]);
    let client = target.client();
    let members = r#""a":0,"#.repeat(690_000);
    let json = format!(r#"{{{members}"b":0}}"#);
    let json = client.signed("POST", "/Big", &[JSON_BODY, JSON], json.as_bytes());
    let grown = target.peak_of(|| assert_eq!(target.flood(4, 2, &json), [400; 8]));
    assert!(grown <= 96, "{grown} MiB");

    let atom = format!(
        "<entry xmlns='http://www.w3.org/2005/Atom' xmlns:m='http://schemas.microsoft.com/ado/2007/08/dataservices/metadata' xmlns:d='http://schemas.microsoft.com/ado/2007/08/dataservices'><content><m:properties>{}</m:properties></content></entry>",
        "<d:a/>".repeat(600_000)
    );
    let headers = [("Content-Type", "application/atom+xml"), ("x-ms-version", "2013-08-15")];
    let atom = client.signed("POST", "/Big", &headers, atom.as_bytes());
    let grown = target.peak_of(|| assert_eq!(target.flood(4, 2, &atom), [400; 8]));
    assert!(grown <= 96, "{grown} MiB");
}
