//! What the permission letters and resource types of a token allow.

use super::kit::{
    ACCEPT, FAILURE, FAILURE_TEXT, NOT_FOUND, NOT_FOUND_TEXT, OPERATIONS, PAST, PERMISSION, TYPE, TYPE_TEXT,
    account_token, create, expect, get, outcome, owner, request, run, send, send_batch, stored, subsets,
    table_token,
};
use crate::support::ACCOUNT;
use crate::support::Client;
use crate::support::Partita;
use crate::support::batch::Request;

#[test]
fn a_tables_token_does_what_its_letters_say() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for permissions in subsets("raud").iter().filter(|permissions| !permissions.is_empty()) {
        let token = table_token(&[("sp", permissions)]);
        for operation in OPERATIONS {
            let allowed = operation.needs.chars().all(|letter| permissions.contains(letter));
            let expected = if allowed { "ok".to_owned() } else { format!("403 {PERMISSION}") };
            let found = run(&mut client, &token, operation, "p", "r");
            assert_eq!(found, [expected.clone(), expected], "{} with {permissions}", operation.name);
        }
    }
}

#[test]
fn an_accounts_token_does_what_its_letters_and_types_say() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    for types in subsets("sco").iter().filter(|types| !types.is_empty()) {
        for permissions in ["r", "w", "d", "l", "a", "c", "u", "au", "ua", "rwdlacu", "rwdlc", "p"] {
            let token = account_token(&[("srt", types), ("sp", permissions)]);
            for operation in OPERATIONS {
                let allowed = operation.needs.chars().all(|letter| permissions.contains(letter));
                if !types.contains('o') {
                    // A batch is refused as a whole before any of its parts is read.
                    let answer = send(&mut client, &token, &operation.at("p", "r"));
                    expect(&answer, 403, TYPE, TYPE_TEXT);
                    let batch = request("POST", "/$batch", "");
                    expect(&send(&mut client, &token, &batch), 403, TYPE, TYPE_TEXT);
                    continue;
                }
                let expected = if allowed { "ok".to_owned() } else { format!("403 {PERMISSION}") };
                let found = run(&mut client, &token, operation, "p", "r");
                assert_eq!(
                    found,
                    [expected.clone(), expected],
                    "{} with {types} {permissions}",
                    operation.name
                );
            }
        }
    }
}

#[test]
fn an_accounts_token_needs_the_type_and_letter_for_tables_and_the_service() {
    const PROPERTIES: &str = "/?restype=service&comp=properties";
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let set = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    // A request, the resource types that allow it, and the letters that allow it.
    let table = [
        (get(PROPERTIES), "s", "r"),
        (request("PUT", PROPERTIES, set), "s", "w"),
        (get("/Tables"), "c", "l"),
        (get("/Tables('Rows')"), "c", "l"),
        (request("POST", "/Tables", "{\"TableName\":\"New\"}"), "c", "cw"),
        (Request { method: "DELETE", ..get("/Tables('New')") }, "c", "d"),
    ];
    for types in subsets("sco").iter().filter(|types| !types.is_empty()) {
        for permission in "rwdlacu".chars().map(|letter| letter.to_string()) {
            let token = account_token(&[("srt", types), ("sp", &permission)]);
            for (request, serving, letters) in &table {
                // The table `New` exists only before it is deleted.
                owner(&mut client, "DELETE", "/Tables('New')", "");
                if request.method == "DELETE" {
                    create(&mut client, "New");
                }
                let expected = if !serving.chars().any(|letter| types.contains(letter)) {
                    format!("403 {TYPE}")
                } else if !letters.contains(permission.as_str()) {
                    format!("403 {PERMISSION}")
                } else {
                    "ok".to_owned()
                };
                let found = outcome(&send(&mut client, &token, request));
                assert_eq!(found, expected, "{} {} with {types} {permission}", request.method, request.path);
            }
        }
    }
    // Statistics are read from the secondary.
    let statistics = |client: &mut Client, token: String| {
        let target = format!("/{ACCOUNT}-secondary/?restype=service&comp=stats&{token}");
        outcome(&client.send_raw("GET", &target, &[ACCEPT], b"").unwrap())
    };
    assert_eq!(statistics(&mut client, account_token(&[("srt", "s"), ("sp", "r")])), "ok");
    assert_eq!(statistics(&mut client, account_token(&[("srt", "co"), ("sp", "r")])), format!("403 {TYPE}"));
    assert_eq!(
        statistics(&mut client, account_token(&[("srt", "s"), ("sp", "wl")])),
        format!("403 {PERMISSION}")
    );
    assert_eq!(statistics(&mut client, table_token(&[])), format!("403 {FAILURE}"));
}

