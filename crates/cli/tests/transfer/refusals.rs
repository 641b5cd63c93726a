//! Errors say what to do, and contain no secrets.

use std::path::Path;

use super::gate::{Gate, Harm};
use super::kit::{self, connection, fail, held, loaded, numbered, read, run, succeed, write};
use crate::support::{ACCOUNT, KEY, Partita, binary};

/// Five lines, two of which can be stored.
fn mixed_lines() -> Vec<String> {
    let long = "x".repeat(40_000);
    vec![
        r#"{"PartitionKey":"p","RowKey":"1","A":1}"#.to_owned(),
        format!(r#"{{"PartitionKey":"p","RowKey":"2","A":"{long}"}}"#),
        r#"{"PartitionKey":"p","RowKey":"3","A":"#.to_owned(),
        r#"{"PartitionKey":"p","A":1}"#.to_owned(),
        r#"{"PartitionKey":"p","RowKey":"5","A":5}"#.to_owned(),
    ]
}

#[test]
fn rejected_lines_are_named_and_set_aside() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let (path, rejects) = (directory.path().join("mixed.jsonl"), directory.path().join("rejects.jsonl"));
    let lines = mixed_lines();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let arguments = format!("--table Mixed --from {{}} --rejects {}", rejects.display());
    let said = fail("import", server.address, &arguments, &path);
    for expected in [
        "line 2: PartitionKey \"p\", RowKey \"2\": 400 PropertyValueTooLarge: ",
        "line 3: it is not an entity in JSON: EOF while parsing a value",
        "line 4: it has no RowKey",
        "Mixed: 5 entities read, 2 written, 3 rejected",
        "3 entities were rejected; they are in ",
    ] {
        assert!(said.contains(expected), "{expected} is not in {said}");
    }
    assert_eq!(std::fs::read_to_string(&rejects).unwrap(), lines[1..4].join("\n") + "\n");
    let rows: Vec<_> = held(server.address, "Mixed").iter().map(|entity| entity["RowKey"].clone()).collect();
    assert_eq!(rows, ["1", "5"]);
    let said = fail("import", server.address, &arguments, &path);
    assert!(said.contains("already exists; name another file, or delete it"), "{said}");
}

#[test]
fn an_import_stops_at_the_first_rejected_line_and_resumes_once_it_is_corrected() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mixed.csv");
    let header = "PartitionKey,RowKey,A,A@type";
    let good: Vec<_> = (0..300).map(|row| format!("p{},{row:03},{row},Edm.Int32", row / 50)).collect();
    let mut bad = good.clone();
    bad[250] = "p5,250,many,Edm.Int32".to_owned();
    std::fs::write(&path, format!("{header}\r\n{}", bad.join("\r\n"))).unwrap();
    let said = fail("import", server.address, "--table Mixed --from {}", &path);
    let expected = "line 252: A is \"many\", which is not a value of Edm.Int32; --rejects FILE sets such lines aside; --resume continues";
    assert!(said.contains(expected), "{said}");
    std::fs::write(&path, format!("{header}\r\n{}", good.join("\r\n"))).unwrap();
    succeed("import", server.address, "--table Mixed --resume --from {}", &path);
    let numbers: Vec<_> =
        held(server.address, "Mixed").iter().map(|entity| entity["A"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
}

#[test]
fn an_existing_entity_is_replaced_merged_or_rejected_by_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.jsonl");
    let mut new = numbered(2, 2);
    for entity in &mut new {
        entity.remove("Text");
        entity.insert("Number".to_owned(), 7.into());
    }
    write(&path, &new);
    let check = |mode: &str, expected: &str| {
        let server = loaded(Partita::in_memory(), &numbered(1, 1));
        let arguments = format!("--table Books --mode {mode} --from {{}}");
        let output = run("import", server.address, &arguments, &path);
        let entities = held(server.address, "Books");
        let shown: Vec<_> = entities
            .iter()
            .map(|entity| format!("{} {}", entity["Number"], entity.contains_key("Text")))
            .collect();
        assert_eq!(format!("{} {}", output.status.success(), shown.join(", ")), expected, "{mode}");
        kit::error(&output)
    };
    check("replace", "true 7 false, 7 false");
    check("merge", "true 7 true, 7 false");
    let said = check("insert", "false 0 true");
    assert!(
        said.contains("line 1: PartitionKey \"p00000\", RowKey \"r00000000\": 409 EntityAlreadyExists: "),
        "{said}"
    );
}

