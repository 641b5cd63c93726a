//! Containers to folders of files and back.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::kit::{described, error, fail, get, json, names, put, run, succeed};
use crate::support::Partita;

/// Names that no file system may be given as they are, and some that are ordinary.
const NAMES: [&str; 12] = [
    "../../escaped",
    "/etc/passwd",
    "A",
    "a",
    "b",
    "b/c",
    "b/d/e.txt",
    "c:\u{7}x",
    "nul",
    "x//y",
    "ä ö/ü",
    "%index.jsonl",
];

fn fill(address: SocketAddr, container: &str) {
    succeed(address, &["create-container", container, "--metadata", "owner=ann", "--public", "blob"]);
    for name in NAMES {
        let flags = ["--metadata", "m=1", "--tag", "t=2", "--content-type", "text/x-test"];
        put(address, container, name, format!("of {name}").as_bytes(), &flags);
    }
}

/// The paths of all files in a folder, and of all that is not a file.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_container_comes_back_whatever_its_blobs_are_called() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("deep/er/out");
    let folder = folder.to_str().unwrap();
    fill(address, "from");
    succeed(address, &["export", "--container", "from", "--to", folder]);
    assert_eq!(
        files(outside.path()).len(),
        NAMES.len() + 1,
        "nothing is outside: {:?}",
        files(outside.path())
    );
    assert!(files(outside.path()).iter().all(|path| path.starts_with("deep/er/out/")));
    assert_eq!(fs::read_to_string(format!("{folder}/ä ö/ü")).unwrap(), "of ä ö/ü");
    succeed(address, &["import", "--container", "target", "--from", folder]);
    assert_eq!(described(address, "target"), described(address, "from"));
    for name in NAMES {
        assert_eq!(get(address, "target", name), format!("of {name}").as_bytes());
    }
    let containers = json(&succeed(address, &["list", "--format", "json"]));
    assert_eq!(containers[0]["metadata"], containers[1]["metadata"]);
}

#[test]
fn an_interrupted_export_goes_on_where_it_was() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("out");
    let to = folder.to_str().unwrap();
    fill(address, "from");
    succeed(address, &["export", "--container", "from", "--to", to]);
    let said = fail(address, &["export", "--container", "from", "--to", to]);
    assert!(said.contains("--resume") && said.contains("--overwrite"), "{said}");
    // As a kill leaves it: five blobs are complete, a sixth line was cut, and its file was there already.
    let index = folder.join("%index.jsonl");
    let text = fs::read_to_string(&index).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&index, format!("{}\n{}", lines[..6].join("\n"), &lines[6][..20])).unwrap();
    let said = fail(address, &["import", "--container", "target", "--from", to]);
    assert!(said.contains("is an interrupted export"), "{said}");
    let done =
        folder.join(serde_json::from_str::<serde_json::Value>(lines[2]).unwrap()["file"].as_str().unwrap());
    fs::write(&done, "marked").unwrap();
    succeed(address, &["export", "--container", "from", "--to", to, "--resume"]);
    assert_eq!(fs::read_to_string(&done).unwrap(), "marked", "what is complete is not read again");
    assert_eq!(fs::read_to_string(&index).unwrap(), text);
    assert_eq!(files(&folder).len(), NAMES.len() + 1);
    let said = fail(address, &["export", "--container", "from", "--to", to, "--resume", "--prefix", "b"]);
    assert!(said.contains("is an export of"), "{said}");
}

#[test]
fn an_interrupted_import_goes_on_where_it_was() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("out");
    let from = folder.to_str().unwrap();
    fill(address, "from");
    succeed(address, &["export", "--container", "from", "--to", from]);
    let broken = folder.join("ä ö/ü");
    fs::write(&broken, "too short").unwrap();
    let said = fail(address, &["import", "--container", "target", "--from", from, "--parallel", "1"]);
    assert!(said.contains("ä ö/ü should have") && said.contains("and has 9"), "{said}");
    let done = names(address, "target");
    assert_eq!(done.len(), NAMES.len() - 1, "{done:?}");
    // What was done is not written again.
    put(address, "target", &done[0], b"marked", &[]);
    fs::write(&broken, "of ä ö/ü").unwrap();
    succeed(address, &["import", "--container", "target", "--from", from, "--resume"]);
    assert_eq!(get(address, "target", &done[0]), b"marked");
    assert_eq!(names(address, "target"), names(address, "from"));
    assert!(!folder.join("%import-progress").exists());
}

#[test]
fn any_folder_of_files_can_be_imported_and_links_are_not_followed() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("site");
    fs::create_dir_all(folder.join("a/b")).unwrap();
    for (path, text) in [("index.html", "<html>"), ("a/b/c", "c"), ("a.txt", "")] {
        fs::write(folder.join(path), text).unwrap();
    }
    fs::write(outside.path().join("secret"), "s").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    let output = run(address, &["import", "--container", "site", "--from", folder.to_str().unwrap()]);
    assert!(output.status.success() && error(&output).contains("left out: 2 links"), "{}", error(&output));
    assert_eq!(names(address, "site"), ["a.txt", "a/b/c", "index.html"]);
    assert_eq!(get(address, "site", "index.html"), b"<html>");
}

