//! Batches from the client's side: writes parts into a multipart body, and reads the answers.

use std::fmt::Write as _;
use std::io::{BufReader, Read};

use super::http::read_answer;
use super::{Answer, Client};

/// A request that is sent alone or within a change set. The path follows the account.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Request {
    pub fn send(&self, client: &mut Client) -> std::io::Result<Answer> {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        client.try_send(self.method, &self.path, &headers, self.body.as_bytes())
    }
}

/// Sends a change set, whose answer must be a 202. Returns the answers to the parts.
pub fn send(client: &mut Client, parts: &[Request]) -> std::io::Result<Vec<Answer>> {
    let content_type = "multipart/mixed; boundary=batch_outer";
    let body = change_set(&format!("http://{}/{}", client.address, client.account), parts);
    let answer = client.try_send("POST", "/$batch", &[("Content-Type", content_type)], body.as_bytes())?;
    assert_eq!(answer.status, 202, "a batch was answered with {}", answer.text());
    Ok(read_parts(&answer))
}

fn change_set(base: &str, parts: &[Request]) -> String {
    let mut out =
        "--batch_outer\r\nContent-Type: multipart/mixed; boundary=changeset_inner\r\n\r\n".to_owned();
    for (index, part) in parts.iter().enumerate() {
        out.push_str("--changeset_inner\r\nContent-Type: application/http\r\n");
        out.push_str("Content-Transfer-Encoding: binary\r\n\r\n");
        let _ = write!(out, "{} {base}{} HTTP/1.1\r\nContent-ID: {index}\r\n", part.method, part.path);
        for (name, value) in &part.headers {
            let _ = write!(out, "{name}: {value}\r\n");
        }
        let _ = write!(out, "\r\n{}\r\n", part.body);
    }
    out.push_str("--changeset_inner--\r\n--batch_outer--\r\n");
    out
}

fn read_parts(answer: &Answer) -> Vec<Answer> {
    let text = answer.text();
    let (_, rest) = text.split_once("boundary=").unwrap_or_else(|| panic!("no change set in {text}"));
    let (boundary, rest) = rest.split_once("\r\n").unwrap();
    let delimiter = format!("--{boundary}");
    let parts = rest.split(delimiter.as_str()).skip(1).take_while(|part| !part.starts_with("--"));
    parts.map(read_part).collect()
}

fn read_part(text: &str) -> Answer {
    let (mime, http) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text}"));
    assert!(mime.contains("Content-Type: application/http"), "{mime}");
    let mut stream = BufReader::new(http.as_bytes());
    let mut answer = read_answer(&mut stream, true).unwrap_or_else(|error| panic!("{error}: {http}"));
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    assert!(body.ends_with(b"\r\n"), "no line end before the boundary: {http}");
    body.truncate(body.len() - 2);
    answer.body = body;
    answer
}
