//! Pages that are too large for a transcript: a thousand entities, megabytes of bodies, kilobytes of URLs.
//! The other cases are in `conformance/wire/{paging,top}.http`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::fmt::Write as _;

use crate::support::{Client, Partita};

const NONE: [(&str, &str); 1] = [("Accept", "application/json;odata=nometadata")];
const JSON: [(&str, &str); 2] = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];

/// In memory and on disk: pages must not depend on the engine.
fn on_each_engine(test: impl Fn(&mut Client)) {
    test(&mut Partita::in_memory().client());
    let directory = tempfile::tempdir().unwrap();
    test(&mut Partita::in_directory(directory.path()).client());
}

fn create(client: &mut Client, table: &str) {
    let body = format!("{{\"TableName\":\"{table}\"}}");
    assert_eq!(client.send("POST", "/Tables", &JSON, body.as_bytes()).status, 204);
}

/// Inserts rows of one partition, in batches of this size.
fn insert(client: &mut Client, table: &str, partition: &str, rows: &[String], batch: usize, value: &str) {
    for rows in rows.chunks(batch) {
        let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
        for row in rows {
            let _ = write!(
                body,
                "--c\r\nContent-Type: application/http\r\n\r\nPOST /{table} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"{value}}}\r\n"
            );
        }
        body.push_str("--c--\r\n--b--\r\n");
        let headers = [("Content-Type", "multipart/mixed; boundary=b"), NONE[0]];
        let answer = client.send("POST", "/$batch", &headers, body.as_bytes());
        assert_eq!(answer.status, 202);
        assert_eq!(answer.text().matches("HTTP/1.1 204").count(), rows.len(), "{}", answer.text());
    }
}

/// All row keys page by page; `options` begins with `&` or is empty.
fn pages(client: &mut Client, table: &str, options: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("/{table}()?$select=RowKey{options}{next}");
        let answer = client.send("GET", &path, &NONE, b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let rows = answer.json()["value"].as_array().unwrap().clone();
        pages.push(rows.iter().map(|row| row["RowKey"].as_str().unwrap().to_owned()).collect());
        let partition = answer.header("x-ms-continuation-NextPartitionKey");
        let row = answer.header("x-ms-continuation-NextRowKey");
        let Some((partition, row)) = partition.zip(row) else { return pages };
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
}

fn lengths(pages: &[Vec<String>]) -> Vec<usize> {
    pages.iter().map(Vec::len).collect()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:06}")).collect()
}

#[test]
fn a_thousand_entities_fill_a_page_and_one_more_needs_another() {
    on_each_engine(|client| {
        create(client, "Rows");
        let all = numbered(1001);
        insert(client, "Rows", "p", &all[..1000], 100, "");
        assert_eq!(lengths(&pages(client, "Rows", "")), [1000], "exactly a thousand: no token");
        assert_eq!(lengths(&pages(client, "Rows", "&$top=1000")), [1000]);
        insert(client, "Rows", "p", &all[1000..], 100, "");
        let found = pages(client, "Rows", "");
        assert_eq!(lengths(&found), [1000, 1]);
        assert_eq!(found.concat(), all);
    });
}

#[test]
fn every_row_is_returned_once_and_in_order_with_any_page_size() {
    on_each_engine(|client| {
        create(client, "Rows");
        let all = numbered(250);
        for (partition, rows) in ["a", "b", "c"].iter().zip(all.chunks(100)) {
            insert(client, "Rows", partition, rows, 100, ",\"V\":1");
        }
        for top in [1, 7, 100, 249, 250, 251] {
            let found = pages(client, "Rows", &format!("&$top={top}"));
            assert_eq!(found.concat(), all, "{top}");
            let expected = all.len().div_ceil(top);
            assert_eq!(found.len(), expected, "{top}: {:?}", lengths(&found));
        }
        // A filter that keeps every row, one that keeps none, one over part of the keys.
        assert_eq!(pages(client, "Rows", "&$top=100&$filter=V+eq+1").concat(), all);
        assert_eq!(pages(client, "Rows", "&$top=100&$filter=V+eq+2").concat(), [""; 0]);
        let range = "&$top=30&$filter=RowKey+ge+'000050'+and+RowKey+lt+'000150'";
        assert_eq!(pages(client, "Rows", range).concat(), all[50..150]);
        let either = "&$top=9&$filter=PartitionKey+eq+'c'+or+PartitionKey+eq+'a'";
        assert_eq!(pages(client, "Rows", either).concat(), [&all[..100], &all[200..]].concat());
    });
}

#[test]
fn a_page_ends_at_four_mebibytes() {
    const ROWS: usize = 150;
    const VALUE_BYTES: usize = 60 * 1024;
    on_each_engine(|client| {
        create(client, "Rows");
        let value = format!(",\"V@odata.type\":\"Edm.Binary\",\"V\":\"{}\"", "AAAA".repeat(VALUE_BYTES / 3));
        let all = numbered(ROWS);
        insert(client, "Rows", "p", &all, 40, &value);
        let found = pages(client, "Rows", "");
        assert_eq!(found.concat(), all);
        // 68 of these rows have four mebibytes; the row that reaches the limit is still in the page.
        let (last, full) = found.split_last().unwrap();
        assert!(full.iter().all(|page| (60..=75).contains(&page.len())), "{:?}", lengths(&found));
        assert!(!last.is_empty() && last.len() <= 75, "{:?}", lengths(&found));
        // Only returned rows count: rows that the filter drops take no room.
        let few = pages(client, "Rows", "&$filter=RowKey+ge+'000140'+or+V+eq+X''");
        assert_eq!(few.concat(), all[140..]);
        // $top stays the smaller bound.
        assert_eq!(lengths(&pages(client, "Rows", "&$top=50")), [50, 50, 50]);
    });
}

