//! Tokens, signed by the test's own code to check that of the server, and requests that use them.

use wire::signing::AccountKey;

use crate::support::ACCOUNT;
use crate::support::Answer;
use crate::support::Client;
use crate::support::KEY;
use crate::support::batch::Request;

pub const ACCEPT: (&str, &str) = ("Accept", "application/json;odata=nometadata");
pub const FIRST_KEY: &str =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
pub const SECOND_KEY: &str = "c2Vjb25kIGtleSBvZiB0aGUgYWNjb3VudCwgYXMgZ29vZCBhcyB0aGUgZmlyc3Q=";
pub const FUTURE: &str = "2199-01-01T00:00:00Z";
pub const PAST: &str = "2020-01-01T00:00:00Z";

pub const FAILED: &str = "AuthenticationFailed";
pub const FAILED_TEXT: &str = "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
pub const FAILURE: &str = "AuthorizationFailure";
pub const FAILURE_TEXT: &str = "This request is not authorized to perform this operation.";
pub const PERMISSION: &str = "AuthorizationPermissionMismatch";
pub const PERMISSION_TEXT: &str =
    "This request is not authorized to perform this operation using this permission.";
pub const TYPE: &str = "AuthorizationResourceTypeMismatch";
pub const TYPE_TEXT: &str =
    "This request is not authorized to perform this operation using this resource type.";
pub const NOT_FOUND: &str = "ResourceNotFound";
pub const NOT_FOUND_TEXT: &str = "The specified resource does not exist.";

/// Fields of a token, in the order they are sent.
pub type Fields<'a> = Vec<(&'a str, &'a str)>;

pub fn value<'a>(fields: &[(&str, &'a str)], name: &str) -> &'a str {
    fields.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

/// The string to sign of a table's token (access-and-service 2.3).
pub fn table_string(account: &str, fields: &[(&str, &str)]) -> String {
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

/// The string to sign of an account's token (access-and-service 2.7).
pub fn account_string(account: &str, fields: &[(&str, &str)]) -> String {
    let mut text = format!("{account}\n");
    for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
        text += &format!("{}\n", value(fields, name));
    }
    if value(fields, "sv") >= "2020-12-06" {
        text += &format!("{}\n", value(fields, "ses"));
    }
    text
}

pub fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

