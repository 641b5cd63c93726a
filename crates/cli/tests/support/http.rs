//! A small HTTP/1.1 client over one connection. It signs with Shared Key Lite unless told otherwise, and adds nothing
//! else by itself.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use front::ServiceKind;
use wire::signing::AccountKey;
use wire::signing::shared_key::{BlobQueueRequest, Scheme, SignedRequest};

pub struct Client {
    pub address: SocketAddr,
    pub account: String,
    /// Whose form of signature it makes.
    pub service: ServiceKind,
    key: AccountKey,
    connection: Option<BufReader<TcpStream>>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// The reason phrase after the status.
    pub reason: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The error code of a JSON or XML error document, or nothing.
    pub fn code(&self) -> String {
        let text = self.text();
        let after = |start: &str, end: &str| {
            let (_, rest) = text.split_once(start)?;
            rest.split_once(end).map(|(code, _)| code.to_owned())
        };
        after("\"code\":\"", "\"")
            .or_else(|| after("code>", "<"))
            .or_else(|| after("<Code>", "<"))
            .unwrap_or_default()
    }
}

impl Client {
    pub fn new(address: SocketAddr, account: &str, key: &str) -> Self {
        Self::of_service(ServiceKind::Table, address, account, key)
    }

    pub fn of_service(service: ServiceKind, address: SocketAddr, account: &str, key: &str) -> Self {
        let key = AccountKey::parse(key).unwrap();
        Self { address, account: account.to_owned(), service, key, connection: None }
    }

    /// Sends a signed request with these headers. `path` follows the account and includes the query.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// As `send`; an error leaves the outcome unknown.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        self.send_signed(method, &format!("/{}{path}", self.account), headers, body)
    }

    /// A request with a valid signature, as bytes.
    pub fn signed(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let target = format!("/{}{path}", self.account);
        let date = httpdate::fmt_http_date(SystemTime::now());
        let authorization = match self.service {
            ServiceKind::Table => self.authorization(&target, &date),
            ServiceKind::Blob | ServiceKind::Queue => {
                let mut all = vec![("x-ms-date", date.as_str())];
                if !headers.iter().any(|(name, _)| *name == "x-ms-version") {
                    all.push(("x-ms-version", "2019-02-02"));
                }
                all.extend_from_slice(headers);
                self.authorization_of_all(method, &target, &all)
            }
        };
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nx-ms-date: {date}\r\nAuthorization: {authorization}\r\n",
            self.address
        );
        if !headers.iter().any(|(name, _)| *name == "x-ms-version") {
            request.push_str("x-ms-version: 2019-02-02\r\n");
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| *name == "Transfer-Encoding" || *name == "Content-Length") {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        [request.as_bytes(), body].concat()
    }

    /// As `try_send`, but with the whole target: for host-style addresses, and for the secondary.
    pub fn send_signed(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut all = vec![("x-ms-date", date.as_str())];
        if !headers.iter().any(|(name, _)| names(name, "x-ms-version")) {
            all.push((
                "x-ms-version",
                if self.service == ServiceKind::Table { "2019-02-02" } else { "2021-02-12" },
            ));
        }
        all.extend_from_slice(headers);
        let authorization = match self.service {
            ServiceKind::Table => self.authorization(target, &date),
            ServiceKind::Blob | ServiceKind::Queue => self.authorization_of_all(method, target, &all),
        };
        all.push(("Authorization", &authorization));
        self.send_raw(method, target, &all, body)
    }

    /// In the form of queues and blobs, which signs headers too.
    fn authorization_of_all(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers: Vec<(&str, &str)> =
            headers.iter().filter(|(name, _)| !name.starts_with('!')).copied().collect();
        let request = BlobQueueRequest { method, account: &self.account, path, query, headers: &headers };
        let signature = self.key.sign(&request.string_to_sign(Scheme::SharedKeyLite));
        format!("SharedKeyLite {}:{signature}", self.account)
    }

    pub fn authorization(&self, target: &str, date: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let comp = query.split('&').find_map(|pair| pair.strip_prefix("comp="));
        let request = SignedRequest {
            method: "",
            content_md5: "",
            content_type: "",
            date,
            account: &self.account,
            path,
            comp,
        };
        let signature = self.key.sign(&request.string_to_sign(Scheme::SharedKeyLite));
        format!("SharedKeyLite {}:{signature}", self.account)
    }

    /// Sends only this, with `Host` and `Content-Length` if they are not given. `!` before the name of a header leaves
    /// it out.
    pub fn send_raw(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let has = |wanted: &str| headers.iter().any(|(name, _)| names(name, wanted));
        let mut request = format!("{method} {target} HTTP/1.1\r\n");
        if !has("host") {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        if !has("content-length")
            && !has("transfer-encoding")
            && (!body.is_empty() || matches!(method, "POST" | "PUT"))
        {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in headers.iter().filter(|(name, _)| !name.starts_with('!')) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        let answer = self.exchange(&bytes, method == "HEAD");
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    fn exchange(&mut self, request: &[u8], no_body: bool) -> std::io::Result<Answer> {
        if self.connection.is_none() {
            let stream = TcpStream::connect(self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            self.connection = Some(BufReader::new(stream));
        }
        let connection = self.connection.as_mut().unwrap();
        // A server that refuses early may close its side; its answer can still be read.
        let written = connection.get_mut().write_all(request);
        match read_answer(connection, no_body) {
            Ok(answer) => {
                if answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
                    self.connection = None;
                }
                Ok(answer)
            }
            Err(error) => Err(written.err().unwrap_or(error)),
        }
    }
}

/// Whether this entry sets the header or, with `!`, leaves it out.
fn names(name: &str, wanted: &str) -> bool {
    name.strip_prefix('!').unwrap_or(name).eq_ignore_ascii_case(wanted)
}

/// Reads one answer from a stream.
pub fn read_answer(stream: &mut impl BufRead, no_body: bool) -> std::io::Result<Answer> {
    let bad = |text: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, text.to_owned());
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|s| s.trim().parse().ok()).ok_or_else(|| bad(&line))?;
    let reason = line.trim_end().splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').ok_or_else(|| bad(text))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, reason, headers, body: Vec::new() };
    if no_body || status == 204 {
        return Ok(answer);
    }
    if answer.header("transfer-encoding").is_some() {
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| bad(&line))?;
            let start = answer.body.len();
            answer.body.resize(start + size + 2, 0);
            stream.read_exact(&mut answer.body[start..])?;
            answer.body.truncate(start + size);
            if size == 0 {
                return Ok(answer);
            }
        }
    }
    let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    answer.body.resize(length, 0);
    stream.read_exact(&mut answer.body)?;
    Ok(answer)
}
