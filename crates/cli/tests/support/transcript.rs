//! Wire tests as text: requests and expected answers, in `conformance/wire/*.http`.
//!
//! ```text
//! ### a name for the belief
//! = table Books                          set-up: a table
//! = entity Books {"PartitionKey":…}      set-up: an entity
//! = queue jobs                           set-up: a queue
//! = message jobs text                    set-up: a message, in XML as it is written
//! > POST /Books                          a request: line, headers, blank, body
//! > Content-Type: application/json
//! >
//! > {"PartitionKey":"p","RowKey":"r"}
//! < 201                                  the answer: status, headers that must be there, blank, body
//! < ETag: {etag:first}
//! < !DataServiceVersion                  a header that must not be there
//! <
//! < {"PartitionKey":"p",…}
//! ```
//!
//! In an answer, `{any}`, `{time}`, `{date}` (as HTTP writes it), `{etag}` and `{guid}` stand for such a value. With a colon
//! and a name, the value is stored, and `{name}` stands for it later, also in requests. `{base}` is the account's address
//! with a slash, `{host}` its host and port, `{account}` its name. Bodies are compared byte for byte; an answer without a
//! body section may have any body. With `<~ text` the body must contain the text instead. A body line that ends with the
//! two characters `\r` ends with CRLF. Each case starts with an empty account. Files whose names begin with `queue_` are
//! about queues and are sent to their port.
//!
//! A path follows the account and is signed. `^/path` is signed but begins at the root of the host; `@/path` is sent
//! unchanged and unsigned. `{3*text}` is the text three times, with each `#` in it replaced by the count from 0.
//! `{bom}` is a byte order mark. `> !x-ms-version` leaves out a header that would be added. `{etag:first}` also stores
//! `{first.time}`, its Timestamp, and `{first.json}` and `{first.xml}`, escaped.

use std::collections::HashMap;
use std::fmt::Write as _;

use front::ServiceKind;

use super::{ACCOUNT, Answer, Client};

/// Runs all cases of a file. Returns their number and the failures.
pub fn run_file(client: &mut Client, name: &str, text: &str) -> (usize, Vec<String>) {
    let mut failures = Vec::new();
    let mut cases = 0;
    for case in text.split("\n### ").skip(1) {
        let (title, body) = case.split_once('\n').unwrap_or((case, ""));
        cases += 1;
        empty_account(client);
        if let Err(problem) = run_case(client, body) {
            failures.push(format!("{name}: {title}\n{problem}"));
        }
    }
    (cases, failures)
}

fn empty_account(client: &mut Client) {
    if client.service == ServiceKind::Queue {
        let list = client.send("GET", "/?comp=list", &[], b"").text();
        for name in list.split("<Name>").skip(1).filter_map(|rest| rest.split('<').next()) {
            assert_eq!(client.send("DELETE", &format!("/{name}"), &[], b"").status, 204);
        }
        return;
    }
    let accept = [("Accept", "application/json;odata=nometadata")];
    let tables = client.send("GET", "/Tables", &accept, b"").json();
    for table in tables["value"].as_array().unwrap() {
        let path = format!("/Tables('{}')", table["TableName"].as_str().unwrap());
        assert_eq!(client.send("DELETE", &path, &accept, b"").status, 204);
    }
}

