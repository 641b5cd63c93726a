//! `partita check`, `backup`, `restore` and salvage, as an operator uses them.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::control::{answer_at, ask};
use crate::support::{Client, Partita, binary};
use tempfile::TempDir;

const JSON: [(&str, &str); 2] = [("Content-Type", "application/json"), ("Prefer", "return-no-content")];

fn create_table(client: &mut Client, name: &str) {
    let body = format!("{{\"TableName\":\"{name}\"}}");
    assert_eq!(client.send("POST", "/Tables", &JSON, body.as_bytes()).status, 204);
}

fn insert(client: &mut Client, table: &str, partition: &str, row: &str) {
    let body = format!(
        "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Text\":\"{}\"}}",
        "text ".repeat(50)
    );
    let answer = client.send("POST", &format!("/{table}"), &JSON, body.as_bytes());
    assert_eq!(answer.status, 204, "{}", answer.text());
}

fn has(client: &mut Client, table: &str, partition: &str, row: &str) -> bool {
    let path = format!("/{table}(PartitionKey='{partition}',RowKey='{row}')");
    client.send("GET", &path, &[("Accept", "application/json")], b"").status == 200
}

fn partita(arguments: &[&str]) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn succeed(arguments: &[&str]) -> String {
    let output = partita(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn fail(arguments: &[&str], code: i32) -> String {
    let output = partita(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Names in a directory of backups.
fn names(backups: &Path) -> Vec<String> {
    let entries = fs::read_dir(backups).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn newest(backups: &Path) -> PathBuf {
    backups.join(names(backups).pop().unwrap())
}

fn files(store: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(store.join("db")).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// A store that a server has written and closed.
fn store(data: &Path, entities: usize) {
    let server = Partita::in_directory(data);
    let mut client = server.client();
    create_table(&mut client, "Books");
    for row in 0..entities {
        insert(&mut client, "Books", "p", &format!("{row:05}"));
    }
    assert!(server.stop().success());
}

#[test]
fn a_backup_of_a_running_server_has_every_write_acknowledged_before_it() {
    let directory = TempDir::new().unwrap();
    let (data, backups, back) =
        (directory.path().join("data"), directory.path().join("backups"), directory.path().join("back"));
    let server = Partita::in_directory(&data);
    create_table(&mut server.client(), "Books");
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writer = {
        let (mut client, stop, written) = (server.client(), stop.clone(), written.clone());
        thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let next = written.load(Ordering::SeqCst);
                insert(&mut client, "Books", "p", &format!("{next:05}"));
                written.store(next + 1, Ordering::SeqCst);
            }
        })
    };
    testing::wait_until("200 entities are written", || (written.load(Ordering::SeqCst) >= 200).then_some(()));
    let before = written.load(Ordering::SeqCst);
    let shown = succeed(&["backup", &text(&backups), "--data", &text(&data)]);
    assert!(shown.contains("hard links") && shown.contains("checked"), "{shown}");
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    assert!(!data.join("backup-staging").exists());
    let shown = fail(&["check", "--data", &text(&data)], 2);
    assert!(shown.contains("in use by a running server") && shown.contains("partita backup"), "{shown}");
    drop(server);

    let backup = newest(&backups);
    let note = fs::read_to_string(backup.join("BACKUP")).unwrap();
    assert!(
        note.contains("taken = \"20") && note.contains("version = ") && note.contains("commits = "),
        "{note}"
    );
    succeed(&["restore", &text(&backup), "--data", &text(&back)]);
    assert_eq!(names(&back), ["FORMAT", "committed", "content", "db"]);
    for table in files(&back, "sst") {
        assert_eq!(fs::metadata(table).unwrap().nlink(), 1, "a restored file is a real copy");
    }
    let server = Partita::in_directory(&back);
    let mut client = server.client();
    for row in 0..before {
        assert!(has(&mut client, "Books", "p", &format!("{row:05}")), "{row} of {before}");
    }
    insert(&mut client, "Books", "p", "after");
    assert!(server.stop().success());
    succeed(&["check", "--data", &text(&back)]);
    succeed(&["check", "--data", &text(&backup)]);
}

#[test]
fn copies_share_files_with_the_previous_backup_and_only_the_newest_are_kept() {
    let directory = TempDir::new().unwrap();
    let (data, backups) = (directory.path().join("data"), directory.path().join("backups"));
    store(&data, 300);
    // No server runs: the command opens the store itself.
    let backup = |more: &[&str]| {
        let (backups, data) = (text(&backups), text(&data));
        succeed(&[&["backup", &backups, "--data", &data, "--copy"], more].concat())
    };
    backup(&[]);
    let first = newest(&backups);
    for table in files(&first, "sst") {
        assert_eq!(fs::metadata(&table).unwrap().nlink(), 1, "{} is shared with the store", table.display());
    }
    fs::write(backups.join("mine"), "").unwrap();
    for more in [&[][..], &["--no-verify"]] {
        let shown = backup(more);
        assert!(shown.contains("shared with the previous backup"), "{shown}");
        let shared: Vec<u64> =
            files(&first, "sst").iter().map(|table| fs::metadata(table).unwrap().nlink()).collect();
        assert!(shared.iter().any(|links| *links > 1), "{shared:?}");
    }
    assert_eq!(names(&backups).len(), 4);
    let shown = backup(&["--keep", "2"]);
    assert!(shown.contains(&format!("{}: deleted", first.display())), "{shown}");
    let left = names(&backups);
    assert_eq!((left.len(), left.last().unwrap().as_str()), (3, "mine"), "{left:?}");
    for name in &left[..2] {
        assert!(succeed(&["check", "--data", &text(&backups.join(name))]).contains(" 300 entities"));
    }
}

#[test]
fn a_different_file_of_the_same_name_and_size_is_not_shared() {
    let directory = TempDir::new().unwrap();
    let (data, backups) = (directory.path().join("data"), directory.path().join("backups"));
    store(&data, 100);
    let arguments = ["backup", &text(&backups), "--data", &text(&data), "--copy"];
    succeed(&arguments);
    // The same name and size, but not the same bytes.
    let table = files(&newest(&backups), "sst").into_iter().max_by_key(|path| path.metadata().unwrap().len());
    let table = table.unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[50] ^= 1;
    fs::write(&table, bytes).unwrap();
    succeed(&arguments);
    assert!(succeed(&["check", "--data", &text(&newest(&backups))]).contains("Sound."));
}

#[test]
fn an_interrupted_backup_does_not_look_complete() {
    let directory = TempDir::new().unwrap();
    let (data, backups) = (directory.path().join("data"), directory.path().join("backups"));
    store(&data, 300);
    let server = Partita::in_directory(&data);
    for round in 0..20 {
        let mut command = binary();
        command
            .args(["backup", &text(&backups), "--data", &text(&data)])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if round % 2 == 0 {
            command.arg("--copy");
        }
        let mut child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(4 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        if backups.exists() {
            for name in names(&backups).iter().filter(|name| !name.ends_with(".partial")) {
                succeed(&["check", "--data", &text(&backups.join(name))]);
            }
        }
    }
    let partial = backups.join("2026-01-01T00-00-00Z.partial");
    fs::create_dir_all(partial.join("db")).unwrap();
    fs::write(partial.join("FORMAT"), "partita-store 1\n").unwrap();
    let shown = fail(&["restore", &text(&partial), "--data", &text(&directory.path().join("no"))], 1);
    assert!(shown.contains("not a complete backup"), "{shown}");
    succeed(&["backup", &text(&backups), "--data", &text(&data)]);
    assert!(names(&backups).iter().all(|name| !name.ends_with(".partial")), "{:?}", names(&backups));
    assert!(!data.join("backup-staging").exists());
    assert!(server.stop().success());
}

#[test]
fn a_checkpoint_that_another_has_replaced_becomes_no_backup_and_no_older_one_is_deleted() {
    let directory = TempDir::new().unwrap();
    let (data, backups) = (directory.path().join("data"), directory.path().join("backups"));
    let server = Partita::in_directory(&data);
    create_table(&mut server.client(), "Books");
    insert(&mut server.client(), "Books", "p", "r");
    succeed(&["backup", &text(&backups), "--data", &text(&data)]);
    let older = names(&backups);
    let (between, staging) = (directory.path().join("between"), data.join("backup-staging"));
    let control = data.join("control");
    answer_at(&between, move |command| {
        let answer = ask(&control, command);
        // As the next one is while it is made.
        fs::remove_dir_all(&staging).unwrap();
        fs::create_dir_all(staging.join("db")).unwrap();
        answer
    });
    for more in [&["--no-verify"][..], &["--no-verify", "--copy"], &[]] {
        let (backups, data, between) = (text(&backups), text(&data), text(&between));
        let backup = ["backup", &backups, "--data", &data, "--control", &between, "--keep", "1"];
        let shown = fail(&[&backup, more].concat(), 1);
        assert!(shown.contains("run the command again"), "{more:?}: {shown}");
        assert_eq!(names(Path::new(&backups)), older, "{more:?}");
    }
    succeed(&["backup", &text(&backups), "--data", &text(&data), "--keep", "1"]);
    assert_eq!(names(&backups).len(), 1);
    assert!(server.stop().success());
}

/// The files can be read without a key, so only their owner may read them, with any umask.
#[test]
fn only_the_owner_can_read_data_directories() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let with_umask = |arguments: &[&str]| {
        let program = binary().get_program().to_owned();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(program).args(arguments);
        command
    };
    let (data, backups, restored) = (text(&path("data")), text(&path("backups")), text(&path("restored")));
    let certificates = text(&path("certificates"));
    let mut serve = with_umask(&["serve", "--data", &data, "--dev-cert", &certificates]);
    serve.args(["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--log-level", "error"]);
    let server = Partita::spawn(serve);
    let mut client = server.client();
    create_table(&mut client, "Books");
    insert(&mut client, "Books", "p", "r");
    let done = |arguments: &[&str]| {
        let output = with_umask(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    done(&["backup", &backups, "--data", &data]);
    done(&["backup", &backups, "--data", &data, "--copy"]);
    let newest = text(&newest(&path("backups")));
    done(&["restore", &newest, "--data", &restored]);
    assert!(server.stop().success());
    for made in [&data, &backups, &newest, &restored, &certificates] {
        assert_eq!(fs::metadata(made).unwrap().mode() & 0o777, 0o700, "{made}");
    }
    // An existing directory keeps its permissions, with a warning.
    let open = path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let log = fs::File::create(path("log")).unwrap();
    let mut serve = binary();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data", &text(&open)]).stderr(log);
    assert!(Partita::spawn(serve).stop().success());
    assert!(fs::read_to_string(path("log")).unwrap().contains("chmod 700"));
    assert_eq!(fs::metadata(&open).unwrap().mode() & 0o777, 0o755);
}

#[test]
fn a_restore_needs_a_missing_or_empty_directory() {
    let directory = TempDir::new().unwrap();
    let (data, backups, back) =
        (directory.path().join("data"), directory.path().join("backups"), directory.path().join("back"));
    store(&data, 50);
    succeed(&["backup", &text(&backups), "--data", &text(&data)]);
    let backup = text(&newest(&backups));
    let shown = fail(&["restore", &backup, "--data", &text(&data)], 1);
    assert!(shown.contains("is not empty") && shown.contains("missing or empty"), "{shown}");
    // The remains of an interrupted restore do not count.
    fs::create_dir_all(back.join("restore.partial/db")).unwrap();
    fs::create_dir(back.join("db")).unwrap();
    let refused = partita(&["serve", "--listen", "127.0.0.1:0", "--data", &text(&back)]);
    assert!(!refused.status.success());
    succeed(&["restore", &backup, "--data", &text(&back)]);
    assert!(succeed(&["check", "--data", &text(&back)]).contains(" 50 entities"));
}

#[test]
fn damage_is_reported_its_backup_is_refused_and_the_rest_is_salvaged() {
    let directory = TempDir::new().unwrap();
    let (data, backups, new) =
        (directory.path().join("data"), directory.path().join("backups"), directory.path().join("new"));
    store(&data, 500);
    succeed(&["backup", &text(&backups), "--data", &text(&data), "--copy"]);
    let table = files(&data, "sst").into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() * 2 / 5;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();

    let check = ["check", "--data", &text(&data)];
    let file = table.file_name().unwrap().to_string_lossy().into_owned();
    let output = partita(&[&check[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["sound"], false);
    let damage = &json["damage"][0];
    assert_eq!(damage["file"], file.as_str());
    for edge in ["after", "before"] {
        assert_eq!(
            (&damage[edge]["table"], &damage[edge]["lost"]),
            (&"Books".into(), &false.into()),
            "{json:#}"
        );
    }
    let row = |edge: &str| damage[edge]["rowKey"].as_str().unwrap().to_owned();
    let (after, behind) = (row("after"), row("before"));
    let shown = fail(&check, 1);
    let place = format!(
        "after devstoreaccount1/Books(PartitionKey='p',RowKey='{after}'); before devstoreaccount1/Books"
    );
    for part in [&file, &place, "Damaged, in 1 place:", "--salvage"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }

    // A read of a damaged row gets 500, and the log has the row and the reason.
    let log = directory.path().join("log");
    let mut serve = binary();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data", &text(&data)]);
    let server = Partita::spawn({
        serve.stderr(fs::File::create(&log).unwrap());
        serve
    });
    let lost = (0..500).map(|row| format!("{row:05}")).find(|row| *row > after && *row < behind).unwrap();
    let path = format!("/Books(PartitionKey='p',RowKey='{lost}')");
    let answer = server.client().send("GET", &path, &[("Accept", "application/json")], b"");
    assert_eq!((answer.status, answer.code().as_str()), (500, "InternalError"));
    assert!(server.stop().success());
    let log = fs::read_to_string(log).unwrap();
    let line = log.lines().find(|line| line.contains("the store failed a request")).unwrap();
    let row = format!("(PartitionKey \"p\", RowKey \"{lost}\", table Books of account devstoreaccount1)");
    for part in ["kind=damaged", &row, "Corruption", &file, "restore a backup"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }

    let before = names(&backups);
    let shown = fail(&["backup", &text(&backups), "--data", &text(&data)], 1);
    assert!(shown.contains("no backup was made") && shown.contains(&file), "{shown}");
    assert_eq!(names(&backups), before);

    let shown = fail(&["check", "--data", &text(&data), "--salvage", &text(&new)], 1);
    assert!(shown.contains("entities saved to"), "{shown}");
    let server = Partita::in_directory(&new);
    let mut client = server.client();
    // All but those between the two reported rows.
    for row in (0..500).map(|row| format!("{row:05}")) {
        assert_eq!(has(&mut client, "Books", "p", &row), row <= after || row >= behind, "{row}");
    }
    insert(&mut client, "Books", "p", "again");
    assert!(server.stop().success());
    succeed(&["check", "--data", &text(&new)]);

    // A damaged backup is not restored.
    let backup = newest(&backups);
    let table = files(&backup, "sst").into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    fs::remove_file(&table).unwrap();
    let shown = fail(&["restore", &text(&backup), "--data", &text(&directory.path().join("back"))], 1);
    assert!(shown.contains("is damaged") && shown.contains("the file is missing"), "{shown}");
}

#[test]
fn check_summarizes_a_sound_store_and_fails_without_a_store() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    store(&data, 20);
    let shown = succeed(&["check", "--data", &text(&data)]);
    let books = shown.lines().find(|line| line.starts_with("devstoreaccount1/Books ")).unwrap();
    assert!(books.contains(" 20 entities "), "{shown}");
    assert!(shown.ends_with("Sound.\n"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(&["check", "--data", &text(&data), "--json"])).unwrap();
    assert_eq!(json["sound"], true);
    let books = json["tables"].as_array().unwrap().iter().find(|table| table["table"] == "Books").unwrap();
    assert_eq!(books["entities"], 20);
    let nowhere = directory.path().join("nowhere");
    for command in [&["check", "--data", &text(&nowhere)][..], &["check", "--data", &text(directory.path())]]
    {
        fail(command, 2);
    }
    let shown = fail(&["backup", &text(&directory.path().join("b")), "--data", &text(&nowhere)], 1);
    assert!(shown.contains("there is no store in"), "{shown}");
    assert!(!nowhere.exists());
}

#[test]
fn a_server_without_a_store_has_nothing_to_back_up() {
    let directory = TempDir::new().unwrap();
    let (socket, backups) = (directory.path().join("socket"), directory.path().join("backups"));
    let _server = Partita::start(&["--in-memory", "--control", &text(&socket)]);
    let shown = fail(&["backup", &text(&backups), "--control", &text(&socket)], 1);
    assert!(shown.contains("has no data directory"), "{shown}");
    assert_eq!(names(&backups), Vec::<String>::new());
}

#[test]
fn the_newest_backup_is_kept_even_if_the_clock_was_set_back() {
    let directory = TempDir::new().unwrap();
    let (data, backups) = (directory.path().join("data"), directory.path().join("backups"));
    store(&data, 3);
    let backup = ["backup", &text(&backups), "--data", &text(&data), "--keep", "2"];
    succeed(&backup);
    // As if the clock had been wrong by decades at that time.
    fs::rename(newest(&backups), backups.join("2099-12-31T23-59-58Z")).unwrap();
    let mut made = Vec::new();
    for _ in 0..3 {
        let before = names(&backups);
        let shown = succeed(&backup);
        let after = names(&backups);
        assert_eq!(after.len(), 2, "{after:?}");
        made.push(after.iter().find(|name| !before.contains(name)).expect("the one just made").clone());
        assert!(shown.contains(made.last().unwrap().as_str()), "{shown}");
    }
    assert_eq!(names(&backups), made[1..], "the two that were made last");
    succeed(&["check", "--data", &text(&newest(&backups))]);
}
