//! The server as a process: start, settings, errors at start, stop.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::fs;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use crate::support::{ACCOUNT, Answer, Client, KEY, Partita, binary, http};

const JSON: [(&str, &str); 2] = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];
/// Long enough for everything here, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn create_table(client: &mut Client, name: &str) {
    let body = format!("{{\"TableName\":\"{name}\"}}");
    assert_eq!(client.send("POST", "/Tables", &JSON, body.as_bytes()).status, 204);
}

fn tables(client: &mut Client) -> String {
    client.send("GET", "/Tables", &[("Accept", "application/json;odata=nometadata")], b"").text()
}

#[test]
fn the_banner_has_endpoint_and_connection_string() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("new/data");
    let server = Partita::in_directory(&data);
    assert_ne!(server.address.port(), 0);
    let (banner, endpoint) = (&server.banner, format!("http://{}/{ACCOUNT}", server.address));
    let queues = format!("http://{}/{ACCOUNT}", server.queue_address());
    let blobs = format!("http://{}/{ACCOUNT}", server.blob_address());
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={endpoint};QueueEndpoint={queues};BlobEndpoint={blobs};\n"
    );
    let endpoints = format!(
        "Table endpoint     {endpoint}\n  Queue endpoint     {queues}\n  Blob endpoint      {blobs}\n"
    );
    for part in [&endpoints, &text(&data), &connection] {
        assert!(banner.contains(part), "{part} is not in\n{banner}");
    }
    create_table(&mut server.client(), "Here");
}

#[test]
fn the_server_runs_on_if_standard_output_is_closed() {
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error"]);
    command.args([
        "--account",
        "shop:AAAAAAAAAAAAAAAAAAAAAA==",
        "--account",
        "bank:AAAAAAAAAAAAAAAAAAAAAA==",
    ]);
    // Reads only up to the first connection string.
    let mut server = Partita::spawn(command);
    assert_eq!(
        tables(&mut Client::new(server.address, "bank", "AAAAAAAAAAAAAAAAAAAAAA==")),
        "{\"value\":[]}"
    );
    assert_eq!(server.try_wait(), None);
}

#[test]
fn secret_keys_are_not_printed() {
    let server = Partita::start(&[
        "--in-memory",
        "--account",
        "shop:c2VjcmV0c2VjcmV0c2VjcmV0:c2Vjb25kc2Vjb25kc2Vjb25k",
    ]);
    assert!(server.banner.contains("AccountName=shop;AccountKey=<key>;"), "{}", server.banner);
    assert!(!server.banner.contains("c2Vj"), "{}", server.banner);
    for key in ["c2VjcmV0c2VjcmV0c2VjcmV0", "c2Vjb25kc2Vjb25kc2Vjb25k"] {
        assert_eq!(tables(&mut Client::new(server.address, "shop", key)), "{\"value\":[]}");
    }
    // The development account, whose key is public, does not exist.
    assert_ne!(server.client().send("GET", "/Tables", &[], b"").status, 200);
}

// Stopping.

#[test]
fn sigterm_finishes_the_request_in_flight() {
    finishes_the_request_under_way("TERM");
}

#[test]
fn sigint_finishes_the_request_in_flight() {
    finishes_the_request_under_way("INT");
}

fn finishes_the_request_under_way(signal: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Partita::in_directory(directory.path());
    let mut client = server.client();
    create_table(&mut client, "Slow");

    let body = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Text\":\"slowly written\"}";
    let mut upload = connect(server.address);
    upload.write_all(head(&client, "POST", "/Slow", body.len()).as_bytes()).unwrap();
    is_under_way(&mut upload);
    upload.write_all(&body.as_bytes()[..20]).unwrap();

    testing::signal(server.process_id(), signal);
    testing::wait_until("nobody new is let in", || TcpStream::connect(server.address).err());
    testing::wait_until("no connection that stands idle is kept", || {
        client.try_send("GET", "/Tables", &[], b"").err()
    });
    assert_eq!(server.try_wait(), None, "it did not wait for the request");

    upload.write_all(&body.as_bytes()[20..]).unwrap();
    let answer = read(&upload).unwrap();
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(wait(&mut server).code(), Some(0));

    let server = Partita::in_directory(directory.path());
    let entity = server.client().send("GET", "/Slow(PartitionKey='p',RowKey='r')", &[], b"");
    assert!(entity.text().contains("slowly written"), "{}", entity.text());
}

