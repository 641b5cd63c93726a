//! `partita tables`, `query`, `get`, `put`, `delete`, `count`, `explain`, `top`, `status` and `doctor`, with the real program.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{ACCOUNT, KEY, Partita, binary};

fn command(server: &Partita, arguments: &[&str]) -> Command {
    let endpoint =
        format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{}/{ACCOUNT}", server.address);
    let mut command = binary();
    command.env("AZURE_STORAGE_CONNECTION_STRING", endpoint).args(arguments).stdin(Stdio::null());
    command
}

fn run(server: &Partita, arguments: &[&str]) -> Output {
    command(server, arguments).output().unwrap()
}

fn succeed(server: &Partita, arguments: &[&str]) -> String {
    let output = run(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit status and standard error.
fn fail(server: &Partita, arguments: &[&str]) -> (i32, String) {
    let output = run(server, arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn books() -> Partita {
    let server = Partita::in_memory();
    succeed(
        &server,
        &["put", "Books", "sf", "dune", "Title=Dune", "Year:=1965", "Sold:Int64=20000000", "--create"],
    );
    succeed(&server, &["put", "Books", "sf", "solaris", "Title=Solaris", "Year:=1961"]);
    succeed(&server, &["put", "Books", "novels", "emma", "Title=Emma, a novel", "Year:=1815", "Paid:=true"]);
    server
}

#[test]
fn entities_are_put_shown_and_deleted() {
    let server = books();
    assert_eq!(succeed(&server, &["tables"]), "Books\n");
    assert_eq!(succeed(&server, &["tables", "--format", "json"]), "{\"TableName\":\"Books\"}\n");
    assert_eq!(succeed(&server, &["tables", "X"]), "");
    let shown = succeed(&server, &["get", "Books", "sf", "dune"]);
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["Title", "String", "Dune"]), "{shown}");
    assert!(rows.contains(&vec!["Sold", "Int64", "20000000"]), "{shown}");
    assert!(rows.contains(&vec!["Year", "Int32", "1965"]), "{shown}");
    assert!(rows.iter().any(|row| row[..2] == ["Timestamp", "DateTime"]), "{shown}");
    let json: Value =
        serde_json::from_str(&succeed(&server, &["get", "Books", "sf", "dune", "--format", "json"])).unwrap();
    assert_eq!((&json["Year"], &json["Sold"]), (&1965.into(), &"20000000".into()));
    succeed(&server, &["put", "Books", "sf", "dune", "--mode", "merge", "Rating:=4.5"]);
    let merged: Value =
        serde_json::from_str(&succeed(&server, &["get", "Books", "sf", "dune", "--format", "json"])).unwrap();
    assert_eq!((&merged["Rating"], &merged["Title"]), (&4.5.into(), &"Dune".into()));
    let (status, error) = fail(&server, &["put", "Books", "sf", "dune", "--mode", "insert", "A=b"]);
    assert!(status == 1 && error.contains("EntityAlreadyExists"), "{error}");
    succeed(&server, &["delete", "Books", "sf", "dune"]);
    for arguments in [["get", "Books", "sf", "dune"], ["delete", "Books", "sf", "dune"]] {
        let (status, error) = fail(&server, &arguments);
        assert!(status == 3 && error.contains("no such entity"), "{arguments:?}: {error}");
    }
    let (status, error) = fail(&server, &["delete", "Books", "sf", "solaris", "--if-match", "W/\"x\""]);
    assert!(status == 1, "{error}");
    let mut child = command(&server, &["put", "Books", "sf", "piped"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"Title\":\"Piped\"}").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(succeed(&server, &["get", "Books", "sf", "piped"]).contains("Piped"));
}

#[test]
fn a_query_is_shown_in_columns_json_or_csv() {
    let server = books();
    assert_eq!(
        succeed(&server, &["query", "Books", "Year lt 1970", "--select", "Title,Year"]),
        "Title          Year\nEmma, a novel  1815\nDune           1965\nSolaris        1961\n"
    );
    let wide = succeed(&server, &["query", "Books", "--top", "1"]);
    assert_eq!(
        wide.lines().next().unwrap().split_whitespace().collect::<Vec<_>>()[..2],
        ["PartitionKey", "RowKey"]
    );
    assert_eq!(wide.lines().count(), 2);
    assert_eq!(
        succeed(&server, &["query", "Books", "--select", "Title,Year", "--format", "csv"]),
        "Title,Year\r\n\"Emma, a novel\",1815\r\nDune,1965\r\nSolaris,1961\r\n"
    );
    let lines = succeed(&server, &["query", "Books", "PartitionKey eq 'sf'", "--format", "json"]);
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        rows.iter().map(|row| row["RowKey"].as_str().unwrap()).collect::<Vec<_>>(),
        ["dune", "solaris"]
    );
    assert!(!lines.contains('\x1b') && !wide.contains('\x1b'), "colours only on a terminal");
    assert_eq!(succeed(&server, &["count", "Books"]), "3\n");
    assert_eq!(succeed(&server, &["count", "Books", "Year gt 1900"]), "2\n");
    for (arguments, status, words) in [
        (vec!["query", "Missing"], 1, "there is no table Missing"),
        (vec!["query", "Books", "Year is 5"], 1, "InvalidInput"),
        (vec!["query", "B"], 1, "table B"),
        (vec!["query", "Books", "--format", "xml"], 2, "xml"),
        (vec!["count", "Missing"], 1, "there is no table Missing"),
    ] {
        let (found, error) = fail(&server, &arguments);
        assert!(found == status && error.contains(words), "{arguments:?}: {found}, {error}");
    }
}

#[test]
fn more_than_a_page_is_queried_and_counted() {
    let server = Partita::in_memory();
    succeed(&server, &["put", "Many", "p", "r", "A=b", "--create"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("Many.jsonl");
    let lines: String =
        (0..2500).map(|n| format!("{{\"PartitionKey\":\"p{}\",\"RowKey\":\"{n}\"}}\n", n / 100)).collect();
    std::fs::write(&file, lines).unwrap();
    succeed(&server, &["import", "--table", "Many", "--from", file.to_str().unwrap(), "--quiet"]);
    assert_eq!(succeed(&server, &["count", "Many"]), "2501\n");
    assert_eq!(succeed(&server, &["query", "Many", "--format", "json"]).lines().count(), 2501);
    assert_eq!(
        succeed(&server, &["query", "Many", "--top", "1200", "--format", "json"]).lines().count(),
        1200
    );
    // CSV has named its columns before this one is seen.
    succeed(&server, &["put", "Many", "p9", "z", "Late=x"]);
    let (status, error) = fail(&server, &["query", "Many", "--format", "csv"]);
    assert!(status == 1 && error.contains("Late appears only after the first page"), "{error}");
    let chosen = succeed(&server, &["query", "Many", "--format", "csv", "--select", "RowKey,Late"]);
    assert!(chosen.contains("\r\nz,x\r\n"), "{chosen}");
    let output = run(&server, &["query", "Many"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 101, "a person is shown a hundred");
    assert!(String::from_utf8(output.stderr).unwrap().contains("--top shows more"));
}

#[test]
fn a_query_is_explained_and_hot_partitions_are_listed() {
    let server = books();
    let shown = succeed(&server, &["explain", "Books", "Year eq 1965"]);
    for words in [
        "table scan",
        "all entities",
        "3 entities to return 1",
        "on Azure",
        "PartitionKey is the value of Year",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let plan = succeed(&server, &["explain", "Books", "PartitionKey eq 'sf'", "--plan", "--format", "json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!((plan["class"].as_str(), plan.get("examined")), (Some("partition scan"), None));
    assert_eq!((&plan["estimated_entities"], &plan["azure"]["entities"]), (&2.into(), &2.into()));
    let words = succeed(&server, &["explain", "Books", "Year eq 1965", "--plan"]);
    assert!(words.contains("about 3 entities") && !words.contains("to return"), "{words}");
    let (status, error) = fail(&server, &["explain", "Books", "Year is 5"]);
    assert!(status == 1 && error.contains("InvalidInput"), "{error}");
    let top = succeed(&server, &["top", "--once"]);
    assert!(top.lines().nth(1).unwrap().trim_start().starts_with("Req/s"), "{top}");
    assert!(top.contains("books") && top.contains("sf"), "{top}");
    let lines =
        |arguments: &[&str]| succeed(&server, &[&["top", "--once"], arguments].concat()).lines().count();
    assert!(lines(&["--top", "1"]) <= 3 && lines(&[]) >= 3);
    // The scan was one request, but examined most.
    for by in ["requests", "entities"] {
        let hot = succeed(&server, &["top", "--once", "--format", "json", "--by", by]);
        let hot: Value = serde_json::from_str(&hot).unwrap();
        for minute in ["this_minute", "last_minute"] {
            let listed = hot[minute]["partitions"].as_array().unwrap().iter();
            let numbers: Vec<u64> = listed.map(|hot| hot[by].as_u64().unwrap()).collect();
            assert!(numbers.is_sorted_by(|a, b| a >= b), "{by}: {hot}");
        }
    }
    let silent = Partita::start(&["--in-memory", "--extensions", "off"]);
    let (status, error) = fail(&silent, &["top", "--once"]);
    assert!(status == 1 && error.contains("its extensions are off"), "{error}");
}

#[test]
fn top_goes_on_until_it_is_told_to_stop() {
    let server = books();
    let mut child = command(&server, &["top", "--interval", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut heads = 0;
    while heads < 2 {
        heads += usize::from(lines.next().unwrap().unwrap().contains("Req/s"));
    }
    testing::signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
    assert!(!lines.map(Result::unwrap).any(|line| line.contains('\x1b')), "not a terminal");
}

/// A command on a terminal of sixty columns.
struct OnTerminal {
    script: Child,
    /// Of the command.
    process: u32,
    shown: BufReader<ChildStdout>,
}

impl OnTerminal {
    /// `None` where nothing can make a terminal.
    fn run(server: &Partita, arguments: &[&str], more: &[(&str, &str)]) -> Option<Self> {
        let command = command(server, arguments);
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")))
            .collect();
        let line = format!("stty cols 60 rows 20; echo $$; exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["--quiet", "--command", &line, "/dev/null"]);
        script.env_remove("NO_COLOR").stdin(Stdio::null()).stdout(Stdio::piped());
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.envs(more.iter().copied());
        let Ok(mut script) = script.spawn() else {
            testing::not_run("a terminal takes script (bsdutils)");
            return None;
        };
        let mut shown = BufReader::new(script.stdout.take().unwrap());
        let mut process = String::new();
        shown.read_line(&mut process).unwrap();
        let process = process.trim().parse().unwrap_or_else(|_| panic!("{process:?}"));
        Some(Self { script, process, shown })
    }

    /// What it shows until it ends.
    fn rest(mut self) -> String {
        let mut text = String::new();
        self.shown.read_to_string(&mut text).unwrap();
        assert!(self.script.wait().unwrap().success());
        text
    }
}

#[test]
fn a_terminal_gets_colours_and_lines_that_fit_it() {
    let server = books();
    succeed(&server, &["put", "Books", "sf", "long", &format!("Title={}", "word ".repeat(40))]);
    let query = ["query", "Books", "--select", "Title,Year"];
    let Some(shown) = OnTerminal::run(&server, &query, &[]).map(OnTerminal::rest) else { return };
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains("\x1b[1mTitle") && lines.last().unwrap().contains("4 entities"), "{shown:?}");
    for line in &lines[1..lines.len() - 1] {
        assert!(!line.contains('\x1b') && line.chars().count() <= 60, "{line:?}");
    }
    assert!(shown.contains('…'), "{shown:?}");
    let explain = ["explain", "Books", "Year eq 1965"];
    let Some(shown) = OnTerminal::run(&server, &explain, &[]).map(OnTerminal::rest) else { return };
    assert!(shown.contains("\x1b[31mtable scan\x1b[0m"), "{shown:?}");
    let no_colours = [("NO_COLOR", "1")];
    let Some(shown) = OnTerminal::run(&server, &explain, &no_colours).map(OnTerminal::rest) else { return };
    assert!(shown.contains("table scan") && !shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn top_leaves_the_terminal_as_it_was() {
    let server = books();
    let Some(mut top) = OnTerminal::run(&server, &["top", "--interval", "1"], &[]) else { return };
    let mut seen = String::new();
    while seen.matches("Req/s").count() < 2 {
        assert!(top.shown.read_line(&mut seen).unwrap() > 0, "{seen:?}");
    }
    testing::signal(top.process, "INT");
    seen.push_str(&top.rest());
    assert!(seen.starts_with("\x1b[?1049h\x1b[?25l"), "{seen:?}");
    assert!(seen.contains("books"), "{seen:?}");
    assert!(seen.ends_with("\x1b[?25h\x1b[?1049l"), "{seen:?}");
}

#[test]
fn status_shows_what_a_server_says_of_itself() {
    let directory = tempfile::tempdir().unwrap();
    let (data, token) = (directory.path().join("data"), directory.path().join("token"));
    std::fs::write(&token, "hunter2hunter2hunter2\n").unwrap();
    let server = Partita::start(&[
        "--data",
        data.to_str().unwrap(),
        "--admin-token-file",
        token.to_str().unwrap(),
        "--max-connections",
        "123",
    ]);
    let address = server.admin_address().to_string();
    let status = |more: &[&str]| {
        let mut command = binary();
        command.args(["status", "--admin", &address]).args(more);
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), said)
    };
    let with_token = ["--token-file", token.to_str().unwrap()];
    let (code, [shown, _]) = status(&with_token);
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
    let of = |name: &str| {
        let found = lines.iter().find(|line| line[0] == name).and_then(|line| line.last().copied());
        found.unwrap_or_else(|| panic!("{name}: {shown}"))
    };
    assert_eq!((code, of("version"), of("health ready")), (Some(0), env!("CARGO_PKG_VERSION"), "true"));
    assert_eq!((of("store kind"), of("accounts"), of("connections max")), ("embedded", ACCOUNT, "123"));
    assert!(of("store place").contains(data.to_str().unwrap()), "{shown}");
    assert!(of("disk free bytes").parse::<f64>().unwrap() > 0.0, "{shown}");

    let (code, [json, _]) = status(&[&with_token[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["connections"]["max"]), (Some(0), &123.into()));
    let (code, [_, error]) = status(&[]);
    assert!(code == Some(1) && error.contains("refused (401)"), "{code:?} {error}");
    drop(server);
    let (code, [_, error]) = status(&with_token);
    assert!(code == Some(1) && error.contains("does not answer"), "{error}");
}

#[test]
fn doctor_says_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let server = Partita::in_directory(directory.path());
    let data = directory.path().display().to_string();
    let listen = server.address.to_string();
    let doctor = |more: &[&str]| {
        let ports = ["--queue-listen", "off", "--blob-listen", "off", "--listen", &listen];
        let arguments = [&["doctor", "--json", "--data", &data], &ports[..], more].concat();
        let output = run(&server, &arguments);
        let lines = String::from_utf8(output.stdout).unwrap();
        let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code().unwrap(), found)
    };
    let (_, found) = doctor(&[]);
    let of = |subject: &str| {
        let found = found.iter().find(|finding| finding["subject"] == subject);
        found.unwrap_or_else(|| panic!("{subject}: {found:?}")).clone()
    };
    for subject in ["version", "port", "clock", "data", "format", "endpoint"] {
        assert_ne!(of(subject)["verdict"], "wrong", "{subject}");
    }
    assert!(of("data")["text"].as_str().unwrap().contains("a server runs on it"), "{:?}", of("data"));
    assert!(of("port")["text"].as_str().unwrap().contains("is served"), "{:?}", of("port"));
    let wrong_key = format!("AccountName={ACCOUNT};AccountKey=AAAA;TableEndpoint=http://{listen}/{ACCOUNT}");
    let (status, found) = doctor(&["--connection-string", &wrong_key]);
    let wrong: Vec<_> = found.iter().filter(|finding| finding["verdict"] == "wrong").collect();
    assert!(status == 1 && wrong.iter().any(|finding| finding["subject"] == "endpoint"), "{found:?}");
    assert!(!format!("{found:?}").contains("AAAA"), "no key is shown");
}
