//! What makes a token valid: its fields, versions and keys, and what the log says about it.

use std::time::SystemTime;

use wire::signing::AccountKey;

use super::kit::{
    ACCEPT, ACCOUNT_TOKEN, FAILED, FAILED_TEXT, FIRST_KEY, FUTURE, Fields, NOT_FOUND, OPERATIONS, PAST,
    PERMISSION, SECOND_KEY, TABLE_TOKEN, account_string, account_token, create, encode, expect, get, outcome,
    owner, query, send, send_batch, sign, signature, table_token, value, with,
};
use crate::support::ACCOUNT;
use crate::support::Client;
use crate::support::KEY;
use crate::support::Partita;
use crate::support::batch::Request;

/// Every field with a value and another value.
const TABLE_FIELDS: [(&str, &str, &str); 12] = [
    ("sv", "2019-02-02", "2019-07-07"),
    ("tn", "Rows", "Others"),
    ("sp", "r", "raud"),
    ("st", PAST, "2020-01-01T00:00:01Z"),
    ("se", FUTURE, "2199-01-01T00:00:01Z"),
    ("sip", "127.0.0.1", "127.0.0.0-127.0.0.9"),
    ("spr", "https,http", "https"),
    ("si", "policy", "other"),
    ("spk", "a", "A"),
    ("srk", "a", "A"),
    ("epk", "z", "zz"),
    ("erk", "z", "zz"),
];

const ACCOUNT_FIELDS: [(&str, &str, &str); 9] = [
    ("sv", "2020-12-06", "2021-02-12"),
    ("ss", "t", "bt"),
    ("srt", "o", "sco"),
    ("sp", "r", "rw"),
    ("st", PAST, "2020-01-01T00:00:01Z"),
    ("se", FUTURE, "2199-01-01T00:00:01Z"),
    ("sip", "127.0.0.1", "127.0.0.0-127.0.0.9"),
    ("spr", "https,http", "https"),
    ("ses", "scope", "other"),
];

#[test]
fn a_token_with_any_change_is_refused() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>policy</Id></SignedIdentifier><SignedIdentifier><Id>other</Id></SignedIdentifier></SignedIdentifiers>";
    assert_eq!(owner(&mut client, "PUT", "/Rows?comp=acl", policies).status, 204);
    let version = [("x-ms-version", "2019-02-02".to_owned())].to_vec();
    let mut try_one =
        |token: &str| send(&mut client, token, &Request { headers: version.clone(), ..get("/Rows()") });
    for all in [&TABLE_FIELDS[..], &ACCOUNT_FIELDS] {
        let full: Fields<'_> = all.iter().map(|(name, value, _)| (*name, *value)).collect();
        let signature = signature(ACCOUNT, KEY, &full);
        assert_eq!(outcome(&try_one(&query(&full, &signature))), "ok");
        for (name, own, other) in all {
            let twice = format!("{}&{name}={}", query(&full, &signature), encode(own));
            for token in [
                query(&with(&full, &[(name, other)]), &signature),
                query(&with(&full, &[(name, "")]), &signature),
                twice,
            ] {
                expect(&try_one(&token), 403, FAILED, FAILED_TEXT);
            }
        }
        // With one field more.
        let few = if all.len() == 12 { TABLE_TOKEN.to_vec() } else { ACCOUNT_TOKEN.to_vec() };
        let few = with(&few, &[("sv", value(&full, "sv"))]);
        assert_eq!(outcome(&try_one(&sign(&few))), "ok");
        let signed = self::signature(ACCOUNT, KEY, &few);
        for (name, own, _) in all.iter().filter(|(name, ..)| value(&few, name).is_empty()) {
            expect(&try_one(&query(&with(&few, &[(name, own)]), &signed)), 403, FAILED, FAILED_TEXT);
        }
        let swapped = if signature.starts_with('A') { "B" } else { "A" };
        let foreign = self::signature(ACCOUNT, SECOND_KEY, &full);
        let others = self::signature("other", KEY, &full);
        for wrong in ["", "x", &format!("{swapped}{}", &signature[1..]), &signature[..43], &foreign, &others]
        {
            expect(&try_one(&query(&full, wrong)), 403, FAILED, FAILED_TEXT);
        }
    }
}

