//! Shared access signatures and stored policies against the real binary: what each token may do and what it may
//! not, alone and within a batch. Tokens are signed here, not by the code under test.
//! What the owner sets and gets is in `conformance/wire/{policies,service_properties,statistics}.http`.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod support;

use std::time::SystemTime;

use support::batch::Request;
use support::random::{Random, seed};
use support::{ACCOUNT, Answer, Client, KEY, Partita};
use wire::signing::AccountKey;
use wire::token;

const ACCEPT: (&str, &str) = ("Accept", "application/json;odata=nometadata");
const FIRST_KEY: &str =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
const SECOND_KEY: &str = "c2Vjb25kIGtleSBvZiB0aGUgYWNjb3VudCwgYXMgZ29vZCBhcyB0aGUgZmlyc3Q=";
const FUTURE: &str = "2199-01-01T00:00:00Z";
const PAST: &str = "2020-01-01T00:00:00Z";

const FAILED: &str = "AuthenticationFailed";
const FAILED_TEXT: &str = "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
const FAILURE: &str = "AuthorizationFailure";
const FAILURE_TEXT: &str = "This request is not authorized to perform this operation.";
const PERMISSION: &str = "AuthorizationPermissionMismatch";
const PERMISSION_TEXT: &str =
    "This request is not authorized to perform this operation using this permission.";
const TYPE: &str = "AuthorizationResourceTypeMismatch";
const TYPE_TEXT: &str = "This request is not authorized to perform this operation using this resource type.";
const NOT_FOUND: &str = "ResourceNotFound";
const NOT_FOUND_TEXT: &str = "The specified resource does not exist.";

/// Fields of a token, in the order they are sent.
type Fields<'a> = Vec<(&'a str, &'a str)>;

fn value<'a>(fields: &[(&str, &'a str)], name: &str) -> &'a str {
    fields.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

/// The string a table's token signs (access-and-service 2.3).
fn table_string(account: &str, fields: &[(&str, &str)]) -> String {
    let of = |name| value(fields, name).to_owned();
    let version = of("sv");
    let prefix = if version.as_str() < "2015-02-21" { "" } else { "/table" };
    let resource = format!("{prefix}/{account}/{}", of("tn").to_lowercase());
    let mut lines = vec![of("sp"), of("st"), of("se"), resource, of("si")];
    if version.as_str() >= "2015-04-05" {
        lines.extend([of("sip"), of("spr")]);
    }
    lines.extend([version, of("spk"), of("srk"), of("epk"), of("erk")]);
    lines.join("\n")
}

/// The string an account's token signs (access-and-service 2.7).
fn account_string(account: &str, fields: &[(&str, &str)]) -> String {
    let mut text = format!("{account}\n");
    for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
        text += &format!("{}\n", value(fields, name));
    }
    if value(fields, "sv") >= "2020-12-06" {
        text += &format!("{}\n", value(fields, "ses"));
    }
    text
}

fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn query(fields: &[(&str, &str)], signature: &str) -> String {
    let last = [("sig", signature)];
    let pairs = fields.iter().chain(&last);
    pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

fn signature(account: &str, key: &str, fields: &[(&str, &str)]) -> String {
    let of_account = fields.iter().any(|(name, _)| *name == "srt");
    let string = if of_account { account_string(account, fields) } else { table_string(account, fields) };
    AccountKey::parse(key).unwrap().sign(&string)
}

/// A token with these fields, rightly signed.
fn sign(fields: &[(&str, &str)]) -> String {
    query(fields, &signature(ACCOUNT, KEY, fields))
}

/// The fields with some set to other values, and those set to nothing left out.
fn with<'a>(fields: &[(&'a str, &'a str)], changes: &[(&'a str, &'a str)]) -> Fields<'a> {
    let mut all = fields.to_vec();
    for (name, value) in changes {
        all.retain(|(other, _)| other != name);
        all.extend(Some((*name, *value)).filter(|(_, value)| !value.is_empty()));
    }
    all
}

const TABLE_TOKEN: [(&str, &str); 4] = [("sv", "2019-02-02"), ("tn", "Rows"), ("sp", "raud"), ("se", FUTURE)];
const ACCOUNT_TOKEN: [(&str, &str); 5] =
    [("sv", "2019-02-02"), ("ss", "t"), ("srt", "sco"), ("sp", "rwdlacu"), ("se", FUTURE)];

fn table_token(changes: &[(&str, &str)]) -> String {
    sign(&with(&TABLE_TOKEN, changes))
}

fn account_token(changes: &[(&str, &str)]) -> String {
    sign(&with(&ACCOUNT_TOKEN, changes))
}

/// Sends a request with nothing but the token to speak for it.
fn send(client: &mut Client, token: &str, request: &Request) -> Answer {
    let joint = if request.path.contains('?') { '&' } else { '?' };
    let target = format!("/{}{}{joint}{token}", client.account, request.path);
    let mut headers = vec![ACCEPT];
    headers.extend(request.headers.iter().map(|(name, value)| (*name, value.as_str())));
    client.send_raw(request.method, &target, &headers, request.body.as_bytes()).unwrap()
}

/// Sends the requests as parts of one batch. The outer answer must be a 202.
fn send_batch(client: &mut Client, token: &str, parts: &[Request]) -> Answer {
    let mut body = "--b\r\n".to_owned();
    let inside: Vec<String> = parts.iter().map(part).collect();
    if let [one] = parts
        && one.method == "GET"
    {
        body += &format!("{}--b--\r\n", inside[0]);
    } else {
        let inside: String = inside.iter().map(|part| format!("--c\r\n{part}")).collect();
        body += &format!("Content-Type: multipart/mixed; boundary=c\r\n\r\n{inside}--c--\r\n--b--\r\n");
    }
    let headers = vec![("Content-Type", "multipart/mixed; boundary=b".to_owned())];
    let outer = Request { method: "POST", path: "/$batch".to_owned(), headers, body };
    let answer = send(client, token, &outer);
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer
}

fn part(request: &Request) -> String {
    let mut text = format!(
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{} {} HTTP/1.1\r\n{}: {}\r\n",
        request.method, request.path, ACCEPT.0, ACCEPT.1
    );
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + &format!("\r\n{}\r\n", request.body)
}

/// `ok`, or status and code; a batch is what its failing part is.
fn outcome(answer: &Answer) -> String {
    let text = answer.text();
    let statuses: Vec<u16> = text.split("HTTP/1.1 ").skip(1).map(|part| part[..3].parse().unwrap()).collect();
    let status = statuses.iter().copied().find(|status| *status >= 300).unwrap_or(answer.status);
    if status < 300 {
        return "ok".to_owned();
    }
    assert!(statuses.len() <= 1, "a failed batch answers with one part: {text}");
    format!("{status} {}", answer.code())
}

#[track_caller]
fn expect(answer: &Answer, status: u16, code: &str, text: &str) {
    assert_eq!(outcome(answer), format!("{status} {code}"), "{}", answer.text());
    let told = answer.text().replace("\\n", "\n");
    assert!(told.contains(&format!("{text}\nRequestId:")), "{told}");
}

fn owner(client: &mut Client, method: &str, path: &str, body: &str) -> Answer {
    client.send(method, path, &[ACCEPT, ("Content-Type", "application/json")], body.as_bytes())
}

fn create(client: &mut Client, table: &str) {
    let created = owner(client, "POST", "/Tables", &format!("{{\"TableName\":\"{table}\"}}"));
    assert_eq!(created.status, 201, "{}", created.text());
}

fn get(path: &str) -> Request {
    Request { method: "GET", path: path.to_owned(), headers: Vec::new(), body: String::new() }
}

fn request(method: &'static str, path: &str, body: &str) -> Request {
    let headers = vec![("Content-Type", "application/json".to_owned())];
    Request { method, path: path.to_owned(), headers, body: body.to_owned() }
}

/// An operation on entities and the permissions it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Operation {
    name: &'static str,
    method: &'static str,
    /// `If-Match`, or the verb a POST stands for.
    header: Option<(&'static str, &'static str)>,
    needs: &'static str,
}

const fn operation(
    name: &'static str,
    method: &'static str,
    header: Option<(&'static str, &'static str)>,
    needs: &'static str,
) -> Operation {
    Operation { name, method, header, needs }
}