#[test]
fn a_stop_right_after_the_banner_is_an_orderly_one() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Partita::in_directory(directory.path()).stop().code(), Some(0));
    }
}

#[test]
fn endless_requests_do_not_block_shutdown() {
    let mut server = Partita::start(&["--in-memory", "--shutdown-seconds", "1"]);
    let mut upload = connect(server.address);
    upload.write_all(head(&server.client(), "POST", "/Tables", 100).as_bytes()).unwrap();
    is_under_way(&mut upload);
    server.terminate();
    assert_eq!(wait(&mut server).code(), Some(0));
}

/// The head of a signed request with a body of this length, which is sent once the server asks for it.
fn head(client: &Client, method: &str, path: &str, length: usize) -> String {
    let target = format!("/{}{path}", client.account);
    let date = httpdate::fmt_http_date(SystemTime::now());
    let authorization = client.authorization(&target, &date);
    let expect = if length > 0 { "Expect: 100-continue\r\n" } else { "" };
    format!(
        "{method} {target} HTTP/1.1\r\nHost: {}\r\nx-ms-version: 2019-02-02\r\nx-ms-date: {date}\r\n\
         Authorization: {authorization}\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Prefer: return-no-content\r\n{expect}Content-Length: {length}\r\n\r\n",
        client.address
    )
}

/// Returns once the server has begun with a request: it has asked for the body.
fn is_under_way(upload: &mut TcpStream) {
    const ASKED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut asked = [0; ASKED.len()];
    upload.read_exact(&mut asked).unwrap();
    assert_eq!(asked, ASKED, "{}", String::from_utf8_lossy(&asked));
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn read(stream: &TcpStream) -> std::io::Result<Answer> {
    http::read_answer(&mut BufReader::new(stream), false)
}

fn wait(server: &mut Partita) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = server.try_wait() {
            return status;
        }
        assert!(Instant::now() < deadline, "did not stop");
        sleep(Duration::from_millis(5));
    }
}

// Not starting.

/// Exit code and standard error of a server that does not start.
fn refused(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it started");
        }
        sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "a banner without a server");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Checks that the server exits with 1 and prints one sentence with all these words.
fn check_sentence(arguments: &[&str], words: &[&str]) {
    let (code, said) =
        refused(binary().args(["serve", "--listen", "127.0.0.1:0", "--log-level", "off"]).args(arguments));
    let line = said.strip_prefix("partita: ").and_then(|rest| rest.strip_suffix('\n'));
    let line = line.unwrap_or_else(|| panic!("{said:?}"));
    assert_eq!((code, line.contains('\n')), (Some(1), false), "{said:?}");
    for word in words {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut command = binary();
    command.args(["serve", "--listen", &address, "--data", &text(&data)]);
    let (code, said) = refused(&mut command);
    assert_eq!(code, Some(1));
    assert!(said.starts_with(&format!("partita: {address} is taken by another program")), "{said}");
    assert!(said.contains("--listen") && said.trim_end().lines().count() == 1, "{said}");
    assert!(!data.exists(), "the data was touched");
}

#[test]
fn a_wrong_address_is_reported() {
    for address in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "256.0.0.1:10002"] {
        let (code, said) =
            refused(binary().args(["serve", "--in-memory", "--development", "--listen", address]));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(address) && said.contains("--listen"), "{said}");
    }
}

#[test]
fn an_unusable_data_directory_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "not a directory").unwrap();
    check_sentence(&["--data", &text(&file)], &[&text(&file), "check its path"]);
    let below = file.join("below");
    check_sentence(&["--data", &text(&below)], &[&text(&below), "check its path"]);
    check_sentence(&["--data", &text(directory.path())], &[&text(directory.path()), "not a Partita store"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a directory");
}

#[test]
fn a_data_directory_in_use_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    create_table(&mut server.client(), "Mine");
    check_sentence(
        &["--data", &text(directory.path())],
        &[&text(directory.path()), "in use by another process"],
    );
    assert_eq!(tables(&mut server.client()), "{\"value\":[{\"TableName\":\"Mine\"}]}");
    // After a kill the directory is free.
    server.kill();
    let server = Partita::in_directory(directory.path());
    assert_eq!(tables(&mut server.client()), "{\"value\":[{\"TableName\":\"Mine\"}]}");
}