#[test]
fn a_token_with_a_missing_or_malformed_field_is_refused() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for changes in [
        &[("se", PAST)][..],
        &[("se", "2020-01-01")],
        &[("st", FUTURE)],
        &[("se", "")],
        &[("sp", "")],
        &[("se", "tomorrow")],
        &[("st", "yesterday")],
        &[("sip", "localhost")],
        &[("spr", "http")],
    ] {
        for token in [table_token(changes), account_token(changes)] {
            expect(&send(&mut client, &token, &get("/Rows()")), 403, FAILED, FAILED_TEXT);
        }
    }
    for changes in [
        &[("tn", "")][..],
        &[("tn", "no-table")],
        &[("si", "missing")],
        &[("srk", "a")],
        &[("erk", "a")],
        &[("sv", "2011-08-18")],
        // Letters in the order raud, none twice, no others.
        &[("sp", "ar")],
        &[("sp", "rr")],
        &[("sp", "rw")],
    ] {
        expect(&send(&mut client, &table_token(changes), &get("/Rows()")), 403, FAILED, FAILED_TEXT);
    }
    for changes in [&[("sv", "2014-02-14")][..], &[("ss", "")], &[("srt", "")]] {
        let fields = with(&ACCOUNT_TOKEN, changes);
        let key = AccountKey::parse(KEY).unwrap();
        let token = query(&fields, &key.sign(&account_string(ACCOUNT, &fields)));
        expect(&send(&mut client, &token, &get("/Rows()")), 403, FAILED, FAILED_TEXT);
    }
    for (se, st) in [("2199-01-01", "2020-01-01"), ("2199-01-01T00:00Z", "2020-01-01T00:00:00.1234567Z")] {
        let token = table_token(&[("se", se), ("st", st)]);
        assert_eq!(outcome(&send(&mut client, &token, &get("/Rows()"))), "ok");
    }
}

#[test]
fn a_token_is_valid_for_an_address_a_protocol_and_a_service() {
    const ADDRESS: &str = "AuthorizationSourceIPMismatch";
    const ADDRESS_TEXT: &str =
        "This request is not authorized to perform this operation using this source IP 127.0.0.1.";
    const PROTOCOL: &str = "AuthorizationProtocolMismatch";
    const PROTOCOL_TEXT: &str =
        "This request is not authorized to perform this operation using this protocol.";
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for (changes, refusal) in [
        (&[("sip", "127.0.0.1")][..], None),
        (&[("sip", "127.0.0.1-127.0.0.1")], None),
        (&[("sip", "126.0.0.0-128.0.0.0")], None),
        (&[("sip", "127.0.0.2")], Some((ADDRESS, ADDRESS_TEXT))),
        (&[("sip", "127.0.0.2-127.0.0.9")], Some((ADDRESS, ADDRESS_TEXT))),
        (&[("spr", "https,http")], None),
        (&[("spr", "http,https")], None),
        (&[("spr", "https")], Some((PROTOCOL, PROTOCOL_TEXT))),
        // In the service's order: time, address, protocol, then what the token is for.
        (&[("se", PAST), ("sip", "1.1.1.1")], Some((FAILED, FAILED_TEXT))),
        (&[("sip", "1.1.1.1"), ("spr", "https")], Some((ADDRESS, ADDRESS_TEXT))),
        (&[("spr", "https"), ("sp", "a")], Some((PROTOCOL, PROTOCOL_TEXT))),
    ] {
        for token in [table_token(changes), account_token(changes)] {
            let answer = send(&mut client, &token, &get("/Rows()"));
            match refusal {
                Some((code, text)) => expect(&answer, 403, code, text),
                None => assert_eq!(outcome(&answer), "ok", "{changes:?}"),
            }
        }
    }
    let service = "This request is not authorized to perform this operation using this service.";
    for changes in [&[("ss", "b")][..], &[("ss", "bqf"), ("srt", "s"), ("sp", "w")]] {
        let answer = send(&mut client, &account_token(changes), &get("/Rows()"));
        expect(&answer, 403, "AuthorizationServiceMismatch", service);
    }
    for services in ["t", "bt", "tb", "btqf"] {
        assert_eq!(outcome(&send(&mut client, &account_token(&[("ss", services)]), &get("/Rows()"))), "ok");
    }
    // Before 2015-04-05 a token has neither address nor protocol, and does not sign them.
    for changes in [[("sip", "127.0.0.2")], [("spr", "https")]] {
        let token = table_token(&[&[("sv", "2015-02-21")][..], &changes].concat());
        assert_eq!(outcome(&send(&mut client, &token, &get("/Rows()"))), "ok", "{changes:?}");
    }
}