const IF_MATCH: Option<(&str, &str)> = Some(("If-Match", "*"));

const OPERATIONS: [Operation; 10] = [
    operation("query", "GET", None, "r"),
    operation("get", "GET", None, "r"),
    operation("insert", "POST", None, "a"),
    operation("update", "PUT", IF_MATCH, "u"),
    operation("merge", "PATCH", IF_MATCH, "u"),
    operation("merge by its own verb", "MERGE", IF_MATCH, "u"),
    operation("insert or replace", "PUT", None, "au"),
    operation("insert or merge", "PATCH", None, "au"),
    operation("tunnelled insert or merge", "POST", Some(("X-HTTP-Method", "MERGE")), "au"),
    operation("delete", "DELETE", IF_MATCH, "d"),
];

impl Operation {
    fn at(self, partition: &str, row: &str) -> Request {
        let (partition_text, row_text) = (encode(partition), encode(row));
        let key = format!("/Rows(PartitionKey='{partition_text}',RowKey='{row_text}')");
        let mut out = match self.name {
            "query" => get("/Rows()"),
            "get" => get(&key),
            "insert" => {
                let body = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"V\":1}}");
                request("POST", "/Rows", &body)
            }
            "delete" => get(&key),
            _ => request(self.method, &key, "{\"V\":1}"),
        };
        out.method = self.method;
        out.headers.extend(self.header.map(|(name, value)| (name, value.to_owned())));
        out
    }

    /// The entity is there before, unless it is to be inserted.
    fn prepare(self, client: &mut Client, partition: &str, row: &str) {
        let key = format!("/Rows(PartitionKey='{partition}',RowKey='{row}')");
        if self.name == "insert" {
            client.send("DELETE", &key, &[ACCEPT, ("If-Match", "*")], b"");
        } else {
            assert_eq!(owner(client, "PUT", &key, "{\"V\":0}").status, 204);
        }
    }

    fn writes(self) -> bool {
        self.needs != "r"
    }
}

/// The entity's `V` as the owner sees it.
fn stored(client: &mut Client, partition: &str, row: &str) -> Option<i64> {
    let answer = owner(client, "GET", &format!("/Rows(PartitionKey='{partition}',RowKey='{row}')"), "");
    (answer.status == 200).then(|| answer.json()["V"].as_i64().unwrap())
}

/// Runs the operation alone and as the one part of a batch, and says what came of it; what was refused must have
/// changed nothing, what was not must have done its work.
fn run(client: &mut Client, token: &str, operation: Operation, partition: &str, row: &str) -> [String; 2] {
    [false, true].map(|batch| {
        operation.prepare(client, partition, row);
        let before = stored(client, partition, row);
        let request = operation.at(partition, row);
        let answer =
            if batch { send_batch(client, token, &[request]) } else { send(client, token, &request) };
        let outcome = outcome(&answer);
        let after = stored(client, partition, row);
        let expected = match (outcome.as_str(), operation.name) {
            ("ok", "delete") => None,
            ("ok", _) if operation.writes() => Some(1),
            _ => before,
        };
        assert_eq!(after, expected, "{} {partition} {row}, batch {batch}: {outcome}", operation.name);
        outcome
    })
}