#[test]
fn a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(Partita::in_directory(directory.path()).stop().success());
    fs::write(directory.path().join("FORMAT"), "partita-store 99\n").unwrap();
    check_sentence(&["--data", &text(directory.path())], &[&text(directory.path()), "format 99", "newer"]);
    assert_eq!(fs::read_to_string(directory.path().join("FORMAT")).unwrap(), "partita-store 99\n");
}

#[test]
fn wrong_settings_are_reported() {
    check_sentence(&["--in-memory", "--account", "shop"], &["\"shop\" has no key", "name:key"]);
    check_sentence(
        &["--in-memory", "--account", "Shop:AAAAAAAAAAAAAAAAAAAAAA=="],
        &["\"Shop\"", "lower-case"],
    );
    check_sentence(&["--in-memory", "--account", "shop:sec!ret"], &["account shop", "Base64"]);
    check_sentence(&["--in-memory", "--max-connections", "0"], &["max-connections"]);
    check_sentence(&["--in-memory", "--idle-seconds", "0"], &["idle-seconds"]);
    check_sentence(&["--in-memory", "--config", "/no/such/file"], &["/no/such/file"]);
    let (code, said) = refused(binary().args(["serve", "--in-memory", "--log-level", "=loud="]));
    assert_eq!(code, Some(1));
    assert!(said.contains("=loud=") && said.contains("debug"), "{said}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("partita.toml");
    for (toml, words) in [
        ("listne = \"127.0.0.1:0\"", "listne"),
        ("listen = 5", "string"),
        ("[[account]]\nname = \"shop\"", "key"),
        ("[[account]]\nname = \"shop\"\nkey = \"sec!ret\"", "Base64"),
        ("listen = \"", "partita.toml"),
    ] {
        fs::write(&file, format!("in-memory = true\n{toml}\n")).unwrap();
        check_sentence(&["--config", &text(&file)], &[words]);
    }
}

#[test]
fn errors_contain_no_secrets() {
    let (_, said) = refused(binary().args(["serve", "--in-memory", "--account", "shop:sec!ret"]));
    assert!(!said.contains("sec!ret"), "{said}");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("partita.toml");
    fs::write(&file, "[[account]]\nname = \"shop\"\nkey = \"c2VjcmV0c2VjcmV0c2VjcmV0\" oops\n").unwrap();
    let (code, said) = refused(binary().args(["serve", "--config", &text(&file)]));
    assert_eq!(code, Some(1));
    assert!(said.contains(&text(&file)) && !said.contains("c2VjcmV0c2VjcmV0c2VjcmV0"), "{said}");
}

#[test]
fn unknown_flags_are_refused() {
    let (code, said) = refused(binary().args(["serve", "--prot", "5"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("--prot") && said.contains("--help"), "{said}");
}

// Settings.

#[test]
fn settings_are_read_from_variables() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut command = binary();
    command.arg("serve").env("PARTITA_LISTEN", "127.0.0.1:0").env("PARTITA_DATA", &data);
    command
        .env("PARTITA_ACCOUNTS", "shop:AAAAAAAAAAAAAAAAAAAAAA==;bank:BBBBBBBBBBBBBBBBBBBBBA==")
        .env("PARTITA_LOG_LEVEL", "error");
    let server = Partita::spawn(command);
    for (account, key) in [("shop", "AAAAAAAAAAAAAAAAAAAAAA=="), ("bank", "BBBBBBBBBBBBBBBBBBBBBA==")] {
        create_table(&mut Client::new(server.address, account, key), "Here");
    }
    assert!(data.join("FORMAT").exists());
}

#[test]
fn flags_and_variables_win_over_the_settings_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let file = path("partita.toml");
    let toml = format!(
        "listen = \"127.0.0.1:0\"\ndata = {:?}\nlog-level = \"error\"\nidle-seconds = 60\n\
         [[account]]\nname = \"shop\"\nkey = \"AAAAAAAAAAAAAAAAAAAAAA==\"\nkey2 = \"BBBBBBBBBBBBBBBBBBBBBA==\"\n",
        text(&path("of-file"))
    );
    fs::write(&file, toml).unwrap();
    let start = |edit: &dyn Fn(&mut Command)| {
        let mut command = binary();
        command.args(["serve", "--config"]).arg(&file);
        edit(&mut command);
        Partita::spawn(command)
    };
    let server = start(&|_| {});
    assert_eq!(
        tables(&mut Client::new(server.address, "shop", "BBBBBBBBBBBBBBBBBBBBBA==")),
        "{\"value\":[]}"
    );
    assert!(server.banner.contains(&text(&path("of-file"))));

    let server = start(&|command| {
        command
            .env("PARTITA_DATA", path("of-variable"))
            .env("PARTITA_ACCOUNTS", "bank:CCCCCCCCCCCCCCCCCCCCCA==");
    });
    assert_eq!(
        tables(&mut Client::new(server.address, "bank", "CCCCCCCCCCCCCCCCCCCCCA==")),
        "{\"value\":[]}"
    );
    assert!(path("of-variable").exists());

    let server = start(&|command| {
        command.env("PARTITA_DATA", path("never")).arg("--data").arg(path("of-flag"));
        command
            .env("PARTITA_ACCOUNTS", "bank:CCCCCCCCCCCCCCCCCCCCCA==")
            .args(["--account", "desk:DDDDDDDDDDDDDDDDDDDDDA=="]);
    });
    assert_eq!(
        tables(&mut Client::new(server.address, "desk", "DDDDDDDDDDDDDDDDDDDDDA==")),
        "{\"value\":[]}"
    );
    assert!(path("of-flag").exists() && !path("never").exists());
}

/// Its key is public, so it is served only on loopback addresses, unless a setting asks for more.
#[test]
fn the_development_account_is_not_served_by_mistake() {
    for address in ["0.0.0.0:0", "[::]:0", "some-name:0"] {
        let (_, said) = refused(binary().args(["serve", "--in-memory", "--listen", address]));
        assert!(said.contains("no account") && said.contains("--development"), "{address}: {said}");
    }
    check_sentence(&["--in-memory", "--account", ""], &["PARTITA_ACCOUNTS", "empty"]);
    let both = ["--in-memory", "--development", "--account", "shop:AAAAAAAAAAAAAAAAAAAAAA=="];
    check_sentence(&both, &["development", "leave out one"]);
    let mut command = binary();
    command.args(["serve", "--in-memory", "--listen", "127.0.0.1:0"]).env("PARTITA_ACCOUNTS", "");
    let output = command.output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("PARTITA_ACCOUNTS"));
    let mut command = binary();
    command.args(["serve", "--in-memory", "--listen", "0.0.0.0:0", "--development", "--log-level", "error"]);
    let server = Partita::spawn(command);
    let mut client = Client::new(([127, 0, 0, 1], server.address.port()).into(), "devstoreaccount1", KEY);
    assert_eq!(tables(&mut client), "{\"value\":[]}");
}