#[test]
fn each_version_signs_in_its_own_layout() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for version in [
        "2012-02-12",
        "2013-08-15",
        "2014-02-14",
        "2015-02-21",
        "2015-04-05",
        "2018-11-09",
        "2019-02-02",
        "2020-12-06",
        "2023-11-03",
        "2026-02-06",
    ] {
        let json = if version < "2013-08-15" { ("Accept", "application/atom+xml") } else { ACCEPT };
        let range = [("spk", "a"), ("srk", "b"), ("epk", "c"), ("erk", "d")];
        for changes in [&[][..], &range, &[("st", PAST)]] {
            let token = table_token(&[&[("sv", version)], changes].concat());
            let target = format!("/{ACCOUNT}/Rows()?{token}");
            let answer = client.send_raw("GET", &target, &[json], b"").unwrap();
            assert_eq!(answer.status, 200, "{version} {}", answer.text());
            assert_eq!(answer.header("x-ms-version"), Some(version));
        }
        // Without permission, the answer says so or, in older versions, that the resource does not exist.
        let token = table_token(&[("sv", version), ("sp", "a")]);
        let answer = client.send_raw("GET", &format!("/{ACCOUNT}/Rows()?{token}"), &[json], b"").unwrap();
        let expected = if version < "2015-04-05" { (404, NOT_FOUND) } else { (403, PERMISSION) };
        assert_eq!((answer.status, answer.code().as_str()), expected, "{version}");
        if version >= "2015-04-05" {
            let answer = send(&mut client, &account_token(&[("sv", version)]), &get("/Rows()"));
            assert_eq!(outcome(&answer), "ok", "{version}");
        }
    }
}

#[test]
fn the_specifications_tokens_are_accepted() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "MyTable");
    // T1, T2, T7, T8, A1, A3, A4 of access-and-service 2.10; the first one also with an unescaped `/`.
    for token in [
        "sv=2019-02-02&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci%2F031kWIgJz0w%3D",
        "sv=2019-02-02&tn=MyTable&sp=raud&se=2030-01-01T00:00:00Z&sig=VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci/031kWIgJz0w=",
        "sv=2019-02-02&tn=MyTable&sp=r&st=2024-11-15T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.10&spr=https%2Chttp&spk=Coho%20Winery&srk=Auburn&epk=Coho%20Winery&erk=Seattle&sig=f374aSyMOcrtk1hW8OHbHMdx%2B7S%2FsFG%2BE3zfAia2ti4%3D",
        "sv=2019-02-02&tn=MyTable&sp=r&st=2024-11-15T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.10&spr=https%2Chttp&spk=Coho+Winery&srk=Auburn&epk=Coho+Winery&erk=Seattle&sig=f374aSyMOcrtk1hW8OHbHMdx+7S/sFG+E3zfAia2ti4=",
        "sv=2015-02-21&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=3UHVsm9PuASFBuDV7u0FaLJb9puTnz2XzB3NyB6W0iw%3D",
        "sv=2013-08-15&tn=MyTable&sp=raud&se=2030-01-01T00%3A00%3A00Z&sig=EA0lJS4cQKLIexF28yw%2Fyu34ZWSh8LTCyf5WwfYN4HI%3D",
        "sv=2019-02-02&sp=rwdlacu&ss=t&srt=sco&se=2030-01-01T00%3A00%3A00Z&sig=Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW%2BqY5V7MM9DMY%3D",
        "sv=2020-12-06&sp=rwdlacu&ss=t&srt=sco&se=2030-01-01T00%3A00%3A00Z&sig=mkX9joa5HxyiuCxzA090YZ5rIl1lVWCHUPrO7Y8D2xU%3D",
        "sv=2023-11-03&sp=rwdlacup&ss=bfqt&srt=sco&se=2030-01-01T00%3A00%3A00Z&spr=https%2Chttp&sig=0isK%2BwBGxvwwOHCwu%2FzBmvLyb%2Bvb74dKA2FjjQzlvIY%3D",
    ] {
        assert_eq!(outcome(&send(&mut client, token, &get("/MyTable()"))), "ok", "{token}");
    }
}