pub fn query(fields: &[(&str, &str)], signature: &str) -> String {
    let last = [("sig", signature)];
    let pairs = fields.iter().chain(&last);
    pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

pub fn signature(account: &str, key: &str, fields: &[(&str, &str)]) -> String {
    let of_account = fields.iter().any(|(name, _)| *name == "srt");
    let string = if of_account { account_string(account, fields) } else { table_string(account, fields) };
    AccountKey::parse(key).unwrap().sign(&string)
}

/// A correctly signed token with these fields.
pub fn sign(fields: &[(&str, &str)]) -> String {
    query(fields, &signature(ACCOUNT, KEY, fields))
}

/// The fields with these changes. A field with an empty value is removed.
pub fn with<'a>(fields: &[(&'a str, &'a str)], changes: &[(&'a str, &'a str)]) -> Fields<'a> {
    let mut all = fields.to_vec();
    for (name, value) in changes {
        all.retain(|(other, _)| other != name);
        all.extend(Some((*name, *value)).filter(|(_, value)| !value.is_empty()));
    }
    all
}

pub const TABLE_TOKEN: [(&str, &str); 4] =
    [("sv", "2019-02-02"), ("tn", "Rows"), ("sp", "raud"), ("se", FUTURE)];
pub const ACCOUNT_TOKEN: [(&str, &str); 5] =
    [("sv", "2019-02-02"), ("ss", "t"), ("srt", "sco"), ("sp", "rwdlacu"), ("se", FUTURE)];

pub fn table_token(changes: &[(&str, &str)]) -> String {
    sign(&with(&TABLE_TOKEN, changes))
}

pub fn account_token(changes: &[(&str, &str)]) -> String {
    sign(&with(&ACCOUNT_TOKEN, changes))
}

/// Sends a request with only the token for authorization.
pub fn send(client: &mut Client, token: &str, request: &Request) -> Answer {
    let joint = if request.path.contains('?') { '&' } else { '?' };
    let target = format!("/{}{}{joint}{token}", client.account, request.path);
    let mut headers = vec![ACCEPT];
    headers.extend(request.headers.iter().map(|(name, value)| (*name, value.as_str())));
    client.send_raw(request.method, &target, &headers, request.body.as_bytes()).unwrap()
}

/// Sends the requests as parts of one batch. The outer answer must be a 202.
pub fn send_batch(client: &mut Client, token: &str, parts: &[Request]) -> Answer {
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

pub fn part(request: &Request) -> String {
    let mut text = format!(
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{} {} HTTP/1.1\r\n{}: {}\r\n",
        request.method, request.path, ACCEPT.0, ACCEPT.1
    );
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + &format!("\r\n{}\r\n", request.body)
}

/// `ok`, or status and code; for a batch, those of the part that failed.
pub fn outcome(answer: &Answer) -> String {
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
pub fn expect(answer: &Answer, status: u16, code: &str, text: &str) {
    assert_eq!(outcome(answer), format!("{status} {code}"), "{}", answer.text());
    let told = answer.text().replace("\\n", "\n");
    assert!(told.contains(&format!("{text}\nRequestId:")), "{told}");
}

pub fn owner(client: &mut Client, method: &str, path: &str, body: &str) -> Answer {
    client.send(method, path, &[ACCEPT, ("Content-Type", content_type(path))], body.as_bytes())
}

fn content_type(path: &str) -> &'static str {
    if path.contains("comp=") { "application/xml" } else { "application/json" }
}

pub fn create(client: &mut Client, table: &str) {
    let created = owner(client, "POST", "/Tables", &format!("{{\"TableName\":\"{table}\"}}"));
    assert_eq!(created.status, 201, "{}", created.text());
}

pub fn get(path: &str) -> Request {
    Request { method: "GET", path: path.to_owned(), headers: Vec::new(), body: String::new() }
}

pub fn request(method: &'static str, path: &str, body: &str) -> Request {
    let headers = vec![("Content-Type", content_type(path).to_owned())];
    Request { method, path: path.to_owned(), headers, body: body.to_owned() }
}

/// An operation on entities, and the permissions that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation {
    pub name: &'static str,
    pub method: &'static str,
    /// `If-Match`, or the method that a POST stands for.
    pub header: Option<(&'static str, &'static str)>,
    pub needs: &'static str,
}

pub const fn operation(
    name: &'static str,
    method: &'static str,
    header: Option<(&'static str, &'static str)>,
    needs: &'static str,
) -> Operation {
    Operation { name, method, header, needs }
}

pub const IF_MATCH: Option<(&str, &str)> = Some(("If-Match", "*"));

pub const OPERATIONS: [Operation; 10] = [
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
    pub fn at(self, partition: &str, row: &str) -> Request {
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

    /// Makes sure that the entity exists, or that it does not if it is to be inserted.
    pub fn prepare(self, client: &mut Client, partition: &str, row: &str) {
        let key = format!("/Rows(PartitionKey='{partition}',RowKey='{row}')");
        if self.name == "insert" {
            client.send("DELETE", &key, &[ACCEPT, ("If-Match", "*")], b"");
        } else {
            assert_eq!(owner(client, "PUT", &key, "{\"V\":0}").status, 204);
        }
    }

    pub fn writes(self) -> bool {
        self.needs != "r"
    }
}

/// The entity's `V` as the owner sees it.
pub fn stored(client: &mut Client, partition: &str, row: &str) -> Option<i64> {
    let answer = owner(client, "GET", &format!("/Rows(PartitionKey='{partition}',RowKey='{row}')"), "");
    (answer.status == 200).then(|| answer.json()["V"].as_i64().unwrap())
}

/// Runs the operation alone and as the only part of a batch, and returns the outcomes. Checks that a refused operation
/// has changed nothing, and that a successful one was done.
pub fn run(
    client: &mut Client,
    token: &str,
    operation: Operation,
    partition: &str,
    row: &str,
) -> [String; 2] {
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

pub fn subsets(letters: &str) -> Vec<String> {
    let letters: Vec<char> = letters.chars().collect();
    let pick = |mask: usize| {
        letters.iter().enumerate().filter(move |(bit, _)| mask & (1 << bit) != 0).map(|(_, letter)| *letter)
    };
    (0..1 << letters.len()).map(|mask| pick(mask).collect()).collect()
}
