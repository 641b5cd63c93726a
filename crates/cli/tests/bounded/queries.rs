//! Queries: filters, `$select`, pages.

use super::kit::{BATCH, JSON, Target, change_set, encode, part_status, query_batch};

/// `PartitionKey eq '<long>' and (RowKey eq '0' or …)`, of about this many bytes.
fn filter_of_a_long_partition(key: usize, bytes: usize) -> String {
    let mut filter = format!("PartitionKey eq '{}' and (RowKey eq 'a'", "k".repeat(key));
    while filter.len() < bytes {
        filter.push_str(" or RowKey eq 'a");
        filter.push_str(&filter.len().to_string());
        filter.push('\'');
    }
    filter + ")"
}

#[test]
fn the_memory_of_a_filter_depends_on_its_length_and_not_on_its_ranges() {
    let target = Target::start(&[]);
    // As a client would send them, with blanks as `+`, which keeps the URL short enough.
    for (key, bytes) in [(500, 60_000), (30_000, 60_000)] {
        let filter =
            encode(&filter_of_a_long_partition(key, bytes - 3000).replace(' ', "+")).replace("%27", "'");
        let path = format!("/Big()?$filter={filter}");
        let request = target.client().signed("GET", &path, &[JSON], b"");
        let grown = target.peak_of(|| assert_eq!(target.flood(4, 4, &request), [200; 16]));
        assert!(grown <= 48, "a filter with a key of {key} took {grown} MiB");
    }
}

#[test]
fn a_filter_of_many_partitions_and_rows_is_not_multiplied_out() {
    let target = Target::start(&[]);
    let long = |n: usize| format!("{n}{}", "k".repeat(490));
    let partitions: Vec<_> = (0..50).map(|n| format!("PartitionKey eq '{}'", long(n))).collect();
    let rows: Vec<_> = (0..1200).map(|n| format!("RowKey eq 'a{n}'")).collect();
    let filter = format!("({}) and ({})", partitions.join(" or "), rows.join(" or ")).replace(' ', "+");
    let request = target.client().signed("GET", &format!("/Big()?$filter={filter}"), &[JSON], b"");
    let grown = target.peak_of(|| assert_eq!(target.flood(4, 2, &request), [200; 8]));
    assert!(grown <= 64, "{grown} MiB");
}

#[test]
fn the_target_of_a_batch_part_has_the_same_limit_as_that_of_a_request() {
    let target = Target::start(&[]);
    let mut client = target.client();
    let send = |client: &mut crate::support::Client, bytes: usize| {
        let filter = filter_of_a_long_partition(bytes / 2, bytes);
        client.send("POST", "/$batch", &[BATCH, JSON], &query_batch(&format!("/Big()?$filter={filter}")))
    };
    assert_eq!(part_status(&send(&mut client, 60_000)), 200);
    let grown = target.peak_of(|| {
        let answer = send(&mut client, 600_000);
        assert_eq!((answer.status, answer.code().as_str()), (400, "InvalidInput"), "{}", answer.text());
    });
    assert!(grown <= 48, "{grown} MiB");
    target.is_well();
}

#[test]
fn selected_names_that_no_entity_has_count_towards_the_size_of_a_page() {
    let target = Target::start(&["--request-mib", "64"]);
    let mut client = target.client();
    let parts = |from: usize| {
        change_set((from..from + 100).map(|n| {
            let body = format!(r#"{{"PartitionKey":"p","RowKey":"{n:04}"}}"#);
            ("POST", "/Big".to_owned(), "Prefer: return-no-content\r\n", body)
        }))
    };
    for from in (0..1000).step_by(100) {
        assert_eq!(client.send("POST", "/$batch", &[BATCH], &parts(from)).status, 202);
    }
    let names: Vec<String> = (0..230).map(|n| format!("n{n:03}{}", "x".repeat(250))).collect();
    let select = names.join(",");
    let long = client.send("GET", &format!("/Big()?$select={}", "a".repeat(60_000)), &[JSON], b"");
    assert_eq!((long.status, long.code().as_str()), (400, "InvalidInput"), "no property has such a name");

    let path = format!("/Big()?$select={select}");
    let page = client.send("GET", &path, &[JSON], b"");
    assert!(page.body.len() <= 9 * 1024 * 1024, "{} bytes", page.body.len());
    // All rows are shown, on as many pages as necessary.
    let (mut shown, mut from) = (0, String::new());
    loop {
        let page = client.send(
            "GET",
            &format!("/Big()?$select=PartitionKey,{}{from}", names[..20].join(",")),
            &[JSON],
            b"",
        );
        shown += page.json()["value"].as_array().unwrap().len();
        let Some(row) = page.header("x-ms-continuation-nextrowkey") else { break };
        let partition = page.header("x-ms-continuation-nextpartitionkey").unwrap();
        from = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
    assert_eq!(shown, 1000);

    let request = client.signed("GET", &path, &[JSON], b"");
    let grown = target.peak_of(|| {
        let statuses = target.flood(8, 2, &request);
        assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    });
    assert!(grown <= 160, "{grown} MiB");
    target.is_well();
}

/// Rows that fill a page.
fn fill_a_page(target: &Target) {
    let mut client = target.client();
    for row in 0..5 {
        let values: Vec<String> = (0..14).map(|n| format!(r#""V{n}":"{}""#, "v".repeat(30_000))).collect();
        target.insert(&mut client, &row.to_string(), &values.join(","));
        target.insert(&mut client, &format!("{row}b"), &values.join(","));
    }
}

#[test]
fn queries_in_batches_stay_within_the_memory_for_requests() {
    let target = Target::start(&["--request-mib", "16"]);
    fill_a_page(&target);
    let client = target.client();
    let request = client.signed("POST", "/$batch", &[BATCH, JSON], &query_batch("/Big()"));
    let grown = target.peak_of(|| {
        let mut unread: Vec<_> = (0..64).map(|_| target.connect()).collect();
        for stream in &mut unread {
            // Pipelined, so that the kernel's buffers fill up. A connection that is closed was answered before.
            let _ = std::io::Write::write_all(stream, &request.repeat(3));
        }
        // Answered only after those before it.
        let statuses = target.flood(4, 4, &request);
        assert!(statuses.iter().all(|status| matches!(status, 202 | 503)), "{statuses:?}");
    });
    assert!(grown <= 128, "{grown} MiB");
    target.is_well();
}
