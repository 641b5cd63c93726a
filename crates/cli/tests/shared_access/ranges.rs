//! What a token with a key range may read and write.

use wire::token;

use super::kit::{
    FAILURE, FAILURE_TEXT, NOT_FOUND, NOT_FOUND_TEXT, OPERATIONS, PERMISSION, PERMISSION_TEXT, create,
    encode, expect, get, owner, run, send, send_batch, stored, table_token, value,
};
use crate::support::Client;
use crate::support::Partita;
use crate::support::random::Random;
use crate::support::random::seed;

/// Whether a key lies in the range of these fields, computed as the documentation describes it.
fn in_range(fields: &[(&str, &str)], partition: &str, row: &str) -> bool {
    let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
    let of = |name| value(fields, name);
    let (partition, row) = (units(partition), units(row));
    let (first, last) = (units(of("spk")), units(of("epk")));
    let after_start = first.is_empty()
        || partition > first
        || (partition == first && (of("srk").is_empty() || row >= units(of("srk"))));
    let before_end = last.is_empty()
        || partition < last
        || (partition == last && (of("erk").is_empty() || row <= units(of("erk"))));
    after_start && before_end
}

/// All one-sided and two-sided ranges, one partition, one entity, and an empty range.
const RANGES: [&[(&str, &str)]; 12] = [
    &[],
    &[("spk", "B")],
    &[("spk", "B"), ("srk", "5")],
    &[("epk", "D")],
    &[("epk", "D"), ("erk", "5")],
    &[("spk", "B"), ("epk", "D")],
    &[("spk", "B"), ("srk", "5"), ("epk", "D")],
    &[("spk", "B"), ("epk", "D"), ("erk", "5")],
    &[("spk", "B"), ("srk", "5"), ("epk", "D"), ("erk", "5")],
    &[("spk", "C"), ("epk", "C")],
    &[("spk", "C"), ("srk", "5"), ("epk", "C"), ("erk", "5")],
    &[("spk", "D"), ("epk", "B")],
];

/// Keys on each edge, just outside of it, well inside, and in other partitions.
const PARTITIONS: [&str; 6] = ["A~", "B", "B0", "C", "D", "D0"];
const ROWS: [&str; 3] = ["4~", "5", "50"];

#[test]
fn entities_outside_of_the_range_can_not_be_read_or_written() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for range in RANGES {
        for (version, refusal) in
            [("2019-02-02", format!("403 {FAILURE}")), ("2015-02-21", format!("404 {NOT_FOUND}"))]
        {
            let token = table_token(&[&[("sv", version)], range].concat());
            for operation in OPERATIONS.into_iter().filter(|operation| operation.name != "query") {
                for (partition, row) in PARTITIONS.iter().flat_map(|p| ROWS.iter().map(move |r| (p, r))) {
                    let expected = match (in_range(range, partition, row), operation.name) {
                        (true, _) => "ok".to_owned(),
                        (false, "get") => format!("404 {NOT_FOUND}"),
                        (false, _) => refusal.clone(),
                    };
                    let found = run(&mut client, &token, operation, partition, row);
                    let what = format!("{} {partition} {row} within {range:?}", operation.name);
                    assert_eq!(found, [expected.clone(), expected], "{what}");
                }
            }
        }
    }
}

#[test]
fn only_a_request_inside_of_the_range_learns_whether_the_table_exists() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let token = table_token(&[("spk", "B"), ("epk", "B")]);
    for operation in OPERATIONS.into_iter().filter(|operation| operation.writes()) {
        expect(&send(&mut client, &token, &operation.at("C", "1")), 403, FAILURE, FAILURE_TEXT);
        let inside = send(&mut client, &token, &operation.at("B", "1"));
        assert_eq!((inside.status, inside.code().as_str()), (404, "TableNotFound"), "{}", operation.name);
    }
}

#[test]
fn refusals_outside_of_the_range_have_their_own_code_and_text() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let token = table_token(&[("spk", "B"), ("epk", "B")]);
    for operation in OPERATIONS.into_iter().filter(|operation| operation.writes()) {
        // It makes no difference whether the entity exists.
        for prepared in [false, true] {
            if prepared {
                operation.prepare(&mut client, "C", "1");
            }
            expect(&send(&mut client, &token, &operation.at("C", "1")), 403, FAILURE, FAILURE_TEXT);
        }
    }
    expect(&send(&mut client, &token, &OPERATIONS[1].at("C", "1")), 404, NOT_FOUND, NOT_FOUND_TEXT);
    // One refused part, and none of the others was done.
    let token = table_token(&[("spk", "C"), ("srk", "5"), ("epk", "C"), ("erk", "7")]);
    for operation in OPERATIONS.into_iter().filter(|operation| operation.writes()) {
        operation.prepare(&mut client, "C", "8");
        let before = stored(&mut client, "C", "8");
        let insert = OPERATIONS[2];
        let parts = [insert.at("C", "5"), insert.at("C", "6"), operation.at("C", "8")];
        let answer = send_batch(&mut client, &token, &parts);
        expect(&answer, 403, FAILURE, &format!("2:{FAILURE_TEXT}"));
        assert_eq!([stored(&mut client, "C", "5"), stored(&mut client, "C", "6")], [None, None]);
        assert_eq!(stored(&mut client, "C", "8"), before);
        // The same for a missing permission instead of a key outside of the range.
        if operation.needs != "a" {
            let token = table_token(&[("sp", "a")]);
            let answer = send_batch(&mut client, &token, &parts);
            expect(&answer, 403, PERMISSION, &format!("2:{PERMISSION_TEXT}"));
            assert_eq!(stored(&mut client, "C", "5"), None);
        }
    }
}

