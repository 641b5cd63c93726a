//! Requests and headers that Azure does not have: explain, advice, hot partitions. `conformance/wire/extensions.http` has
//! those that fit a transcript.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use serde_json::Value;

use crate::shared_access::kit::table_token;
use crate::support::{ACCOUNT, Answer, Client, Partita};

const JSON: (&str, &str) = ("Accept", "application/json;odata=nometadata");
const EXPLAIN: (&str, &str) = ("x-partita-explain", "1");
const PARTITIONS: usize = 4;
const ROWS: usize = 25;

fn on_each_engine(test: impl Fn(&mut Client)) {
    test(&mut Partita::in_memory().client());
    let directory = tempfile::tempdir().unwrap();
    test(&mut Partita::in_directory(directory.path()).client());
}

fn fill(client: &mut Client) {
    let headers = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
    assert_eq!(client.send("POST", "/Tables", &headers, br#"{"TableName":"Books"}"#).status, 204);
    for partition in 0..PARTITIONS {
        for row in 0..ROWS {
            let body = format!(r#"{{"PartitionKey":"p{partition}","RowKey":"r{row:02}","N":{row}}}"#);
            assert_eq!(client.send("POST", "/Books", &headers, body.as_bytes()).status, 204);
        }
    }
}

fn query(client: &mut Client, filter: &str, headers: &[(&str, &str)]) -> Answer {
    let path = format!("/Books()?$filter={}", filter.replace(' ', "%20"));
    client.send("GET", &path, &[&[JSON], headers].concat(), b"")
}

/// Without a signature in a header.
fn unsigned(client: &mut Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    client.send_raw("GET", &format!("/{ACCOUNT}{path}"), headers, b"").unwrap()
}

fn explained(answer: &Answer) -> Value {
    serde_json::from_str(answer.header("x-partita-explain").unwrap_or_else(|| panic!("{answer:?}"))).unwrap()
}

#[test]
fn an_explanation_has_the_numbers_of_the_engine() {
    on_each_engine(|client| {
        fill(client);
        for (filter, class, examined, returned) in [
            ("PartitionKey eq 'p1' and RowKey eq 'r07'", "point", 1, 1),
            ("PartitionKey eq 'p1' and RowKey eq 'none'", "point", 0, 0),
            ("PartitionKey eq 'p1' and RowKey ge 'r10' and RowKey lt 'r20'", "range", 10, 10),
            ("PartitionKey eq 'p1' and N eq 3", "partition scan", 25, 1),
            ("N eq 3", "table scan", 100, 4),
            ("RowKey eq 'r03'", "table scan", 100, 4),
            ("PartitionKey eq 'p1' and PartitionKey eq 'p2'", "empty", 0, 0),
        ] {
            let answer = query(client, filter, &[EXPLAIN, ("x-partita-examined", "1")]);
            let shown = explained(&answer);
            let entities = answer.json()["value"].as_array().unwrap().len();
            assert_eq!((shown["class"].as_str(), entities), (Some(class), returned), "{filter}");
            assert_eq!(shown["examined"], examined, "{filter}");
            assert_eq!(answer.header("x-partita-examined"), Some(examined.to_string().as_str()), "{filter}");
            assert_eq!(
                (&shown["returned"], &shown["complete"]),
                (&returned.into(), &true.into()),
                "{filter}"
            );
            let path = format!("/$partita/explain/Books?run=true&$filter={}", filter.replace(' ', "%20"));
            let document = client.send("GET", &path, &[], b"").json();
            for name in
                ["class", "examined", "returned", "complete", "key_ranges", "ranges", "shape", "azure"]
            {
                assert_eq!(document[name], shown[name], "{filter}: {name}");
            }
            let silent = query(client, filter, &[]);
            assert_eq!(silent.header("x-partita-explain"), None, "the service has no such header");
            assert_eq!(silent.body, answer.body, "the answer itself is the same");
        }
        let proposal = &explained(&query(client, "N eq 3", &[EXPLAIN]))["proposal"];
        assert_eq!((&proposal["rows"], &proposal["instead_of"]), (&4.into(), &100.into()), "{proposal}");
        let page = client.send("GET", "/Books()?$top=10", &[JSON, EXPLAIN], b"");
        let shown = explained(&page);
        assert_eq!((&shown["examined"], &shown["complete"]), (&10.into(), &false.into()));
        assert_eq!(shown["azure"]["at_least"], true);
        let document = client.send("GET", "/$partita/explain/Books?run=true&$top=10", &[], b"").json();
        assert_eq!((&document["examined"], &document["complete"]), (&10.into(), &false.into()));
        assert_eq!(document["azure"]["at_least"], true);
    });
}

#[test]
fn what_explanations_say_was_examined_is_what_the_engine_counts() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let client = &mut server.client();
    fill(client);
    let counted = || {
        let metrics = server.metrics();
        [
            "partita_store_rows_scanned_total",
            "partita_store_point_reads_total",
            "partita_entities_examined_total",
        ]
        .map(|name| metrics[name] as u64)
    };
    for (filter, scanned, points) in [
        ("PartitionKey eq 'p1' and RowKey eq 'r07'", 0, 1),
        ("PartitionKey eq 'p1' and RowKey ge 'r10' and RowKey lt 'r20'", 10, 0),
        ("PartitionKey eq 'p1' and N eq 3", 25, 0),
        ("N eq 3", 100, 0),
        ("PartitionKey eq 'p1' and PartitionKey eq 'p2'", 0, 0),
    ] {
        let expected = (scanned, points, scanned + points, scanned + points);
        // The server itself reads some rows when a minute ends, to store the account's metrics; then it is asked again.
        testing::wait_until(&format!("{filter} reads {expected:?}"), || {
            let before = counted();
            let examined = explained(&query(client, filter, &[EXPLAIN]))["examined"].as_u64().unwrap();
            let after = counted();
            let [rows, gets, all] = [0, 1, 2].map(|at| after[at] - before[at]);
            ((rows, gets, all, examined) == expected).then_some(())
        });
    }
}

#[test]
fn a_query_that_is_refused_for_its_scan_has_not_read_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let client = &mut server.client();
    fill(client);
    let scanned = || server.metrics()["partita_store_rows_scanned_total"] as u64;
    let before = scanned();
    assert_eq!(query(client, "N eq 3", &[("x-partita-max-examined", "10")]).code(), "ScanTooLarge");
    assert_eq!(scanned() - before, 11, "one more tells that there are more");
}

#[test]
fn a_plan_that_is_not_run_estimates_what_it_would_examine() {
    on_each_engine(|client| {
        fill(client);
        for (filter, entities, requests, at_least) in [
            ("", 100, 1, false),
            ("N eq 3", 100, 1, true),
            ("PartitionKey eq 'p1'", 25, 1, false),
            ("PartitionKey eq 'p1' and RowKey lt 'r10'", 10, 1, false),
            ("PartitionKey ge 'p2' and N eq 3", 50, 1, true),
            ("PartitionKey eq 'p1' and RowKey eq 'r07'", 1, 1, false),
            ("PartitionKey eq 'p1' and PartitionKey eq 'p2'", 0, 1, false),
        ] {
            let path = format!("/$partita/explain/Books?$filter={}", filter.replace(' ', "%20"));
            let plan = client.send("GET", &path, &[], b"").json();
            let azure = &plan["azure"];
            assert_eq!(plan["estimated_entities"], entities, "{filter}: {plan}");
            assert_eq!(
                (&azure["entities"], &azure["requests"]),
                (&entities.into(), &requests.into()),
                "{filter}"
            );
            assert_eq!(azure["at_least"] == true, at_least, "{filter}: {plan}");
            assert_eq!(plan["examined"], Value::Null, "nothing was run");
        }
    });
}

#[test]
fn a_query_in_a_batch_is_explained_too() {
    let server = Partita::in_memory();
    let client = &mut server.client();
    fill(client);
    let body = format!(
        "--b\r\nContent-Type: application/http\r\n\r\nGET http://{}/{ACCOUNT}/Books()?$filter=N%20eq%203 HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\nx-partita-explain: 1\r\n\r\n\r\n--b--\r\n",
        client.address
    );
    let answer =
        client.send("POST", "/$batch", &[("Content-Type", "multipart/mixed; boundary=b")], body.as_bytes());
    assert!(answer.text().contains("x-partita-explain: {\"class\":\"table scan\""), "{}", answer.text());
}

#[test]
fn a_limit_refuses_what_examines_more_and_nothing_else() {
    on_each_engine(|client| {
        fill(client);
        for (filter, limit, status) in [
            ("N eq 3", "100", 200),
            ("N eq 3", "99", 400),
            ("PartitionKey eq 'p1' and N eq 3", "25", 200),
            ("PartitionKey eq 'p1' and N eq 3", "24", 400),
            ("PartitionKey eq 'p1' and RowKey eq 'r07'", "1", 200),
            ("PartitionKey eq 'p1' and RowKey eq 'r07'", "0", 400),
            ("PartitionKey eq 'p1' and RowKey eq 'none'", "0", 200),
        ] {
            let answer = query(client, filter, &[("x-partita-max-examined", limit)]);
            assert_eq!(answer.status, status, "{filter}, {limit}: {}", answer.text());
            assert_eq!(answer.code() == "ScanTooLarge", status == 400, "{filter}, {limit}");
            let path = format!("/$partita/explain/Books?run=true&$filter={}", filter.replace(' ', "%20"));
            let document = client.send("GET", &path, &[("x-partita-max-examined", limit)], b"");
            assert_eq!(document.status, status, "{filter}, {limit}: {}", document.text());
        }
    });
    let server = Partita::start(&["--in-memory", "--max-examined", "50"]);
    let client = &mut server.client();
    fill(client);
    assert_eq!(query(client, "N eq 3", &[]).code(), "ScanTooLarge");
    assert_eq!(query(client, "N eq 3", &[("x-partita-max-examined", "1000")]).code(), "ScanTooLarge");
    assert_eq!(query(client, "PartitionKey eq 'p1' and N eq 3", &[]).status, 200);
}

#[test]
fn discovery_names_the_version_the_store_and_what_it_can_do() {
    let directory = tempfile::tempdir().unwrap();
    for (server, store) in
        [(Partita::in_memory(), "memory"), (Partita::in_directory(directory.path()), "embedded")]
    {
        let found = server.client().send("GET", "/$partita", &[], b"").json();
        assert_eq!((&found["version"], &found["store"]), (&env!("CARGO_PKG_VERSION").into(), &store.into()));
        for (ability, expected) in [("explain", true), ("advice", true), ("hot", true), ("jobs", false)] {
            assert_eq!(found["abilities"][ability], expected, "{ability}");
        }
    }
}

#[test]
fn without_extensions_every_answer_is_azures() {
    let server = Partita::start(&["--in-memory", "--extensions", "off"]);
    let client = &mut server.client();
    fill(client);
    for (path, status, code) in [
        ("/$partita", 400, "InvalidResourceName"),
        ("/$partita/hot", 400, "InvalidResourceName"),
        ("/$partita/explain/Books", 400, "InvalidResourceName"),
        ("/$anything/explain/Books", 400, "InvalidResourceName"),
    ] {
        let ours = client.send("GET", path, &[JSON], b"");
        assert_eq!((ours.status, ours.code().as_str()), (status, code), "{path}");
    }
    let headers = [EXPLAIN, ("x-partita-examined", "1"), ("x-partita-max-examined", "0")];
    let answer = query(client, "N eq 3", &headers);
    assert_eq!(answer.status, 200);
    assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("x-partita")), "{:?}", answer.headers);
}