#[test]
fn only_the_owner_reads_policies_and_a_tables_token_works_only_in_its_table() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    create(&mut client, "Others");
    let properties = "/?restype=service&comp=properties";
    let empty = "<SignedIdentifiers/>";
    for token in [table_token(&[]), account_token(&[])] {
        for request in [get("/Rows?comp=acl"), request("PUT", "/Rows?comp=acl", empty)] {
            expect(&send(&mut client, &token, &request), 403, FAILURE, FAILURE_TEXT);
        }
    }
    let insert = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";
    for refused in [
        get("/Tables"),
        get("/Tables('Rows')"),
        request("POST", "/Tables", "{\"TableName\":\"New\"}"),
        Request { method: "DELETE", ..get("/Tables('Rows')") },
        get(properties),
        request("PUT", properties, "<StorageServiceProperties/>"),
        get("/Others()"),
        get("/Others(PartitionKey='p',RowKey='r')"),
        get("/Missing()"),
        request("POST", "/Others", insert),
    ] {
        let answer = send(&mut client, &table_token(&[]), &refused);
        expect(&answer, 403, FAILURE, FAILURE_TEXT);
        // With older tokens the answer is that the resource does not exist.
        let old = send(&mut client, &table_token(&[("sv", "2015-02-21")]), &refused);
        expect(&old, 404, NOT_FOUND, NOT_FOUND_TEXT);
    }
    assert_eq!(owner(&mut client, "GET", "/Tables('Rows')", "").status, 200);
    // In a batch, a part for another table makes the whole batch fail.
    let stray = [request("POST", "/Rows", insert), request("POST", "/Others", insert)];
    expect(&send_batch(&mut client, &table_token(&[]), &stray), 403, FAILURE, &format!("1:{FAILURE_TEXT}"));
    assert_eq!(stored(&mut client, "p", "r"), None);
    let answer = send_batch(&mut client, &table_token(&[]), &[get("/Others()")]);
    expect(&answer, 403, FAILURE, FAILURE_TEXT);
    // Table names are compared without case; the table need not exist.
    for (name, path, expected) in [
        ("ROWS", "/Rows()", "ok"),
        ("rows", "/rOWs()", "ok"),
        ("Missing", "/Missing()", "404 TableNotFound"),
        ("Missing", "/Rows()", "403 AuthorizationFailure"),
    ] {
        let answer = send(&mut client, &table_token(&[("tn", name)]), &get(path));
        assert_eq!(outcome(&answer), expected, "{name} {path}");
    }
}

/// An unreadable condition must not count as a condition for the permission check and as none for the write.
#[test]
fn a_token_for_updates_inserts_nothing_whatever_the_condition_says() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let update = table_token(&[("sp", "u")]);
    let both = table_token(&[("sp", "au")]);
    let unreadable = "400 InvalidInput".to_owned();
    for method in ["PUT", "PATCH", "MERGE"] {
        let path = "/Rows(PartitionKey='p',RowKey='new')";
        let with = |values: &[&str]| {
            let mut out = request(method, path, "{\"V\":1}");
            out.headers.extend(values.iter().map(|value| ("If-Match", (*value).to_owned())));
            out
        };
        let cases: [(&[&str], &str, &str); 9] = [
            (&["é"], unreadable.as_str(), unreadable.as_str()),
            (&["*\u{e9}"], &unreadable, &unreadable),
            (&["abc"], &unreadable, &unreadable),
            (&["*", "*"], &unreadable, &unreadable),
            (&["*", "é"], &unreadable, &unreadable),
            (&["", "é"], &unreadable, &unreadable),
            (&["*"], "404 ResourceNotFound", "404 ResourceNotFound"),
            // An empty header is the same as none.
            (&[""], "403 AuthorizationPermissionMismatch", "ok"),
            (&[], "403 AuthorizationPermissionMismatch", "ok"),
        ];
        for (values, of_update, of_both) in cases {
            for (token, expected) in [(&update, of_update), (&both, of_both)] {
                let alone = outcome(&send(&mut client, token, &with(values)));
                assert_eq!(alone, expected, "{method} with If-Match {values:?}");
                let there = stored(&mut client, "p", "new");
                assert_eq!(there.is_some(), expected == "ok", "{method} with If-Match {values:?}");
                client.send("DELETE", path, &[ACCEPT, ("If-Match", "*")], b"");
                let in_batch = outcome(&send_batch(&mut client, token, &[with(values)]));
                assert_eq!(in_batch, expected, "{method} with If-Match {values:?}, in a batch");
                let there = stored(&mut client, "p", "new");
                assert_eq!(
                    there.is_some(),
                    expected == "ok",
                    "{method} with If-Match {values:?}, in a batch"
                );
                client.send("DELETE", path, &[ACCEPT, ("If-Match", "*")], b"");
            }
        }
    }
}

#[test]
fn refusals_have_the_headers_of_the_table_server_or_of_the_front_end() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let outside = [("spk", "b"), ("epk", "b")];
    for (token, operation, front_end) in [
        (table_token(&[("sp", "r")]), OPERATIONS[2], false),
        (table_token(&[("tn", "Others")]), OPERATIONS[2], false),
        (table_token(&outside), OPERATIONS[2], false),
        (account_token(&[("srt", "s")]), OPERATIONS[2], false),
        (table_token(&[("se", PAST)]), OPERATIONS[2], true),
    ] {
        let answer = send(&mut client, &token, &operation.at("p", "r"));
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert_eq!(answer.header("x-ms-error-code").is_some(), front_end, "{:?}", answer.headers);
        assert_eq!(answer.header("x-ms-version").is_some(), !front_end);
        assert_eq!(answer.header("x-content-type-options").is_some(), !front_end);
        assert!(answer.header("content-type").unwrap().starts_with("application/json"));
        let of_permission = ["AuthorizationPermissionMismatch", TYPE].contains(&answer.code().as_str());
        let cached = answer.header("cache-control").is_some();
        assert!(cached || !of_permission, "{:?} {}", answer.headers, answer.text());
    }
    // As recorded from the service for an insert outside of the range.
    let answer = send(&mut client, &table_token(&outside), &OPERATIONS[2].at("p", "r"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
}
