//! Request logs as blobs in `$logs`: what clients see of them and may do with them, several services at once, and kills.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::collections::{BTreeMap, HashSet};

use crate::support::request_logs::{log_blobs, request_logs};
use crate::support::{Client, Partita, binary};

const VERSION: (&str, &str) = ("x-ms-version", "2021-02-12");
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const JSON: (&str, &str) = ("Accept", "application/json;odata=nometadata");

fn log_everything(client: &mut Client) {
    let body = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write>\
                <Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled><Days>2</Days></RetentionPolicy></Logging>\
                </StorageServiceProperties>";
    let set = client.send("PUT", "/?restype=service&comp=properties", &[], body.as_bytes());
    assert_eq!(set.status, 202, "{}", set.text());
}

/// The name of the only log of tables, once it has this line.
fn wait_for_log(blobs: &mut Client, line: &str) -> String {
    testing::wait_until("the log is there", || {
        let logs = log_blobs(blobs, "table/")?;
        logs.into_iter().find(|(_, text)| text.contains(line)).map(|(name, _)| name)
    })
}

#[test]
fn a_log_is_a_block_blob_that_says_what_it_has() {
    let server = Partita::in_memory();
    let (mut tables, mut blobs) = (server.client(), server.blob_client());
    assert_eq!(log_blobs(&mut blobs, ""), None, "nobody has asked for logs yet");
    log_everything(&mut tables);
    testing::wait_until("the container is there", || log_blobs(&mut blobs, ""));
    let asked = tables.send("GET", "/Tables", &[JSON], b"");
    let id = asked.header("x-ms-request-id").unwrap();
    let name = wait_for_log(&mut blobs, id);
    // `table/2026/11/17/2300/000000.log`
    let parts: Vec<&str> = name.split('/').collect();
    let widths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    assert_eq!(
        (parts[0], widths.as_slice(), parts[5]),
        ("table", &[5, 4, 2, 2, 4, 10][..], "000000.log"),
        "{name}"
    );
    assert!(parts[4].ends_with("00"), "{name}");

    let head = blobs.send("HEAD", &format!("/$logs/{name}"), &[VERSION], b"");
    let shown = |name: &str| head.header(name).unwrap_or_default().to_owned();
    assert_eq!((head.status, shown("x-ms-blob-type").as_str()), (200, "BlockBlob"));
    assert_eq!(
        (shown("x-ms-meta-LogType").as_str(), shown("x-ms-meta-LogVersion").as_str()),
        ("read", "1.0")
    );
    let (from, to) = (shown("x-ms-meta-StartTime"), shown("x-ms-meta-EndTime"));
    let line = request_logs(&mut blobs, &name).lines().next().unwrap().to_owned();
    let started = line.split(';').nth(1).unwrap();
    assert!(from.len() == 20 && from.ends_with('Z') && from <= to, "{from} {to}");
    assert_eq!(from[..19], started[..19], "{line}");

    let whole = blobs.send("GET", &format!("/$logs/{name}"), &[VERSION], b"").body;
    let part = blobs.send("GET", &format!("/$logs/{name}"), &[VERSION, ("x-ms-range", "bytes=4-9")], b"");
    assert_eq!((part.status, &part.body[..]), (206, &whole[4..10]));
    let listed =
        blobs.send("GET", "/$logs?restype=container&comp=list&include=metadata", &[VERSION], b"").text();
    assert!(listed.contains(&format!("<StartTime>{from}</StartTime>")), "{listed}");
    let folders = blobs.send("GET", "/$logs?restype=container&comp=list&delimiter=/", &[VERSION], b"").text();
    assert!(folders.contains("<BlobPrefix><Name>table/</Name></BlobPrefix>"), "{folders}");

    for (options, is_shown) in [("", false), ("&include=metadata", false), ("&include=system", true)] {
        let containers = blobs.send("GET", &format!("/?comp=list{options}"), &[VERSION], b"").text();
        assert_eq!(containers.contains("<Name>$logs</Name>"), is_shown, "{options}: {containers}");
    }
}