#[test]
fn an_index_that_leads_elsewhere_is_refused() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("in");
    fs::create_dir(&folder).unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    let line = r#"{"name":"a","file":"../secret","type":"block","length":1}"#;
    let index = format!("{{\"container\":\"x\",\"endpoint\":\"e\"}}\n{line}\n{{\"end\":1}}\n");
    fs::write(folder.join("%index.jsonl"), index).unwrap();
    let said = fail(address, &["import", "--container", "target", "--from", folder.to_str().unwrap()]);
    assert!(said.contains("line 2") && said.contains("is not inside the folder"), "{said}");
    assert_eq!(succeed(address, &["list"]), "", "nothing was written");
}

/// A folder with an index of one blob, whose file has one byte.
fn indexed(folder: &Path, file: &str) {
    fs::create_dir_all(folder).unwrap();
    let line = format!(r#"{{"name":"a","file":"{file}","type":"block","length":1}}"#);
    let index = format!("{{\"container\":\"x\",\"endpoint\":\"e\"}}\n{line}\n{{\"end\":1}}\n");
    fs::write(folder.join("%index.jsonl"), index).unwrap();
}

#[test]
fn an_index_leads_nowhere_by_links() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), "s").unwrap();
    for (number, (file, link, to)) in
        [("a", "a", "../secret"), ("b/secret", "b", ".."), ("a", "%index.jsonl", "../secret")]
            .iter()
            .enumerate()
    {
        let folder = outside.path().join(number.to_string());
        indexed(&folder, file);
        let _ = fs::remove_file(folder.join(link));
        std::os::unix::fs::symlink(to, folder.join(link)).unwrap();
        let container = format!("target{number}");
        let said = fail(address, &["import", "--container", &container, "--from", folder.to_str().unwrap()]);
        assert!(said.contains(link) && said.contains("links are not followed"), "{said}");
    }
    assert!(!succeed(address, &["list", "target0"]).contains('a'), "nothing was written");
}

#[test]
fn an_export_is_not_resumed_behind_links() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let elsewhere = outside.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("1"), "kept").unwrap();
    succeed(address, &["create-container", "from"]);
    put(address, "from", "a/b", b"of the blob", &[]);
    let all = outside.path().join("all");
    let folder = all.join("from");
    let to = folder.to_str().unwrap();
    let begun = |link: &str| {
        let _ = fs::remove_dir_all(&all);
        fs::create_dir_all(&folder).unwrap();
        let first =
            format!("{{\"container\":\"from\",\"endpoint\":\"http://{address}/devstoreaccount1\"}}\n");
        fs::write(folder.join("%index.jsonl"), first).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.join(link)).unwrap();
    };
    // Downloads begin in this folder, in a file called 1.
    begun("%parts");
    succeed(address, &["export", "--container", "from", "--to", to, "--resume"]);
    assert_eq!(fs::read_to_string(folder.join("a/b")).unwrap(), "of the blob");
    begun("a");
    let said = fail(address, &["export", "--container", "from", "--to", to, "--resume"]);
    assert!(said.contains("a part of its path is a link"), "{said}");
    fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    let said = fail(address, &["export", "--all", "--to", all.to_str().unwrap()]);
    assert!(said.contains("a part of its path is a link"), "{said}");
    assert_eq!(fs::read_to_string(elsewhere.join("1")).unwrap(), "kept");
    assert_eq!(files(&elsewhere), ["1"]);
}

#[test]
fn an_index_names_no_special_file() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    indexed(outside.path(), "pipe");
    let made = std::process::Command::new("mkfifo").arg(outside.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let from = outside.path().to_str().unwrap();
    let said = fail(address, &["import", "--container", "target", "--from", from]);
    assert!(said.contains("pipe: it is not an ordinary file"), "{said}");
}

#[test]
fn a_link_to_a_folder_is_no_container() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let all = outside.path().join("all");
    fs::create_dir_all(all.join("real")).unwrap();
    fs::create_dir(outside.path().join("private")).unwrap();
    std::os::unix::fs::symlink("../private", all.join("linked")).unwrap();
    succeed(address, &["import", "--all", "--from", all.to_str().unwrap()]);
    assert_eq!(succeed(address, &["list"]), "real\n");
}