#[test]
fn a_token_decides_the_version_of_the_answer() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for (signed, parameter, header, expected) in [
        ("2019-02-02", "", "", "2019-02-02"),
        ("2019-02-02", "", "2015-12-11", "2015-12-11"),
        ("2019-02-02", "2018-03-28", "", "2018-03-28"),
        ("2019-02-02", "2018-03-28", "2015-12-11", "2018-03-28"),
        ("2014-02-14", "2018-03-28", "2015-12-11", "2018-03-28"),
        ("2014-02-14", "", "2015-12-11", "2015-12-11"),
        ("2013-08-15", "", "2015-12-11", "2013-08-15"),
        ("2013-08-15", "2018-03-28", "2015-12-11", "2013-08-15"),
        ("2013-08-15", "x", "x", "2013-08-15"),
        ("2019-02-02", "x", "", "InvalidHeaderValue"),
        ("2019-02-02", "", "x", "InvalidHeaderValue"),
    ] {
        let mut target = format!("/{ACCOUNT}/Rows()?{}", table_token(&[("sv", signed)]));
        if !parameter.is_empty() {
            target += &format!("&api-version={parameter}");
        }
        let mut headers = vec![ACCEPT];
        headers.extend(Some(("x-ms-version", header)).filter(|_| !header.is_empty()));
        let answer = client.send_raw("GET", &target, &headers, b"").unwrap();
        if answer.status == 200 {
            assert_eq!(answer.header("x-ms-version"), Some(expected), "{signed} {parameter} {header}");
        } else {
            assert!(answer.status == 400 && answer.text().contains(expected), "{}", answer.text());
        }
    }
}

#[test]
fn either_key_of_the_account_signs_tokens() {
    let account = format!("acct1:{FIRST_KEY}:{SECOND_KEY}");
    let other = format!("acct2:{KEY}");
    let server = Partita::start(&["--in-memory", "--account", &account, "--account", &other]);
    let mut client = Client::new(server.address, "acct1", FIRST_KEY);
    create(&mut client, "Rows");
    for fields in [&TABLE_TOKEN[..], &ACCOUNT_TOKEN] {
        for (name, key, expected) in [
            ("acct1", FIRST_KEY, "ok"),
            ("acct1", SECOND_KEY, "ok"),
            ("acct1", KEY, "403 AuthenticationFailed"),
            ("acct2", FIRST_KEY, "403 AuthenticationFailed"),
            ("acct2", KEY, "403 AuthenticationFailed"),
        ] {
            let token = query(fields, &signature(name, key, fields));
            let answer = send(&mut client, &token, &get("/Rows()"));
            assert_eq!(outcome(&answer), expected, "{name} {key} {fields:?}");
        }
    }
    // The secondary accepts the same tokens for reading.
    let token = query(&TABLE_TOKEN, &signature("acct1", FIRST_KEY, &TABLE_TOKEN));
    let read = client.send_raw("GET", &format!("/acct1-secondary/Rows()?{token}"), &[ACCEPT], b"").unwrap();
    assert_eq!(read.status, 200, "{}", read.text());
    let path = format!("/acct1-secondary/Rows(PartitionKey='p',RowKey='r')?{token}");
    let write = client.send_raw("PUT", &path, &[ACCEPT], b"").unwrap();
    assert_eq!(outcome(&write), "403 InsufficientAccountPermissions");
}

#[test]
fn a_header_wins_over_a_token() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let date = httpdate::fmt_http_date(SystemTime::now());
    let good = client.authorization(&format!("/{ACCOUNT}/Rows()"), &date);
    for (authorization, token, expected) in [
        (good.as_str(), table_token(&[]), "ok"),
        (&good, table_token(&[("se", PAST)]), "ok"),
        (&good, query(&TABLE_TOKEN, "wrong"), "ok"),
        (&good, format!("{}&sp=r&sp=r", table_token(&[])), "ok"),
        ("SharedKeyLite devstoreaccount1:wrong", table_token(&[]), "403 AuthenticationFailed"),
        ("nonsense", table_token(&[]), "400 InvalidAuthenticationInfo"),
        // An empty header is the same as none.
        ("", table_token(&[]), "ok"),
    ] {
        let target = format!("/{ACCOUNT}/Rows()?{token}");
        let headers =
            [ACCEPT, ("x-ms-date", &date), ("Authorization", authorization), ("x-ms-version", "2019-02-02")];
        let answer = client.send_raw("GET", &target, &headers, b"").unwrap();
        assert_eq!(outcome(&answer), expected, "{authorization:?} {token}");
    }
}