#[test]
fn help_names_every_command_and_flag() {
    let said = |arguments: &[&str]| {
        let output = binary().args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    for word in ["serve", "--in-memory", "connection string", "127.0.0.1:10002"] {
        assert!(said(&["--help"]).contains(word), "{word}");
    }
    let help = said(&["serve", "--help"]);
    for word in [
        "PARTITA_LISTEN",
        "PARTITA_DATA",
        "PARTITA_ACCOUNTS",
        "TOML",
        "[[account]]",
        "/health/ready",
        "SIGTERM",
    ] {
        assert!(help.contains(word), "{word} is not in\n{help}");
    }
    assert!(said(&["--version"]).starts_with("partita "));
    // Without arguments: help, too, but with an error status.
    let output = binary().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("serve"));
}

// Serving.

#[test]
fn health_needs_no_key() {
    let directory = tempfile::tempdir().unwrap();
    for server in [Partita::in_memory(), Partita::in_directory(directory.path())] {
        for path in ["/health/live", "/health/ready"] {
            let answer = server.client().send_raw("GET", path, &[], b"").unwrap();
            assert_eq!((answer.status, answer.text().as_str()), (200, "ok\n"), "{path}");
        }
    }
}

#[test]
fn idle_connections_are_closed() {
    let server = Partita::start(&["--in-memory", "--idle-seconds", "1"]);
    let request = head(&server.client(), "GET", "/Tables", 0);
    // A connection without a request, one with half a head, and one that was answered.
    for said in ["", &request[..40], &request] {
        let waiting = Instant::now();
        let mut stream = connect(server.address);
        stream.write_all(said.as_bytes()).unwrap();
        if said.len() > 40 {
            assert_eq!(read(&stream).unwrap().status, 200);
        }
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap_or_else(|error| panic!("after {said:?}: {error}"));
        let waited = waiting.elapsed();
        assert!(waited > Duration::from_millis(500), "{said:?}: {waited:?}");
    }
}