#[test]
fn the_record_of_progress_overwrites_no_file_behind_a_link() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("in");
    indexed(&folder, "missing");
    fs::write(outside.path().join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink("../mine", folder.join("%import-progress.new")).unwrap();
    fail(address, &["import", "--container", "target", "--from", folder.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(outside.path().join("mine")).unwrap(), "mine");
    assert!(folder.join("%import-progress").is_file());
}

#[test]
fn files_are_imported_under_every_name_that_a_blob_can_have() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let mut expected: Vec<String> = (1..=0x7f_u8)
        .map(char::from)
        .filter(|c| !matches!(*c, '/' | '\\') && !c.is_control())
        .chain("\u{80}äß中\u{1f600}\u{fffd}\u{2028}".chars())
        .map(|c| format!("x{c}y"))
        .chain(["%41".to_owned(), "a+b c".to_owned(), "n".repeat(255), "?#".to_owned(), "...".to_owned()])
        .collect();
    for name in &expected {
        fs::write(outside.path().join(name), name).unwrap();
    }
    succeed(address, &["import", "--container", "target", "--from", outside.path().to_str().unwrap()]);
    let mut found = names(address, "target");
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    for name in ["x%y", "x?y", "x#y", "%41", "a+b c", "?#", "..."] {
        assert_eq!(get(address, "target", name), name.as_bytes(), "{name}");
    }
}

#[test]
fn a_file_whose_name_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    let said =
        fail(address, &["import", "--container", "target", "--from", outside.path().to_str().unwrap()]);
    assert!(said.contains("bad") && said.contains("is not UTF-8"), "{said}");
}

#[test]
fn a_file_with_a_backslash_in_its_name_replaces_no_other() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    fs::create_dir(outside.path().join("a")).unwrap();
    fs::write(outside.path().join("a/b"), "right").unwrap();
    fs::write(outside.path().join("a\\b"), "wrong").unwrap();
    let said =
        fail(address, &["import", "--container", "target", "--from", outside.path().to_str().unwrap()]);
    assert!(said.contains("a\\b can't be a blob"), "{said}");
    assert_eq!(get(address, "target", "a/b"), b"right");
}

/// What only pages and appended blobs have.
#[test]
fn pages_and_appended_blobs_come_back_as_they_were() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("out");
    let folder = folder.to_str().unwrap();
    succeed(address, &["create-container", "from"]);
    let version = ("x-ms-version", "2021-08-06");
    let mut blobs = server.blob_client();
    let mut put = |path: &str, headers: &[(&str, &str)], body: &[u8]| {
        let answer = blobs.send("PUT", path, &[&[version], headers].concat(), body);
        assert!(answer.status < 300, "{path}: {}", answer.text());
    };
    let length = ("x-ms-blob-content-length", "1048576");
    put("/from/disk", &[("x-ms-blob-type", "PageBlob"), length, ("x-ms-blob-sequence-number", "7")], b"");
    put(
        "/from/disk?comp=page",
        &[("x-ms-page-write", "update"), ("x-ms-range", "bytes=512-1023")],
        &[7; 512],
    );
    put("/from/log", &[("x-ms-blob-type", "AppendBlob")], b"");
    put("/from/log?comp=appendblock", &[], b"line");
    put("/from/log?comp=seal", &[], b"");
    succeed(address, &["export", "--container", "from", "--to", folder]);
    assert_eq!(fs::metadata(format!("{folder}/disk")).unwrap().len(), 1 << 20);
    succeed(address, &["import", "--container", "target", "--from", folder]);
    assert_eq!(described(address, "target"), described(address, "from"));
    let mut head =
        |path: &str, name: &str| blobs.send("HEAD", path, &[version], b"").header(name).map(str::to_owned);
    assert_eq!(head("/target/disk", "x-ms-blob-sequence-number").as_deref(), Some("7"));
    assert_eq!(head("/target/log", "x-ms-blob-sealed").as_deref(), Some("true"));
    let ranges = blobs.send("GET", "/target/disk?comp=pagelist", &[version], b"").text();
    assert_eq!(ranges.matches("<PageRange>").count(), 1, "{ranges}");
    assert!(!ranges.contains("<End>1048575</End>"), "zeros are not written: {ranges}");
}

#[test]
fn files_of_others_are_not_exported_over() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    succeed(address, &["create-container", "from"]);
    fs::write(outside.path().join("mine"), "mine").unwrap();
    let said = fail(address, &["export", "--container", "from", "--to", outside.path().to_str().unwrap()]);
    assert!(said.contains("name an empty folder"), "{said}");
    assert_eq!(files(outside.path()), ["mine"]);
}

#[test]
fn an_import_is_resumed_into_the_same_container_only() {
    let server = Partita::in_memory();
    let (address, outside) = (server.blob_address(), tempfile::tempdir().unwrap());
    let folder = outside.path().join("in");
    indexed(&folder, "missing");
    let from = folder.to_str().unwrap();
    fail(address, &["import", "--container", "target", "--from", from]);
    let said = fail(address, &["import", "--container", "another", "--from", from, "--resume"]);
    assert!(said.contains("belongs to an import into") && said.contains("another"), "{said}");
}