#[test]
fn a_token_learns_nothing_outside_of_its_range() {
    let server = Partita::in_memory();
    let owner = &mut server.client();
    fill(owner);
    let range = [("spk", "p1"), ("srk", "r05"), ("epk", "p1"), ("erk", "r09")];
    let token = table_token(&[&[("tn", "Books"), ("sp", "r")], &range[..]].concat());
    let stranger = &mut server.client();
    let mut ask = |path: &str, headers: &[(&str, &str)]| {
        let mark = if path.contains('?') { '&' } else { '?' };
        unsigned(stranger, &format!("{path}{mark}{token}"), &[&[JSON], headers].concat())
    };
    let shown = explained(&ask("/Books()", &[EXPLAIN]));
    assert_eq!((&shown["examined"], &shown["returned"]), (&5.into(), &5.into()), "{shown}");
    assert_eq!(shown["ranges"], serde_json::json!(["PartitionKey 'p1', RowKey from 'r05' to 'r09'"]));
    let document = ask("/$partita/explain/Books?run=true&$filter=N%20eq%203", &[]);
    let document = document.json();
    assert_eq!((&document["examined"], &document["returned"]), (&5.into(), &0.into()), "{document}");
    assert_eq!(document["azure"]["entities"], 5);
    let plan = ask("/$partita/explain/Books?$filter=N%20eq%203", &[]).json();
    assert_eq!(
        (&plan["estimated_entities"], &plan["azure"]["entities"]),
        (&Value::Null, &Value::Null),
        "{plan}"
    );
    // One entity outside of the range: no row is examined, whether it exists or not.
    for row in ["r20", "none"] {
        let path = format!("/Books()?$filter=PartitionKey%20eq%20'p1'%20and%20RowKey%20eq%20'{row}'");
        let shown = explained(&ask(&path, &[EXPLAIN]));
        assert_eq!((&shown["examined"], &shown["key_ranges"]), (&0.into(), &0.into()), "{row}");
    }
    for path in ["/$partita/hot", "/$partita/advice", "/$partita/explain/Others"] {
        assert_eq!(ask(path, &[]).status, 403, "{path}");
    }
    assert_eq!(ask("/$partita", &[]).status, 200, "whoever is known may ask what the server can do");
}