fn run_case(client: &mut Client, text: &str) -> Result<(), String> {
    let mut known = HashMap::from([
        ("base".to_owned(), format!("http://{}/{ACCOUNT}/", client.address)),
        ("host".to_owned(), client.address.to_string()),
        ("account".to_owned(), ACCOUNT.to_owned()),
        ("bom".to_owned(), "\u{feff}".to_owned()),
    ]);
    let text = repeat(text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut at = 0;
    while at < lines.len() {
        match lines[at].chars().next() {
            Some('=') => {
                set_up(client, lines[at][1..].trim())?;
                at += 1;
            }
            Some('>') => {
                let (request, next) = block(&lines, at, '>');
                let (expected, next) = block(&lines, next, '<');
                exchange(client, &mut known, &request, &expected)?;
                at = next;
            }
            None => at += 1,
            Some(other) => return Err(format!("a line that starts with {other:?}: {}", lines[at])),
        }
    }
    Ok(())
}

/// Expands every `{3*text}`.
fn repeat(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let inside = rest[start + 1..].split_once('}').map_or("", |(inside, _)| inside);
        let times = inside.split_once('*').and_then(|(count, of)| Some((count.parse::<usize>().ok()?, of)));
        match times {
            Some((count, of)) => {
                out.push_str(&rest[..start]);
                (0..count).for_each(|index| out.push_str(&of.replace('#', &index.to_string())));
                rest = &rest[start + 1 + inside.len() + 1..];
            }
            None => {
                out.push_str(&rest[..=start]);
                rest = &rest[start + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The lines from `at` on that start with the mark, without the mark and one blank.
fn block<'l>(lines: &[&'l str], at: usize, mark: char) -> (Vec<&'l str>, usize) {
    let count = lines[at..].iter().take_while(|line| line.starts_with(mark)).count();
    let strip = |line: &&'l str| line[1..].strip_prefix(' ').unwrap_or(&line[1..]);
    (lines[at..at + count].iter().map(strip).collect(), at + count)
}

fn set_up(client: &mut Client, text: &str) -> Result<(), String> {
    let json = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
    let (method, path, headers, body) = match text.split_once(' ') {
        Some(("table", name)) => {
            let body = format!("{{\"TableName\":\"{}\"}}", name.trim());
            ("POST", "/Tables".to_owned(), &json[..], body)
        }
        Some(("entity", rest)) => {
            let (table, body) = rest.trim().split_once(' ').ok_or("entity needs a table and a body")?;
            ("POST", format!("/{table}"), &json[..], body.to_owned())
        }
        Some(("queue", name)) => ("PUT", format!("/{}", name.trim()), &[][..], String::new()),
        Some(("message", rest)) => {
            let (queue, text) = rest.trim().split_once(' ').ok_or("message needs a queue and a text")?;
            let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
            ("POST", format!("/{queue}/messages"), &[][..], body)
        }
        _ => return Err(format!("unknown set-up: {text}")),
    };
    let answer = client.send(method, &path, headers, body.as_bytes());
    if matches!(answer.status, 201 | 204) {
        Ok(())
    } else {
        Err(format!("set-up {text}: {} {}", answer.status, answer.text()))
    }
}

fn exchange(
    client: &mut Client,
    known: &mut HashMap<String, String>,
    request: &[&str],
    expected: &[&str],
) -> Result<(), String> {
    let fill = |text: &str| {
        known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    };
    let (head, body) = split_body(request);
    let first = fill(head.first().ok_or("an empty request")?);
    let (method, path) = first.split_once(' ').ok_or_else(|| format!("no path in {first:?}"))?;
    let headers: Vec<(String, String)> = head[1..]
        .iter()
        .filter_map(|line| match line.split_once(':') {
            Some((name, value)) => Some((name.trim().to_owned(), fill(value.trim()))),
            None => line.starts_with('!').then(|| (line.clone(), String::new())),
        })
        .collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let body = fill(&body.unwrap_or_default());
    let answer = match (path.strip_prefix('@'), path.strip_prefix('^')) {
        (Some(target), _) => client.send_raw(method, target, &headers, body.as_bytes()),
        (_, Some(target)) => client.send_signed(method, target, &headers, body.as_bytes()),
        _ => client.try_send(method, path, &headers, body.as_bytes()),
    }
    .map_err(|error| format!("  {first}\n  {error}"))?;
    compare(known, &answer, expected).map_err(|problem| {
        format!("  {first}\n  {problem}\n  got {} {:?}\n  {}", answer.status, answer.headers, answer.text())
    })
}

/// Head lines, and the body if there is a blank line: lines joined by LF, `\r` at the end of a line meaning CR.
fn split_body(lines: &[&str]) -> (Vec<String>, Option<String>) {
    let blank = lines.iter().position(|line| line.is_empty());
    let head = lines[..blank.unwrap_or(lines.len())].iter().map(|line| (*line).to_owned()).collect();
    let body = blank.map(|at| {
        let line =
            |line: &&str| line.strip_suffix("\\r").map_or((*line).to_owned(), |text| format!("{text}\r"));
        lines[at + 1..].iter().map(line).collect::<Vec<_>>().join("\n")
    });
    (head, body)
}

fn compare(known: &mut HashMap<String, String>, answer: &Answer, expected: &[&str]) -> Result<(), String> {
    let contains: Vec<&str> = expected.iter().filter_map(|line| line.strip_prefix("~ ")).collect();
    let expected: Vec<&str> = expected.iter().filter(|line| !line.starts_with("~ ")).copied().collect();
    let (head, body) = split_body(&expected);
    let status = head.first().ok_or("no expected answer")?;
    if answer.status.to_string() != *status {
        return Err(format!("status {}, not {status}", answer.status));
    }
    for line in &head[1..] {
        if let Some(name) = line.strip_prefix('!') {
            if let Some(value) = answer.header(name.trim()) {
                return Err(format!("header {name} should not be there, is {value:?}"));
            }
            continue;
        }
        let (name, pattern) = line.split_once(':').ok_or_else(|| format!("no header: {line}"))?;
        let value = answer.header(name.trim()).ok_or_else(|| format!("header {name} is missing"))?;
        matches(known, pattern.trim(), value).map_err(|problem| format!("header {name}: {problem}"))?;
    }
    let text = answer.text();
    for part in contains {
        let part =
            known.iter().fold(part.to_owned(), |t, (name, value)| t.replace(&format!("{{{name}}}"), value));
        if !text.contains(&part) {
            return Err(format!("the body does not contain {part}"));
        }
    }
    match body {
        Some(body) => matches(known, &body, &text).map_err(|problem| format!("body: {problem}")),
        None => Ok(()),
    }
}

/// Matches a pattern with placeholders, and stores the values of the named ones.
fn matches(known: &mut HashMap<String, String>, pattern: &str, text: &str) -> Result<(), String> {
    let (mut pattern_rest, mut text_rest) = (pattern, text);
    let mut shown = String::new();
    while let Some((kind, name, before, after)) = placeholder(pattern_rest, known) {
        text_rest = text_rest.strip_prefix(before).ok_or_else(|| differs(&shown, before, text_rest))?;
        let _ = write!(shown, "{before}");
        let length = match kind.as_str() {
            "time" => text_rest.bytes().take_while(|b| b.is_ascii_digit() || b"-T:.Z%A".contains(b)).count(),
            "date" => http_date(text_rest),
            "guid" => text_rest.bytes().take_while(|b| b.is_ascii_hexdigit() || *b == b'-').count(),
            "etag" => text_rest.find("'\"").map_or(0, |end| end + 2),
            "any" => {
                let end = after.split('{').next().unwrap_or_default();
                if end.is_empty() { text_rest.len() } else { text_rest.find(end).unwrap_or(0) }
            }
            known_name => {
                let value = known.get(known_name).cloned().unwrap_or_default();
                if text_rest.starts_with(&value) {
                    value.len()
                } else {
                    return Err(differs(&shown, &value, text_rest));
                }
            }
        };
        if length == 0 && kind != "any" {
            return Err(differs(&shown, &format!("{{{kind}}}"), text_rest));
        }
        if let Some(name) = name {
            let value = &text_rest[..length];
            if kind == "etag" {
                let time = value.split('\'').nth(1).unwrap_or_default().replace("%3A", ":");
                known.insert(format!("{name}.time"), time);
                known.insert(format!("{name}.json"), value.replace('"', "\\\""));
                known.insert(format!("{name}.xml"), value.replace('"', "&quot;"));
            }
            known.insert(name, value.to_owned());
        }
        text_rest = &text_rest[length..];
        pattern_rest = after;
    }
    if pattern_rest == text_rest { Ok(()) } else { Err(differs(&shown, pattern_rest, text_rest)) }
}

/// The first placeholder: its kind, its name if it has one, and the text before and after it.
fn placeholder<'p>(
    pattern: &'p str,
    known: &HashMap<String, String>,
) -> Option<(String, Option<String>, &'p str, &'p str)> {
    for (start, _) in pattern.match_indices('{') {
        let Some(end) = pattern[start..].find('}') else { continue };
        let inside = &pattern[start + 1..start + end];
        let (kind, name) =
            inside.split_once(':').map_or((inside, None), |(kind, name)| (kind, Some(name.to_owned())));
        if matches!(kind, "any" | "time" | "date" | "etag" | "guid")
            || (name.is_none() && known.contains_key(kind))
        {
            return Some((kind.to_owned(), name, &pattern[..start], &pattern[start + end + 1..]));
        }
    }
    None
}

/// How long a time is that a text begins with, as HTTP writes it.
fn http_date(text: &str) -> usize {
    let length = "Mon, 01 Jan 2001 00:00:00 GMT".len();
    let is_date = text.get(..length).is_some_and(|date| httpdate::parse_http_date(date).is_ok());
    if is_date { length } else { 0 }
}

fn differs(after: &str, expected: &str, found: &str) -> String {
    let tail: String = after.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
    format!("after {tail:?}\n    expected {expected}\n    found    {found}")
}