fn subsets(letters: &str) -> Vec<String> {
    let letters: Vec<char> = letters.chars().collect();
    let pick = |mask: usize| {
        letters.iter().enumerate().filter(move |(bit, _)| mask & (1 << bit) != 0).map(|(_, letter)| *letter)
    };
    (0..1 << letters.len()).map(|mask| pick(mask).collect()).collect()
}

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
                    // A batch is refused as a whole before any of its parts is looked at.
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
fn an_accounts_token_reaches_tables_and_the_service_by_type_and_letter() {
    const PROPERTIES: &str = "/?restype=service&comp=properties";
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let set = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    // Request, the types that serve, the letters that do.
    let table = [
        (get(PROPERTIES), "s", "r"),
        (request("PUT", PROPERTIES, set), "s", "w"),
        (get("/Tables"), "sc", "l"),
        (get("/Tables('Rows')"), "sc", "l"),
        (request("POST", "/Tables", "{\"TableName\":\"New\"}"), "c", "cw"),
        (Request { method: "DELETE", ..get("/Tables('New')") }, "c", "d"),
    ];
    for types in subsets("sco").iter().filter(|types| !types.is_empty()) {
        for permission in "rwdlacu".chars().map(|letter| letter.to_string()) {
            let token = account_token(&[("srt", types), ("sp", &permission)]);
            for (request, serving, letters) in &table {
                // New is there only for its deletion.
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
    // The statistics are the secondary's.
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
fn policies_are_the_owners_and_a_tables_token_stays_in_its_table() {
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
        // Older tokens are told that there is nothing.
        let old = send(&mut client, &table_token(&[("sv", "2015-02-21")]), &refused);
        expect(&old, 404, NOT_FOUND, NOT_FOUND_TEXT);
    }
    assert_eq!(owner(&mut client, "GET", "/Tables('Rows')", "").status, 200);
    // In a batch: the part that strays makes the whole fail.
    let stray = [request("POST", "/Rows", insert), request("POST", "/Others", insert)];
    expect(&send_batch(&mut client, &table_token(&[]), &stray), 403, FAILURE, &format!("1:{FAILURE_TEXT}"));
    assert_eq!(stored(&mut client, "p", "r"), None);
    let answer = send_batch(&mut client, &table_token(&[]), &[get("/Others()")]);
    expect(&answer, 403, FAILURE, FAILURE_TEXT);
    // A table's name has no case; what it holds need not be there.
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

#[test]
fn refusals_come_from_the_table_server_or_the_front_end() {
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
    }
    // As recorded for an insert outside of its range.
    let answer = send(&mut client, &table_token(&outside), &OPERATIONS[2].at("p", "r"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
}

/// A range as its fields, and whether a key lies in it: worked out as the documentation words it.
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

/// All one-sided and two-sided ranges, one partition, one entity, and one that holds nothing.
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

/// On each edge, a hair outside of it, well inside, in other partitions.
const PARTITIONS: [&str; 6] = ["A~", "B", "B0", "C", "D", "D0"];
const ROWS: [&str; 3] = ["4~", "5", "50"];

#[test]
fn entities_outside_of_the_range_are_out_of_reach() {
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
fn refusals_outside_of_the_range_have_their_words() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    let token = table_token(&[("spk", "B"), ("epk", "B")]);
    for operation in OPERATIONS.into_iter().filter(|operation| operation.writes()) {
        // Whether the entity is there makes no difference.
        for prepared in [false, true] {
            if prepared {
                operation.prepare(&mut client, "C", "1");
            }
            expect(&send(&mut client, &token, &operation.at("C", "1")), 403, FAILURE, FAILURE_TEXT);
        }
    }
    expect(&send(&mut client, &token, &OPERATIONS[1].at("C", "1")), 404, NOT_FOUND, NOT_FOUND_TEXT);
    // One bad part, and none of the good ones happened.
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
        // The same without permission rather than out of range.
        if operation.needs != "a" {
            let token = table_token(&[("sp", "a")]);
            let answer = send_batch(&mut client, &token, &parts);
            expect(&answer, 403, PERMISSION, &format!("2:{PERMISSION_TEXT}"));
            assert_eq!(stored(&mut client, "C", "5"), None);
        }
    }
}

type Keys = Vec<(String, String)>;

/// All keys a query gives, page by page, through a token or else as the owner. No page may point out of the range.
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
        assert!(in_range(range, &named.0, &named.1), "{range:?} goes on at {named:?}");
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
}

#[test]
fn queries_see_the_range_and_nothing_else() {
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
        // Filters and tokens that name what lies outside find nothing of it.
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
fn a_query_under_a_range_is_the_whole_query_cut_to_it() {
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

/// Every field there is, and another value for it.
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
fn a_token_with_anything_changed_is_worth_nothing() {
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
        // And with a field more.
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
fn what_a_token_must_say_it_must_say_well() {
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
fn tokens_hold_for_an_address_a_protocol_and_a_service() {
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
    // Before 2015-04-05 a token knows neither address nor protocol, and does not sign them.
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
        // Without permission: told so, or told that there is nothing.
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
    // T1, T2, T7, T8, A1, A3, A4 of access-and-service 2.10; the first once more with its `/` left as it is.
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
fn a_token_says_in_which_version_it_is_served() {
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

/// A stored policy's XML, with what is not empty.
fn policy(id: &str, start: &str, expiry: &str, permissions: &str) -> String {
    let terms: String = [("Start", start), ("Expiry", expiry), ("Permission", permissions)]
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("<{name}>{text}</{name}>"))
        .collect();
    format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{terms}</AccessPolicy></SignedIdentifier>")
}

fn set_policies(client: &mut Client, table: &str, policies: &str) {
    let body = format!("<SignedIdentifiers>{policies}</SignedIdentifiers>");
    let answer = owner(client, "PUT", &format!("/{table}?comp=acl"), &body);
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// A token that leaves to the policy `p` all that is not given here.
fn policy_token(changes: &[(&str, &str)]) -> String {
    sign(&with(&[("sv", "2019-02-02"), ("tn", "Rows"), ("si", "p")], changes))
}

#[test]
fn a_policy_and_its_token_say_each_thing_once() {
    let server = Partita::in_memory();
    let mut client = server.client();
    create(&mut client, "Rows");
    // The policy's start, expiry and permissions; the token's; what comes of a query.
    for (stored, own, expected) in [
        (["", FUTURE, "r"], ["", "", ""], "ok"),
        ([PAST, FUTURE, "r"], ["", "", ""], "ok"),
        (["", FUTURE, ""], ["", "", "r"], "ok"),
        (["", "", "r"], ["", FUTURE, ""], "ok"),
        (["", "", ""], [PAST, FUTURE, "r"], "ok"),
        ([PAST, "", ""], ["", FUTURE, "r"], "ok"),
        (["", FUTURE, "a"], ["", "", ""], "403 AuthorizationPermissionMismatch"),
        (["", FUTURE, ""], ["", "", "a"], "403 AuthorizationPermissionMismatch"),
        ([PAST, FUTURE, "r"], [PAST, "", ""], "403 AuthenticationFailed"),
        (["", FUTURE, "r"], ["", FUTURE, ""], "403 AuthenticationFailed"),
        (["", FUTURE, "r"], ["", "", "r"], "403 AuthenticationFailed"),
        (["", FUTURE, ""], ["", "", ""], "403 AuthenticationFailed"),
        (["", "", "r"], ["", "", ""], "403 AuthenticationFailed"),
        ([FUTURE, FUTURE, "r"], ["", "", ""], "403 AuthenticationFailed"),
        (["", PAST, "r"], ["", "", ""], "403 AuthenticationFailed"),
        (["", FUTURE, "r"], [FUTURE, "", ""], "403 AuthenticationFailed"),
        (["", "", "r"], ["", PAST, ""], "403 AuthenticationFailed"),
    ] {
        set_policies(&mut client, "Rows", &policy("p", stored[0], stored[1], stored[2]));
        let token = policy_token(&[("st", own[0]), ("se", own[1]), ("sp", own[2])]);
        let found = outcome(&send(&mut client, &token, &get("/Rows()")));
        assert_eq!(found, expected, "policy {stored:?}, token {own:?}");
    }
    // A range is the token's alone, and goes with a policy.
    set_policies(&mut client, "Rows", &policy("p", "", FUTURE, "raud"));
    let token = policy_token(&[("spk", "B"), ("epk", "B")]);
    let insert = OPERATIONS[2];
    assert_eq!(outcome(&send(&mut client, &token, &insert.at("B", "1"))), "ok");
    expect(&send(&mut client, &token, &insert.at("C", "1")), 403, FAILURE, FAILURE_TEXT);
    // Names of policies have case.
    let other = policy_token(&[("si", "P")]);
    expect(&send(&mut client, &other, &get("/Rows()")), 403, FAILED, FAILED_TEXT);
}

#[test]
fn a_policy_that_goes_takes_its_tokens_along_at_once() {
    let directory = tempfile::tempdir().unwrap();
    for server in [Partita::in_memory(), Partita::in_directory(directory.path())] {
        let mut client = server.client();
        create(&mut client, "Rows");
        create(&mut client, "Others");
        let token = policy_token(&[]);
        let check = |client: &mut Client, expected: &str| {
            assert_eq!(outcome(&send(client, &token, &get("/Rows()"))), expected);
            assert_eq!(outcome(&send(client, &token, &OPERATIONS[6].at("p", "r"))), expected);
        };
        let refused = format!("403 {FAILED}");
        let good = policy("p", "", FUTURE, "raud");
        check(&mut client, &refused);
        for gone in ["", &policy("q", "", FUTURE, "raud"), &policy("p", "", PAST, "raud")] {
            set_policies(&mut client, "Rows", &good);
            check(&mut client, "ok");
            set_policies(&mut client, "Rows", gone);
            check(&mut client, &refused);
        }
        set_policies(&mut client, "Rows", &good);
        check(&mut client, "ok");
        set_policies(&mut client, "Rows", &policy("p", "", FUTURE, "d"));
        check(&mut client, &format!("403 {PERMISSION}"));
        // Another table's policy of the same name is another policy.
        set_policies(&mut client, "Rows", "");
        set_policies(&mut client, "Others", &good);
        check(&mut client, &refused);
        // A dropped table takes its policies along.
        set_policies(&mut client, "Rows", &good);
        check(&mut client, "ok");
        assert_eq!(owner(&mut client, "DELETE", "/Tables('Rows')", "").status, 204);
        check(&mut client, &refused);
        create(&mut client, "Rows");
        check(&mut client, &refused);
        let policies = owner(&mut client, "GET", "/Rows?comp=acl", "").text();
        assert!(policies.ends_with("<SignedIdentifiers />"), "{policies}");
        // A policy made again revives its tokens.
        set_policies(&mut client, "Rows", &good);
        check(&mut client, "ok");
    }
}

#[test]
fn policies_and_properties_outlive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let mut client = server.client();
    create(&mut client, "Rows");
    set_policies(&mut client, "Rows", &policy("p", "", FUTURE, "raud"));
    let properties = "/?restype=service&comp=properties";
    let body = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging></StorageServiceProperties>";
    assert_eq!(owner(&mut client, "PUT", properties, body).status, 202);
    let before = ["/Rows?comp=acl", properties].map(|path| owner(&mut client, "GET", path, "").text());
    server.kill();
    let server = Partita::in_directory(directory.path());
    let mut client = server.client();
    let after = ["/Rows?comp=acl", properties].map(|path| owner(&mut client, "GET", path, "").text());
    assert_eq!(after, before);
    assert!(before[1].contains("<Days>5</Days>"), "{}", before[1]);
    assert_eq!(outcome(&send(&mut client, &policy_token(&[]), &get("/Rows()"))), "ok");
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
    // The secondary takes the same tokens, to read.
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
        // An empty header is none.
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
        (with(&TABLE_TOKEN, &[("sp", "ud")]), get("/Rows()"), false, "does not permit Entities"),
        (with(&TABLE_TOKEN, &[("sp", "rd")]), insert.clone(), true, "does not permit Entities"),
        (with(&TABLE_TOKEN, &[("epk", "outermost")]), insert.clone(), false, "outermost"),
        (with(&TABLE_TOKEN, &[("spk", "uttermost")]), insert, true, "uttermost"),
        (with(&TABLE_TOKEN, &[("sp", "a")]), get("/Rows()"), true, "does not permit Entities"),
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
        assert!(told, "not told: {why}\n{}", &text[start..]);
        signatures.push(signature);
    }
    // A wrong signature: what was to be signed is told, what would have been right is not.
    let wrong = "d3Jvbmcgd3JvbmcgIHdyb25nIHdyb25nICB3cm9uZyE=";
    send(&mut client, &query(&TABLE_TOKEN, wrong), &get("/Rows()"));
    signatures.extend([wrong.to_owned(), signature(ACCOUNT, KEY, &TABLE_TOKEN)]);
    send(&mut client, &table_token(&[]), &get("/Rows()"));
    server.stop();

    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("/table/devstoreaccount1/rows"), "the string to sign is not told:\n{text}");
    assert!(!text.contains(KEY) && !text.contains(&KEY[..20]), "a key is in the log");
    for signature in signatures {
        let encoded = encode(&signature);
        assert!(
            !text.contains(&signature) && !text.contains(&encoded),
            "a signature is in the log: {signature}"
        );
    }
}
