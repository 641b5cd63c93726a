//! Whole requests to the Blob service, through the real server over a socket: routes, ranges, copy sources, block lists, pages,
//! batches. The input is a method, a target below the account, lines of headers, an empty line and a body; `@` in a header is
//! the address of the account. The owner of the account sends it. Whatever it is, nothing panics, and the answer is one that
//! a client can read.
#![no_main]

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use blob_http::Settings;
use blob_service::BlobService;
use front::account::{Account, Accounts, SharedAccounts};
use front::analytics::Analytics;
use front::bearer::{Bearer, BearerSettings, SharedBearer};
use front::metrics::Metrics;
use front::{Bounds, Listener, Memory, Seats, Server, ServiceKind, Services, SlowQueries};
use libfuzzer_sys::fuzz_target;
use store::{Gate, MemoryEngine, MemoryObjects};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// For everything, until 2099.
const TOKEN: &str = "sv=2021-02-12&ss=b&srt=sco&sp=rwdlacup&se=2099-01-01T00:00:00Z&spr=https,http\
                     &sig=aWSRoTcv%2B2ynhS2uvD4dv4pdHxbjHxWmpIB4V7eKRfM%3D";
const ACCOUNT: &str = "/devstoreaccount1";
const ANSWER_TIME_MAX: Duration = Duration::from_secs(8);
/// What is there: a container with a blob of each type, one of them with a block that is not committed and a snapshot.
const THERE: [(&str, &str, &str, &[u8]); 7] = [
    ("PUT", "/abc?restype=container&", "", b""),
    ("PUT", "/abc/b?", "x-ms-blob-type: BlockBlob\r\nx-ms-tags: a=1\r\n", b"0123456789"),
    ("PUT", "/abc/b?comp=snapshot&", "", b""),
    ("PUT", "/abc/b?comp=block&blockid=MDAw&", "", &[7; 5000]),
    ("PUT", "/abc/l?", "x-ms-blob-type: AppendBlob\r\n", b""),
    ("PUT", "/abc/l?comp=appendblock&", "", &[8; 5000]),
    ("PUT", "/abc/p?", "x-ms-blob-type: PageBlob\r\nx-ms-blob-content-length: 5242880\r\n", b""),
];

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    // Of the kind that can hand its other work to another thread, as the server's are.
    let build = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    RUNTIME.get_or_init(|| build().expect("a runtime starts"))
}

fn server() -> Server {
    let (engine, objects) = (Arc::new(MemoryEngine::new()), Arc::new(MemoryObjects::new()));
    let blobs = BlobService::new(engine.clone(), objects);
    let services =
        Services::new().with(blob_http::behind_front(blobs, Settings { public_access: true }));
    let bounds = Bounds {
        connections: 16,
        idle: ANSWER_TIME_MAX,
        head_bytes: 128 * 1024,
        memory_bytes: 64 * 1024 * 1024,
        shutdown: Duration::ZERO,
    };
    let bearer = Bearer::load(BearerSettings::default());
    Server {
        metrics: Metrics::new(&services),
        services,
        engine,
        gate: Arc::new(Gate::default()),
        accounts: SharedAccounts::new(Accounts::new([Account::development()])),
        bearer: SharedBearer::new(Arc::new(bearer.expect("no issuer is trusted"))),
        check_clock: true,
        bounds,
        memory: Memory::new(bounds.memory_bytes),
        analytics: Analytics::new(None).expect("nothing is logged"),
        traces: None,
        slow_queries: SlowQueries::default(),
        seats: Seats::here(),
    }
}

/// The answer to one request, head and body; nothing if the connection is closed without one.
async fn send(stream: &mut TcpStream, head: &str, body: &[u8], is_head: bool) -> Option<(u16, Vec<u8>)> {
    let request = [head.as_bytes(), body].concat();
    // The server may have answered and closed before it has read everything.
    let _ = stream.write_all(&request).await;
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status: u16 = text.get(9..12).and_then(|status| status.parse().ok()).expect("an answer has a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    let mut body = bytes.split_off(end);
    if is_head || matches!(status, 204 | 304) {
        return Some((status, Vec::new()));
    }
    loop {
        let is_whole = match length {
            Some(length) => body.len() >= length,
            None => body.ends_with(b"0\r\n\r\n"),
        };
        if is_whole {
            return Some((status, body));
        }
        assert!(stream.read_buf(&mut body).await.unwrap_or(0) > 0, "an answer was cut off: {text}");
    }
}

fuzz_target!(|input: &[u8]| {
    let end = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let (head, body) = (&input[..end], input.get(end + 2..).unwrap_or_default());
    let Ok(head) = std::str::from_utf8(head) else { return };
    let mut lines = head.lines();
    let Some((method, target)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_target = target.starts_with('/') && target.bytes().all(|byte| byte > b' ' && byte != 0x7f && byte != b'#');
    if !is_token(method) || !is_target || method.eq_ignore_ascii_case("connect") {
        return;
    }
    let own = ["host", "content-length", "transfer-encoding", "expect", "connection", "upgrade"];
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    runtime().block_on(async {
        let listener = Listener::bind(ServiceKind::Blob, "127.0.0.1:0", None).await.expect("a port is free");
        let address: SocketAddr = listener.address();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = server().run(vec![listener], Box::pin(async { drop(stopped.await) }));
        let asked = async {
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            let fixed = |more: &str, length: usize| {
                format!("Host: {address}\r\nx-ms-version: 2021-12-02\r\n{more}Content-Length: {length}\r\n\r\n")
            };
            for (method, target, more, body) in THERE {
                let head = format!("{method} {ACCOUNT}{target}{TOKEN} HTTP/1.1\r\n{}", fixed(more, body.len()));
                let answer = send(&mut stream, &head, body, false).await;
                assert!(answer.is_some_and(|(status, _)| status == 201), "{target}");
            }
            let mark = if target.contains('?') { '&' } else { '?' };
            let url = format!("http://{address}{ACCOUNT}");
            let is_header = |name: &str, value: &str| {
                let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                let is_value = value.bytes().all(|byte| byte >= b' ' && byte != 0x7f);
                !name.is_empty() && is_name && is_value && !own.iter().any(|own| own.eq_ignore_ascii_case(name))
            };
            let headers = headers.into_iter().filter(|(name, value)| is_header(name, value));
            let headers: String =
                headers.map(|(name, value)| format!("{name}: {}\r\n", value.replace('@', &url))).collect();
            let head =
                format!("{method} {ACCOUNT}{target}{mark}{TOKEN} HTTP/1.1\r\n{}", fixed(&headers, body.len()));
            let is_head = method.eq_ignore_ascii_case("head");
            let answer = tokio::time::timeout(ANSWER_TIME_MAX, send(&mut stream, &head, body, is_head)).await;
            if let Some((status, body)) = answer.unwrap_or_else(|_| panic!("no answer to {head}")) {
                let text = String::from_utf8_lossy(&body);
                assert!((200..500).contains(&status), "{status} {text}: {head}");
            }
            // It serves on.
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            let head = format!("GET {ACCOUNT}/?comp=list&{TOKEN} HTTP/1.1\r\n{}", fixed("", 0));
            let listed = send(&mut stream, &head, b"", false).await;
            assert!(listed.is_some_and(|(status, _)| status == 200), "after {method} {target}");
            drop(stop);
        };
        tokio::join!(served, asked);
    });
});