#[test]
fn inserts_and_deletes_between_pages_do_not_disturb_paging() {
    on_each_engine(|client| {
        create(client, "Rows");
        let all = numbered(30);
        insert(client, "Rows", "p", &all, 100, "");
        let first = client.send("GET", "/Rows()?$select=RowKey&$top=10", &NONE, b"");
        let token = first.header("x-ms-continuation-NextRowKey").unwrap().to_owned();
        let partition = first.header("x-ms-continuation-NextPartitionKey").unwrap().to_owned();
        for row in &all[8..15] {
            let path = format!("/Rows(PartitionKey='p',RowKey='{row}')");
            assert_eq!(client.send("DELETE", &path, &[("If-Match", "*")], b"").status, 204);
        }
        insert(client, "Rows", "p", &["000012x".to_owned(), "000000x".to_owned()], 100, "");
        let options = format!("&NextPartitionKey={partition}&NextRowKey={token}");
        let rest = client.send("GET", &format!("/Rows()?$select=RowKey{options}"), &NONE, b"").json();
        let rest: Vec<&str> =
            rest["value"].as_array().unwrap().iter().map(|row| row["RowKey"].as_str().unwrap()).collect();
        assert_eq!(rest[0], "000012x");
        assert_eq!(rest[1..], all[15..]);
    });
}

#[test]
fn a_thousand_tables_fill_a_page() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let names: Vec<String> = (0..1001).map(|number| format!("Table{number:04}")).collect();
    let list = |client: &mut Client, next: &str| {
        let answer = client.send("GET", &format!("/Tables{next}"), &NONE, b"");
        let tables = answer.json()["value"].as_array().unwrap().clone();
        let names: Vec<String> =
            tables.iter().map(|table| table["TableName"].as_str().unwrap().to_owned()).collect();
        (names, answer.header("x-ms-continuation-NextTableName").map(str::to_owned))
    };
    for name in &names[..1000] {
        create(&mut client, name);
    }
    assert_eq!(list(&mut client, ""), (names[..1000].to_vec(), None), "exactly a thousand: no token");
    create(&mut client, &names[1000]);
    let (first, next) = list(&mut client, "");
    assert_eq!(first, names[..1000]);
    let (second, next) = list(&mut client, &format!("?NextTableName={}", next.unwrap()));
    assert_eq!((second.as_slice(), next), (&names[1000..], None));
}

#[test]
fn filters_of_thirty_and_sixty_kilobytes_are_answered() {
    on_each_engine(|client| {
        create(client, "Rows");
        let all = numbered(500);
        insert(client, "Rows", "p", &all, 100, ",\"V\":1");
        for kilobytes in [30, 63] {
            // Keys, each a range; one of ten exists.
            let keys = chain(kilobytes, |n| format!("RowKey+eq+'{:06}'", n * 10));
            let found = pages(client, "Rows", &format!("&$filter=PartitionKey+eq+'p'+and+({keys})"));
            assert_eq!(found.concat(), (0..50).map(|n| format!("{:06}", n * 10)).collect::<Vec<_>>());
            // A property, which is evaluated for every row; only the last term is true.
            let values = chain(kilobytes, |n| format!("V+eq+{}", n + 2)) + "+or+V+eq+1";
            assert_eq!(pages(client, "Rows", &format!("&$filter={values}")).concat(), all);
        }
    });
}

/// Terms joined by `or`, up to this length.
fn chain(kilobytes: usize, term: impl Fn(usize) -> String) -> String {
    let mut chain = term(0);
    for number in 1.. {
        if chain.len() >= kilobytes * 1024 {
            break;
        }
        chain = chain + "+or+" + &term(number);
    }
    chain
}

#[test]
fn a_query_reports_the_number_of_examined_entities_on_request() {
    on_each_engine(|client| {
        create(client, "Cost");
        let rows: Vec<_> = (0..50).map(|row| format!("{row:02}")).collect();
        for partition in ["a", "b"] {
            insert(client, "Cost", partition, &rows, 50, ",\"N\":1");
        }
        for (filter, examined) in [
            ("PartitionKey%20eq%20'a'%20and%20RowKey%20eq%20'07'", "1"),
            ("PartitionKey%20eq%20'a'%20and%20RowKey%20eq%20'none'", "0"),
            ("PartitionKey%20eq%20'a'%20and%20RowKey%20ge%20'10'%20and%20RowKey%20lt%20'20'", "10"),
            ("PartitionKey%20eq%20'a'%20and%20N%20eq%202", "50"),
            ("N%20eq%202", "100"),
        ] {
            let path = format!("/Cost()?$filter={filter}");
            let asked = client.send("GET", &path, &[NONE[0], ("x-partita-examined", "1")], b"");
            assert_eq!(asked.header("x-partita-examined"), Some(examined), "{filter}");
            let silent = client.send("GET", &path, &NONE, b"");
            assert_eq!(silent.header("x-partita-examined"), None, "the service has no such header");
        }
    });
}