#[test]
fn connections_beyond_the_limit_wait() {
    let server = Partita::start(&["--in-memory", "--max-connections", "2"]);
    // Both places have a request under way. An idle connection would give way to a new one after a second.
    let bodies = [r#"{"TableName":"First"}"#, r#"{"TableName":"Second"}"#];
    let mut within = bodies.map(|body| {
        let mut stream = connect(server.address);
        stream.write_all(head(&server.client(), "POST", "/Tables", body.len()).as_bytes()).unwrap();
        is_under_way(&mut stream);
        stream
    });

    let mut third = connect(server.address);
    third.write_all(head(&server.client(), "GET", "/Tables", 0).as_bytes()).unwrap();
    third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let early = read(&third).map(|answer| answer.status);
    assert!(
        early.as_ref().is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)),
        "{early:?}"
    );
    // Those within the limit are served.
    for (stream, body) in within.iter_mut().zip(bodies) {
        stream.write_all(body.as_bytes()).unwrap();
        assert_eq!(read(stream).unwrap().status, 204);
    }
    let [first, _second] = within;
    drop(first);
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(read(&third).unwrap().status, 200);
}

#[test]
fn logs_carry_the_request_id() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    for format in ["text", "json"] {
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "debug", "--log-format", format]);
        command.arg("--data").arg(directory.path().join("data")).stderr(fs::File::create(&path).unwrap());
        let server = Partita::spawn(command);
        let answer = server.client().send("GET", "/Tables", &[], b"");
        let id = answer.header("x-ms-request-id").unwrap().to_owned();
        assert!(server.stop().success());
        let log = fs::read_to_string(&path).unwrap();
        let line =
            log.lines().find(|line| line.contains(&id)).unwrap_or_else(|| panic!("{id} is not in\n{log}"));
        assert!(line.contains("GET") && line.contains("200"), "{line}");
        assert!(!log.contains(KEY), "the key is in the log");
        if format == "json" {
            for line in log.lines() {
                let line: serde_json::Value =
                    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
                assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
            }
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                (line["request_id"].as_str(), line["status"].as_u64()),
                (Some(id.as_str()), Some(200))
            );
        }
    }
}

#[test]
fn data_in_memory_is_lost_and_data_in_the_default_directory_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let start = |arguments: &[&str]| {
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error"]).args(arguments);
        command.current_dir(directory.path());
        Partita::spawn(command)
    };
    for _ in 0..2 {
        let server = start(&["--in-memory"]);
        assert!(server.banner.contains("in memory; it is gone after exit"), "{}", server.banner);
        assert_eq!(tables(&mut server.client()), "{\"value\":[]}");
        create_table(&mut server.client(), "Gone");
        assert!(server.stop().success());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
    let server = start(&[]);
    create_table(&mut server.client(), "Kept");
    assert!(server.stop().success());
    assert!(directory.path().join("partita-data/FORMAT").exists());
    assert_eq!(tables(&mut start(&[]).client()), "{\"value\":[{\"TableName\":\"Kept\"}]}");
}