#[test]
fn the_log_names_what_failed_and_never_a_key_or_signature() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let server = Partita::logging_to(&log, "trace", &[]);
    let mut client = server.client();
    create(&mut client, "Rows");
    let mut signatures = Vec::new();
    let insert = OPERATIONS[2].at("p", "r");
    for (fields, request, in_batch, why) in [
        (
            with(&TABLE_TOKEN, &[("se", PAST)]),
            get("/Rows()"),
            false,
            "the token expired at 2020-01-01T00:00:00Z",
        ),
        (with(&TABLE_TOKEN, &[("st", FUTURE)]), get("/Rows()"), false, "the token is valid from 2199-01-01"),
        (with(&TABLE_TOKEN, &[("si", "gone")]), get("/Rows()"), false, "no stored policy"),
        (with(&TABLE_TOKEN, &[("sip", "1.1.1.1")]), get("/Rows()"), false, "127.0.0.1 is not in 1.1.1.1"),
        (with(&TABLE_TOKEN, &[("spr", "https")]), get("/Rows()"), false, "for https only"),
        (with(&TABLE_TOKEN, &[("srk", "a")]), get("/Rows()"), false, "srk is given without spk"),
        (with(&TABLE_TOKEN, &[("sp", "ar")]), get("/Rows()"), false, "letters of raud in this order"),
        (with(&ACCOUNT_TOKEN, &[("ss", "b")]), get("/Rows()"), false, "tables need t in ss"),
        (
            with(&TABLE_TOKEN, &[("sp", "ud")]),
            get("/Rows()"),
            false,
            "does not permit reading entities of Rows",
        ),
        (with(&TABLE_TOKEN, &[("sp", "rd")]), insert.clone(), true, "does not permit inserting into Rows"),
        (with(&TABLE_TOKEN, &[("epk", "outermost")]), insert.clone(), false, "outermost"),
        (with(&TABLE_TOKEN, &[("spk", "uttermost")]), insert, true, "uttermost"),
        (
            with(&TABLE_TOKEN, &[("sp", "a")]),
            get("/Rows()"),
            true,
            "does not permit reading entities of Rows",
        ),
    ] {
        let signature = signature(ACCOUNT, KEY, &fields);
        let token = query(&fields, &signature);
        let start = std::fs::metadata(&log).unwrap().len() as usize;
        let answer = if in_batch {
            send_batch(&mut client, &token, &[request])
        } else {
            send(&mut client, &token, &request)
        };
        assert!(outcome(&answer).starts_with("403 "), "{why}: {}", answer.text());
        let text = std::fs::read_to_string(&log).unwrap();
        let told = text[start..].lines().any(|line| line.contains("access refused") && line.contains(why));
        assert!(told, "not in the log: {why}\n{}", &text[start..]);
        signatures.push(signature);
    }
    // For a wrong signature, the log has the string to sign, but not the correct signature.
    let wrong = "d3Jvbmcgd3JvbmcgIHdyb25nIHdyb25nICB3cm9uZyE=";
    send(&mut client, &query(&TABLE_TOKEN, wrong), &get("/Rows()"));
    signatures.extend([wrong.to_owned(), signature(ACCOUNT, KEY, &TABLE_TOKEN)]);
    send(&mut client, &table_token(&[]), &get("/Rows()"));
    server.stop();

    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("/table/devstoreaccount1/rows"), "the string to sign is not in the log:\n{text}");
    assert!(!text.contains(KEY) && !text.contains(&KEY[..20]), "a key is in the log");
    for signature in signatures {
        let encoded = encode(&signature);
        assert!(
            !text.contains(&signature) && !text.contains(&encoded),
            "a signature is in the log: {signature}"
        );
    }
}