#[test]
fn nobody_is_told_anything_without_a_credential() {
    let server = Partita::in_memory();
    let client = &mut server.client();
    for path in ["/$partita", "/$partita/hot", "/$partita/advice", "/$partita/explain/Books"] {
        let answer = unsigned(client, path, &[]);
        assert!(matches!(answer.status, 401 | 403), "{path}: {}", answer.status);
        assert!(answer.header("content-type").unwrap().starts_with("application/json"), "{path}");
    }
}

#[test]
fn the_filter_of_the_largest_request_is_explained_in_a_short_header() {
    let server = Partita::in_memory();
    let client = &mut server.client();
    fill(client);
    // About 30 KiB of different names, and keys with quotes, controls and letters beyond ASCII.
    let terms: Vec<String> = (0..1500).map(|n| format!("Property{n}%20eq%20{n}")).collect();
    let path = format!("/Books()?$filter={}", terms.join("%20or%20"));
    let shown = explained(&client.send("GET", &path, &[JSON, EXPLAIN], b""));
    assert_eq!((&shown["examined"], &shown["returned"]), (&100.into(), &0.into()));
    let path = "/Books()?$filter=PartitionKey%20eq%20'%0D%0ASet-Cookie:%20a%22%C3%A9%F0%9D%84%9E'%20and%20N%20eq%203";
    let answer = client.send("GET", path, &[JSON, EXPLAIN], b"");
    assert_eq!(answer.header("set-cookie"), None);
    let text = answer.header("x-partita-explain").unwrap();
    assert!(text.len() <= 4096 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
    // A key that a table can hold, and texts that are longer than a header may be.
    let path = "/Books()?$filter=PartitionKey%20eq%20'a%22%C3%A9%F0%9D%84%9E'%20and%20N%20eq%203";
    let answer = client.send("GET", path, &[JSON, EXPLAIN], b"");
    let text = answer.header("x-partita-explain").unwrap();
    assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
    assert_eq!(explained(&answer)["ranges"], serde_json::json!(["PartitionKey 'a\"é𝄞'"]));
    let note = "%F0%9D%84%9E".repeat(60);
    let points: Vec<String> = (0..4).map(|n| format!("RowKey%20eq%20'{note}{n}'")).collect();
    let path = format!("/Books()?$filter=PartitionKey%20eq%20'{note}'%20and%20({})", points.join("%20or%20"));
    let answer = client.send("GET", &path, &[JSON, EXPLAIN], b"");
    let shown = explained(&answer);
    assert!(answer.header("x-partita-explain").unwrap().len() <= 4096);
    assert_eq!((&shown["key_ranges"], &shown["ranges"]), (&4.into(), &Value::Null), "{shown}");
    let points: Vec<String> = (0..1200).map(|n| format!("RowKey%20eq%20'{n}'")).collect();
    let path = format!("/Books()?$filter=PartitionKey%20eq%20'p1'%20and%20({})", points.join("%20or%20"));
    let shown = explained(&client.send("GET", &path, &[JSON, EXPLAIN], b""));
    assert_eq!((shown["class"].as_str(), &shown["key_ranges"]), (Some("point"), &1200.into()));
}

#[test]
fn advice_and_hot_partitions_tell_the_owner_what_was_asked() {
    on_each_engine(|client| {
        fill(client);
        for _ in 0..3 {
            assert_eq!(query(client, "N eq 3", &[]).status, 200);
        }
        for _ in 0..40 {
            let path = "/Books(PartitionKey='p2',RowKey='r01')";
            assert_eq!(client.send("GET", path, &[JSON], b"").status, 200);
        }
        let advice = client.send("GET", "/$partita/advice", &[], b"").json();
        let first = &advice["shapes"][0];
        assert_eq!((first["table"].as_str(), first["shape"].as_str()), (Some("books"), Some("N eq Int32")));
        assert_eq!(
            (&first["queries"], &first["examined"], &first["in_vain"]),
            (&3.into(), &300.into(), &288.into())
        );
        assert_eq!(first["proposal"]["kind"], "index-table");
        assert!(
            first["proposal"]["text"].as_str().unwrap().ends_with("About 4 rows instead of 100."),
            "{first}"
        );
        let hot = client.send("GET", "/$partita/hot?top=1", &[], b"").json();
        // The requests may have crossed a minute.
        let of = |minute: &str| {
            let found =
                hot[minute]["partitions"].as_array().unwrap().iter().find(|hot| hot["partition"] == "p2");
            found.map_or(0, |hot| hot["requests"].as_u64().unwrap())
        };
        assert_eq!(of("this_minute") + of("last_minute"), (40 + ROWS) as u64, "{hot}");
        for minute in ["this_minute", "last_minute"] {
            assert!(hot[minute]["partitions"].as_array().unwrap().len() <= 1, "{hot}");
        }
        // Requests to all partitions were few, but examined most.
        for by in ["requests", "entities"] {
            let hot = client.send("GET", &format!("/$partita/hot?by={by}"), &[], b"").json();
            let minutes = ["this_minute", "last_minute"].map(|minute| &hot[minute]["partitions"]);
            let of = |minute: &Value| {
                let listed = minute.as_array().unwrap().iter();
                listed.map(|hot| hot[by].as_u64().unwrap()).collect::<Vec<u64>>()
            };
            assert!(minutes.iter().all(|minute| of(minute).is_sorted_by(|a, b| a >= b)), "{by}: {hot}");
            assert!(minutes.iter().any(|minute| of(minute).len() > 1), "{by}: {hot}");
        }
    });
}
