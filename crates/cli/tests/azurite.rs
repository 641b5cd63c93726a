//! The program under Azurite's name: its start-up lines, its variables, its folder.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use front::ServiceKind;

use crate::support::{ACCOUNT, Client, KEY, binary};

const FREE_PORTS: [&str; 6] = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0"];

/// The program, as a command of this name in this directory.
fn called(name: &str, directory: &Path, arguments: &[&str]) -> Command {
    let link = directory.join(name);
    if !link.exists() {
        symlink(binary().get_program(), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.current_dir(directory).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env_remove("PARTITA_REQUIRE_ALL").env("PARTITA_ADMIN", "off");
    command
}

/// Its lines up to the banner's end, and the rest of its output.
fn started(mut command: Command) -> (Child, Vec<String>, impl std::io::Read) {
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("Connection string")) {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended: {lines:?}");
        lines.push(line.trim_end().to_owned());
    }
    (child, lines, output)
}

/// Where a service listens, as Azurite says it.
fn address_of(lines: &[String], service: &str) -> SocketAddr {
    let start = format!("Azurite {service} service is successfully listening at http://");
    let address = lines.iter().find_map(|line| line.strip_prefix(&start));
    address.unwrap_or_else(|| panic!("{service}: {lines:?}")).parse().unwrap()
}

#[test]
fn it_prints_the_lines_that_others_wait_for() {
    let directory = tempfile::tempdir().unwrap();
    let arguments =
        [&FREE_PORTS[..], &["--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]].concat();
    let (mut child, lines, mut output) = started(called("azurite", directory.path(), &arguments));
    let mut expected = Vec::new();
    for service in ["Blob", "Queue", "Table"] {
        let address = address_of(&lines, service);
        expected.push(format!("Azurite {service} service is starting at http://{address}"));
        expected.push(format!("Azurite {service} service is successfully listening at http://{address}"));
        expected.push(format!("Azurite {service} service successfully listens on http://{address}"));
    }
    assert_eq!(lines[..9], expected);
    testing::signal(child.id(), "TERM");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let closed = |service| format!("Azurite {service} service successfully closed");
    assert!(["Blob", "Queue", "Table"].map(closed).iter().all(|line| rest.contains(line)), "{rest}");
    assert!(!directory.path().join("partita-data").exists(), "in memory");
}

#[test]
fn one_service_is_served_alone() {
    for (name, service) in [("azurite-blob", "Blob"), ("azurite-queue", "Queue"), ("azurite-table", "Table")]
    {
        let directory = tempfile::tempdir().unwrap();
        let port = format!("--{}Port", service.to_lowercase());
        let command = called(name, directory.path(), &[&port, "0", "--inMemoryPersistence"]);
        let (mut child, lines, _output) = started(command);
        address_of(&lines, service);
        let others = ["Blob", "Queue"].into_iter().filter(|other| *other != service);
        for other in others {
            let start = format!("Azurite {other} service");
            assert!(!lines.iter().any(|line| line.starts_with(&start)), "{name}: {lines:?}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn its_accounts_come_from_azurites_variable_and_its_data_stays_in_the_location() {
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path().join("place");
    let arguments = [&FREE_PORTS[..], &["--location", location.to_str().unwrap()]].concat();
    for (round, expected) in [(1, 201), (2, 409)] {
        let mut command = called("azurite", directory.path(), &arguments);
        command.env("AZURITE_ACCOUNTS", format!("shop:{KEY};other:{KEY}"));
        let (mut child, lines, _output) = started(command);
        let mut tables = Client::new(address_of(&lines, "Table"), "shop", KEY);
        let headers = [("content-type", "application/json")];
        let created = tables.send("POST", "/Tables", &headers, br#"{"TableName":"Books"}"#);
        assert_eq!(created.status, expected, "round {round}");
        let mut queues = Client::of_service(ServiceKind::Queue, address_of(&lines, "Queue"), ACCOUNT, KEY);
        assert_ne!(
            queues.send("GET", "/?comp=list", &[], b"").status,
            200,
            "the development account is not there"
        );
        testing::signal(child.id(), "TERM");
        assert!(child.wait().unwrap().success());
    }
    assert!(location.join("partita-data").is_dir());
}

#[test]
fn its_debug_log_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [&FREE_PORTS[..], &["--inMemoryPersistence", "--debug", "new/debug.log"]].concat();
    let (mut child, _, _output) = started(called("azurite", directory.path(), &arguments));
    testing::signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
    let log = std::fs::read_to_string(directory.path().join("new/debug.log")).unwrap();
    assert!(log.contains("ready") && !log.contains('\x1b'), "{log}");
}

#[test]
fn what_it_can_not_do_is_said() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["--cert", "x.pfx", "--pwd", "secret"][..], "openssl pkcs12"),
        (&["--inMemoryPersistence", "--location", "x"], "cannot be used with"),
        (&["--whatever"], "--whatever"),
        (&["--debug", "azurite/debug.log"], "--log-file"),
    ] {
        let mut command = called("azurite", directory.path(), &[&FREE_PORTS[..], arguments].concat());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// A certificate and its key, in PEM.
fn certificate() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    folder
}

/// As the modules of Testcontainers and Aspire start it, but for the ports.
#[test]
fn it_starts_with_the_command_lines_of_others() {
    let hosts = "--blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0";
    let node =
        "--blobHost 0.0.0.0 --blobPort 0 --queueHost 0.0.0.0 --queuePort 0 --tableHost 0.0.0.0 --tablePort 0";
    let certificate = certificate();
    let tls = certificate.path().to_str().unwrap();
    let cases = [
        node.to_owned(),
        format!("{node} --inMemoryPersistence --extentMemoryLimit 64 --skipApiVersionCheck"),
        format!("{node} --cert {tls}/cert.pem --key {tls}/key.pem --oauth basic"),
        format!("{hosts} --inMemoryPersistence --extentMemoryLimit 10.5"),
        // A builder to which the same flags are given again.
        format!("{hosts} --inMemoryPersistence {hosts} --inMemoryPersistence"),
        format!("-l place {hosts} --skipApiVersionCheck"),
        format!("--silent true --loose=true {hosts}"),
    ];
    let image = [
        ("PARTITA_LISTEN", "0.0.0.0:10002"),
        ("PARTITA_BLOB_LISTEN", "0.0.0.0:10000"),
        ("PARTITA_DATA", "/data"),
    ];
    for arguments in cases {
        let directory = tempfile::tempdir().unwrap();
        let words: Vec<&str> = FREE_PORTS.into_iter().chain(arguments.split_whitespace()).collect();
        // With the variables of the image, which flags must override.
        let mut command = called("azurite", directory.path(), &words);
        command.envs(image).env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"));
        let (mut child, lines, _output) = started(command);
        for service in ["Blob", "Queue", "Table"] {
            let awaited = format!("{service} service is successfully listening");
            assert!(lines.iter().any(|line| line.contains(&awaited)), "{arguments}: {lines:?}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn it_answers_the_health_checks_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [&FREE_PORTS[..], &["--inMemoryPersistence"]].concat();
    let (mut child, lines, _output) = started(called("azurite", directory.path(), &arguments));
    for (service, title, path) in [
        (ServiceKind::Blob, "Blob", "/?comp=list&maxresults=1"),
        (ServiceKind::Queue, "Queue", "/?comp=list&maxresults=1"),
        (ServiceKind::Table, "Table", "/Tables?$filter=false"),
    ] {
        let mut client = Client::of_service(service, address_of(&lines, title), ACCOUNT, KEY);
        let answer = client.send("GET", path, &[("accept", "application/json")], b"");
        assert_eq!(answer.status, 200, "{title}: {}", answer.text());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn its_public_containers_need_no_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [&FREE_PORTS[..], &["--inMemoryPersistence"]].concat();
    let (mut child, lines, _output) = started(called("azurite", directory.path(), &arguments));
    let mut blobs = Client::of_service(ServiceKind::Blob, address_of(&lines, "Blob"), ACCOUNT, KEY);
    for (container, access) in [("open", Some("blob")), ("shut", None)] {
        let access: Vec<_> = access.map(|access| ("x-ms-blob-public-access", access)).into_iter().collect();
        assert_eq!(blobs.send("PUT", &format!("/{container}?restype=container"), &access, b"").status, 201);
        let put = blobs.send("PUT", &format!("/{container}/a"), &[("x-ms-blob-type", "BlockBlob")], b"hello");
        assert_eq!(put.status, 201);
    }
    let mut read = |container: &str| {
        let answer = blobs.send_raw("GET", &format!("/{ACCOUNT}/{container}/a"), &[], b"").unwrap();
        (answer.status, answer.text())
    };
    assert_eq!(read("open"), (200, "hello".to_owned()));
    assert_eq!(read("shut").0, 404);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn its_version_and_help_need_no_dashes() {
    let directory = tempfile::tempdir().unwrap();
    for (word, expected) in
        [("version", env!("CARGO_PKG_VERSION")), ("-v", env!("CARGO_PKG_VERSION")), ("help", "--blobHost")]
    {
        let output = called("azurite", directory.path(), &[word]).output().unwrap();
        assert!(output.status.success(), "{word}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(expected), "{word}: {output:?}");
    }
}