#[test]
fn a_signature_for_reads_can_export_but_not_import() {
    let entities = numbered(1_200, 100);
    let server = loaded(Partita::in_memory(), &entities);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("books.jsonl");
    let signature = |permissions: &str| {
        let mut sas = binary();
        sas.args(["sas", "table", "--table", "Books", "--permissions", permissions]);
        let output = sas.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().rsplit('?').next().unwrap().to_owned()
    };
    let with = |verb: &str, arguments: &str, permissions: &str| {
        let endpoint = format!("TableEndpoint=http://{}/{ACCOUNT}", server.address);
        let text = format!("{endpoint};SharedAccessSignature={}", signature(permissions));
        let mut command = kit::command(verb, server.address, arguments, &path);
        let output = command.env("AZURE_STORAGE_CONNECTION_STRING", text).output().unwrap();
        assert!(!kit::error(&output).contains("sig="), "{output:?}");
        output
    };
    let output = with("export", "--table Books --to {}", "r");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read(&path), entities);
    let output = with("import", "--table Books --from {}", "r");
    assert!(!output.status.success() && kit::error(&output).contains("403 "), "{output:?}");
    let left = std::fs::read_to_string(directory.path().join("books.jsonl.import-progress")).unwrap();
    assert!(!left.contains("sig"), "{left}");
    // An import into an existing table needs no right to create tables.
    let output = with("import", "--table Books --from {}", "au");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn errors_before_the_start_say_what_to_do() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.jsonl");
    let check = |verb: &str, arguments: &str, expected: &str| {
        let said = fail(verb, server.address, arguments, &path);
        assert!(said.contains(expected), "{verb} {arguments}: {said}");
    };
    check("export", "--table None --to {}", "can't read the table None: 404 TableNotFound");
    check("export", "--table Books --resume --to -", "an export to standard output can't be resumed");
    check("export", "--to {}", "--table <NAME>");
    check("import", "--table Books --from {}.none", "t.jsonl.none: can't read it: No such file");
    check("import", "--table x --from /dev/null", "can't create the table x: 400 OutOfRangeInput");
    check("import", "--all --from {}.none", "can't read the directory");
    assert!(!path.exists(), "what can't be read leaves no file");
    let empty = directory.path().join("empty.csv");
    std::fs::write(&empty, "").unwrap();
    let said = fail("import", server.address, "--table Abc --from {}", &empty);
    assert!(said.contains("it is empty; CSV begins with the names of its columns"), "{said}");
    let mut command = binary();
    command.args(["export", "--table", "Books", "--to", "-"]).env_remove("AZURE_STORAGE_CONNECTION_STRING");
    let said = kit::error(&command.output().unwrap());
    assert!(said.contains("--connection-string <TEXT>"), "{said}");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = fail("export", nobody, "--table Books --to -", Path::new(""));
    assert!(said.contains("is the server running there?") && !said.contains(&connection(nobody)), "{said}");
}

/// A table's name becomes a file's name, so a hostile endpoint must not be able to choose a path.
#[test]
fn a_listed_name_that_is_not_a_table_name_is_refused() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("export/inner");
    for name in ["../../x", "/tmp/x", "a/b", ".."] {
        let body = format!("{{\"value\":[{{\"TableName\":\"{name}\"}}]}}");
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let gate = Gate::before(server.address);
        gate.harm(&[(0, Harm::Answer(answer.leak()))]);
        let endpoint =
            format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{}/{ACCOUNT}", gate.address);
        let mut command = binary();
        command.env("AZURE_STORAGE_CONNECTION_STRING", endpoint);
        let output = command.args(["export", "--all", "--to"]).arg(&target).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("can't be a table's name"), "{name}: {said}");
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "{name}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