type Keys = Vec<(String, String)>;

/// All keys that a query returns, page by page, with a token or as the owner. No continuation may be outside of the
/// range.
fn pages(client: &mut Client, token: Option<&str>, range: &[(&str, &str)], options: &str) -> Keys {
    let mut keys = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("/Rows()?$select=PartitionKey,RowKey{options}{next}");
        let answer = match token {
            Some(token) => send(client, token, &get(&path)),
            None => owner(client, "GET", &path, ""),
        };
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        for entity in answer.json()["value"].as_array().unwrap() {
            let text = |name: &str| entity[name].as_str().unwrap().to_owned();
            keys.push((text("PartitionKey"), text("RowKey")));
        }
        let partition = answer.header("x-ms-continuation-NextPartitionKey");
        let row = answer.header("x-ms-continuation-NextRowKey");
        let Some((partition, row)) = partition.zip(row) else { return keys };
        let named = (token::decode(partition).unwrap(), token::decode(row).unwrap());
        assert!(in_range(range, &named.0, &named.1), "{range:?} continues at {named:?}");
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
}

#[test]
fn a_query_returns_only_entities_of_the_range() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for (partition, row) in PARTITIONS.iter().flat_map(|p| ROWS.iter().map(move |r| (p, r))) {
        OPERATIONS[0].prepare(&mut client, partition, row);
    }
    for range in RANGES {
        let token = table_token(range);
        let all = pages(&mut client, None, &[], "");
        let inside: Keys = all.iter().filter(|(p, r)| in_range(range, p, r)).cloned().collect();
        for options in ["", "&$top=1", "&$top=2", "&$top=1000"] {
            assert_eq!(pages(&mut client, Some(&token), range, options), inside, "{range:?} {options}");
        }
        let batch = send_batch(&mut client, &token, &[get("/Rows()")]).text();
        assert_eq!(batch.matches("\"PartitionKey\"").count(), inside.len(), "{range:?}: {batch}");
        // Filters and continuation tokens for keys outside of the range find nothing there.
        for (partition, row) in &all {
            let point = format!("&$filter=PartitionKey+eq+'{partition}'+and+RowKey+eq+'{row}'");
            let found = pages(&mut client, Some(&token), range, &point);
            assert_eq!(found.len(), usize::from(in_range(range, partition, row)), "{range:?} {point}");
            let from =
                format!("&NextPartitionKey={}&NextRowKey={}", token::encode(partition), token::encode(row));
            let path = format!("/Rows()?$select=PartitionKey,RowKey{from}");
            let answer = send(&mut client, &token, &get(&path));
            let rest = inside.iter().filter(|key| *key >= &(partition.clone(), row.clone())).count();
            assert_eq!(answer.json()["value"].as_array().unwrap().len(), rest, "{range:?} {from}");
        }
    }
}

#[test]
fn a_query_with_a_range_returns_the_same_as_the_owners_query_within_the_range() {
    const KEYS: [&str; 8] = ["a", "aa", "ab", "b", "é", "z", "\u{ff5e}", "\u{1f600}"];
    let seed = seed();
    println!("PARTITA_SEED={seed}");
    let directory = tempfile::tempdir().unwrap();
    for server in [Partita::in_memory(), Partita::in_directory(directory.path())] {
        let mut random = Random::new(seed);
        let mut client = server.client();
        create(&mut client, "Rows");
        for partition in KEYS {
            for row in KEYS {
                if random.chance(60) {
                    let path =
                        format!("/Rows(PartitionKey='{}',RowKey='{}')", encode(partition), encode(row));
                    let body = format!("{{\"V\":{}}}", random.below(5));
                    assert_eq!(owner(&mut client, "PUT", &path, &body).status, 204);
                }
            }
        }
        for round in 0..150 {
            let mut range = Vec::new();
            for (partition, row) in [("spk", "srk"), ("epk", "erk")] {
                if random.chance(70) {
                    range.push((partition, *random.pick(&KEYS)));
                    if random.chance(60) {
                        range.push((row, *random.pick(&KEYS)));
                    }
                }
            }
            let (partition, row) = (encode(random.pick::<&str>(&KEYS)), encode(random.pick::<&str>(&KEYS)));
            let compare = *random.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
            let filter = match random.below(6) {
                0 => String::new(),
                1 => format!("&$filter=V+{compare}+{}", random.below(5)),
                2 => format!("&$filter=PartitionKey+{compare}+'{partition}'"),
                3 => format!("&$filter=PartitionKey+eq+'{partition}'+and+RowKey+{compare}+'{row}'"),
                4 => format!("&$filter=RowKey+{compare}+'{row}'+or+PartitionKey+eq+'{partition}'"),
                _ => format!("&$filter=not+(PartitionKey+{compare}+'{partition}')+and+V+gt+1"),
            };
            let whole = pages(&mut client, None, &[], &filter);
            let expected: Keys = whole.into_iter().filter(|(p, r)| in_range(&range, p, r)).collect();
            let top =
                if random.chance(70) { format!("&$top={}", 1 + random.below(9)) } else { String::new() };
            let found = pages(&mut client, Some(&table_token(&range)), &range, &format!("{filter}{top}"));
            assert_eq!(found, expected, "seed {seed}, round {round}: {range:?} {filter} {top}");
        }
    }
}