#[test]
fn clients_read_and_delete_logs_and_do_nothing_else_with_them() {
    let server = Partita::in_memory();
    let (mut tables, mut blobs) = (server.client(), server.blob_client());
    log_everything(&mut tables);
    tables.send("GET", "/Tables", &[JSON], b"");
    let name = wait_for_log(&mut blobs, ";QueryTables;");
    assert_eq!(blobs.send("PUT", "/box?restype=container", &[VERSION], b"").status, 201);
    let log = format!("/$logs/{name}");
    let mut check = |method: &str, path: &str, headers: &[(&str, &str)], status: u16| {
        let answer = blobs.send(method, path, &[&[VERSION], headers].concat(), b"");
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        if status == 403 {
            assert_eq!(answer.code(), "InsufficientAccountPermissions", "{method} {path}");
        }
    };
    let container = "/$logs?restype=container";
    check("PUT", container, &[], 403);
    check("DELETE", container, &[], 403);
    check("PUT", &format!("{container}&comp=metadata"), &[], 403);
    check("PUT", &format!("{container}&comp=acl"), &[("x-ms-blob-public-access", "container")], 403);
    check(
        "PUT",
        &format!("{container}&comp=lease"),
        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")],
        403,
    );
    for blob in [log.as_str(), "/$logs/mine"] {
        check("PUT", blob, &[BLOCK], 403);
        check("PUT", blob, &[("x-ms-blob-type", "AppendBlob")], 403);
        check(
            "PUT",
            blob,
            &[("x-ms-copy-source", &format!("http://{}/devstoreaccount1{log}", server.blob_address()))],
            403,
        );
        check("PUT", &format!("{blob}?comp=block&blockid=YQ%3D%3D"), &[], 403);
        check("PUT", &format!("{blob}?comp=blocklist"), &[], 403);
        check("PUT", &format!("{blob}?comp=metadata"), &[], 403);
        check("PUT", &format!("{blob}?comp=properties"), &[], 403);
        check("PUT", &format!("{blob}?comp=snapshot"), &[], 403);
        check("PUT", &format!("{blob}?comp=tags"), &[], 403);
        check("PUT", &format!("{blob}?comp=tier"), &[("x-ms-access-tier", "Cool")], 403);
        check("PUT", &format!("{blob}?comp=undelete"), &[], 403);
        check(
            "PUT",
            &format!("{blob}?comp=lease"),
            &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")],
            403,
        );
    }
    check("GET", container, &[], 200);
    check("GET", &format!("{container}&comp=acl"), &[], 200);
    check("HEAD", &log, &[], 200);
    check("GET", &format!("{log}?comp=blocklist"), &[], 200);
    // To another container it can be copied.
    let source = format!("http://{}/devstoreaccount1{log}", server.blob_address());
    check("PUT", "/box/copy", &[("x-ms-copy-source", &source)], 202);
    check("DELETE", &log, &[], 202);
    check("GET", &log, &[], 404);
    // The server goes on with the next log.
    let asked = tables.send("GET", "/Tables", &[JSON], b"");
    let next = wait_for_log(&mut blobs, asked.header("x-ms-request-id").unwrap());
    assert!(next > name, "{next}");
}

#[test]
fn several_services_log_at_once_and_each_line_is_there_once() {
    const REQUESTS: usize = 400;
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    for mut client in [server.client(), server.queue_client(), server.blob_client()] {
        log_everything(&mut client);
    }
    let asked: BTreeMap<&str, HashSet<String>> = std::thread::scope(|threads| {
        let ask = |mut client: Client, path: &'static str| {
            threads.spawn(move || {
                let id = |_| {
                    let answer = client.send("GET", path, &[JSON], b"");
                    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                    answer.header("x-ms-request-id").unwrap().to_owned()
                };
                (0..REQUESTS).map(id).collect::<HashSet<_>>()
            })
        };
        let asking = [
            ("table/", ask(server.client(), "/Tables")),
            ("queue/", ask(server.queue_client(), "/?comp=list")),
            ("blob/", ask(server.blob_client(), "/?comp=list")),
        ];
        asking.map(|(service, asked)| (service, asked.join().unwrap())).into()
    });
    assert!(server.stop().success());
    let server = Partita::in_directory(directory.path());
    for (service, asked) in asked {
        let logs = request_logs(&mut server.blob_client(), service);
        let ids: Vec<&str> = logs.lines().map(|line| line.split(';').nth(13).unwrap()).collect();
        let found: Vec<&&str> = ids.iter().filter(|id| asked.contains(**id)).collect();
        assert_eq!(found.len(), REQUESTS, "{service}");
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), REQUESTS, "{service}");
        let is_own = |line: &str| line.split(';').nth(10) == service.strip_suffix('/');
        assert!(logs.lines().all(is_own), "{service}");
    }
}

#[test]
fn a_kill_leaves_every_line_that_was_there_and_damages_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for round in 0..4 {
        let server = Partita::in_directory(directory.path());
        let mut tables = server.client();
        log_everything(&mut tables);
        let mut blobs = server.blob_client();
        let found: BTreeMap<_, _> = log_blobs(&mut blobs, "table/").unwrap_or_default().into_iter().collect();
        for (name, text) in &seen {
            assert!(found.get(name).is_some_and(|found| found.starts_with(text)), "{name} in round {round}");
        }
        for text in found.values() {
            // An address in quotes may have semicolons, too.
            let is_whole = |line: &str| line.starts_with("1.0;") && line.split(';').count() >= 30;
            assert!(text.ends_with('\n') && text.lines().all(is_whole), "{text}");
        }
        let logs = found.len();
        // Requests go on while the log is looked at and the server is killed.
        std::thread::scope(|threads| {
            let mut asking = server.client();
            threads.spawn(move || while asking.try_send("GET", "/Tables", &[JSON], b"").is_ok() {});
            seen = testing::wait_until("this server's log has grown", || {
                let now: BTreeMap<_, _> = log_blobs(&mut blobs, "table/")?.into_iter().collect();
                let has_grown =
                    now.len() > logs && now.values().map(String::len).sum::<usize>() > (round + 1) * 20_000;
                has_grown.then_some(now)
            });
            server.kill();
        });
    }
    assert!(seen.len() >= 4, "each server begins a log of its own: {:?}", seen.keys());
}

#[test]
fn logs_are_written_while_no_listener_serves_blobs() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().display().to_string();
    let server = Partita::start(&["--data", &data, "--blob-listen", "off"]);
    let mut tables = server.client();
    log_everything(&mut tables);
    let asked = tables.send("GET", "/Tables", &[JSON], b"");
    assert!(server.stop().success());
    let server = Partita::in_directory(directory.path());
    let logs = request_logs(&mut server.blob_client(), "table/");
    assert!(logs.contains(asked.header("x-ms-request-id").unwrap()), "{logs}");
}

#[test]
fn files_of_earlier_versions_are_left_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let old = data.join("request-logs/devstoreaccount1/table/2020/01/01/0000");
    // A directory of other files alone is none of the server's.
    assert!(Partita::in_directory(&data).stop().success());
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("000000.log"), "1.0;old\n").unwrap();
    let log = directory.path().join("log");
    let mut serve = binary();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data", &data.display().to_string()]);
    serve.stderr(std::fs::File::create(&log).unwrap());
    let server = Partita::spawn(serve);
    log_everything(&mut server.client());
    assert!(server.stop().success());
    assert_eq!(std::fs::read_to_string(old.join("000000.log")).unwrap(), "1.0;old\n");
    let said = std::fs::read_to_string(log).unwrap();
    assert!(said.contains("request logs are blobs in $logs now"), "{said}");
}
