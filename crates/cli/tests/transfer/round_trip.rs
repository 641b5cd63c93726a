//! An import followed by an export gives the same entities: every type, odd keys, odd texts, many pages, both formats.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use super::kit::{Entity, held, loaded, numbered, read, run, sort, succeed, write};
use crate::support::random::{Random, seed};
use crate::support::{ACCOUNT, KEY, Partita};

const KEY_PIECES: [&str; 19] = [
    "", "a", "B", "'", "''", "\"", "%", "%25", " ", "+", "&", "=", ",", "(", ")", "é", "日本", "😀", "$batch",
];
const TEXT_PIECES: [&str; 19] = [
    "",
    "text",
    "\n",
    "\r\n",
    "\r",
    "\"",
    "\"\"",
    ",",
    ";",
    "\t",
    "\0",
    "\u{1f}",
    "\u{7f}",
    "é",
    "😀",
    "\\u0041",
    "\u{feff}",
    "'",
    "--changeset_partita",
];

fn text(random: &mut Random, pieces: &[&str]) -> String {
    (0..random.below(6)).map(|_| *random.pick(pieces)).collect()
}

/// A value as the service spells it, with its annotation.
fn value(random: &mut Random) -> (Option<&'static str>, Value) {
    match random.below(12) {
        0 => (None, json!(random.chance(50))),
        1 => (None, json!(*random.pick(&[0, 1, -1, i32::MIN, i32::MAX]))),
        2 => (Some("Edm.Int64"), json!(random.pick(&[0, -1, i64::MIN, i64::MAX]).to_string())),
        3 => (None, json!(*random.pick(&[0.0, 1.0, -1.5, 1e300, 5e-324, f64::MAX, 0.1, 123_456_789.0]))),
        4 => (Some("Edm.Double"), json!(*random.pick(&["NaN", "Infinity", "-Infinity"]))),
        5 => (Some("Edm.Guid"), json!("c9da6455-213d-42c9-9a79-3e9149a57833")),
        6 => (Some("Edm.Binary"), json!(*random.pick(&["", "AA==", "/+8="]))),
        7 => {
            let times =
                ["2030-12-31T23:59:59.1234567Z", "1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z"];
            (Some("Edm.DateTime"), json!(*random.pick(&times)))
        }
        8 => (None, json!("x".repeat(random.below(20_000)))),
        _ => (None, json!(text(random, &TEXT_PIECES))),
    }
}

fn odd_entities(random: &mut Random, count: usize) -> Vec<Entity> {
    let mut entities = std::collections::BTreeMap::new();
    while entities.len() < count {
        let (partition, row) = (text(random, &KEY_PIECES[..8]), text(random, &KEY_PIECES));
        let mut entity = Entity::new();
        entity.insert("PartitionKey".to_owned(), json!(partition));
        entity.insert("RowKey".to_owned(), json!(row));
        for name in ["A", "B", "_c", "Größe", "Timestamp2", "D"] {
            if random.chance(60) {
                let (annotation, value) = value(random);
                if let Some(annotation) = annotation {
                    entity.insert(format!("{name}@odata.type"), json!(annotation));
                }
                entity.insert(name.to_owned(), value);
            }
        }
        entities.insert((partition, row), entity);
    }
    let mut entities: Vec<_> = entities.into_values().collect();
    sort(&mut entities);
    entities
}

fn compare(got: &[Entity], expected: &[Entity], seed: u64) {
    for (got, expected) in got.iter().zip(expected) {
        assert_eq!(got, expected, "PARTITA_SEED={seed}");
    }
    assert_eq!(got.len(), expected.len(), "PARTITA_SEED={seed}");
}

#[test]
fn every_entity_is_unchanged_by_json_lines_and_csv() {
    let seed = seed();
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let (jsonl, csv) = (directory.path().join("odd.jsonl"), directory.path().join("odd.csv"));
    let entities = odd_entities(&mut Random::new(seed), 400);
    write(&jsonl, &entities);
    succeed("import", server.address, "--table Odd --from {}", &jsonl);
    succeed("export", server.address, "--table Odd --overwrite --to {}", &jsonl);
    compare(&read(&jsonl), &entities, seed);
    succeed("export", server.address, "--table Odd --to {}", &csv);
    succeed("import", server.address, "--table Second --from {}", &csv);
    compare(&held(server.address, "Second"), &entities, seed);
    // As single writes, too, not only in transactions.
    for mode in ["insert", "merge"] {
        let table = format!("By{mode}");
        let arguments = format!("--table {table} --mode {mode} --parallel 1 --from {{}}");
        let mut shuffled = entities.clone();
        shuffled.sort_by_key(|entity| entity["RowKey"].to_string());
        write(&jsonl, &shuffled);
        succeed("import", server.address, &arguments, &jsonl);
        compare(&held(server.address, &table), &entities, seed);
    }
}

#[test]
fn all_tables_of_an_account_are_copied_to_another() {
    let (from, to) = (Partita::in_memory(), Partita::in_memory());
    let directory = tempfile::tempdir().unwrap();
    let entities = numbered(5_300, 700);
    let from = loaded(from, &entities);
    let path = directory.path().join("few.jsonl");
    write(&path, &entities[..3]);
    succeed("import", from.address, "--table fewBooks --from {}", &path);
    for format in ["jsonl", "csv"] {
        let backup = directory.path().join(format);
        let said = succeed("export", from.address, &format!("--all --format {format} --to {{}}"), &backup);
        assert!(said.contains("Books: 5,300 entities, "), "{said}");
        let mut names: Vec<_> =
            std::fs::read_dir(&backup).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [format!("Books.{format}"), format!("fewBooks.{format}")].map(OsString::from));
        succeed("import", to.address, "--all --from {}", &backup);
        assert_eq!(held(to.address, "Books"), entities);
        assert_eq!(held(to.address, "fewBooks"), entities[..3]);
        assert_eq!(std::fs::read_dir(&backup).unwrap().count(), 2, "nothing is left beside them");
    }
}

#[test]
fn standard_input_and_output_can_be_used() {
    let server = loaded(Partita::in_memory(), &numbered(1_500, 100));
    let output = run("export", server.address, "--quiet --table Books --to -", Path::new(""));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("books");
    std::fs::write(&path, output.stdout).unwrap();
    let mut import =
        super::kit::command("import", server.address, "--quiet --table Copy --from -", Path::new(""));
    let output = import.stdin(std::fs::File::open(&path).unwrap()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(held(server.address, "Copy"), numbered(1_500, 100));
}

#[test]
fn filter_select_and_columns_restrict_the_export() {
    let server = loaded(Partita::in_memory(), &numbered(1_200, 400));
    let directory = tempfile::tempdir().unwrap();
    let export = |name: &str, arguments: &[&str]| {
        let path = directory.path().join(name);
        let mut command = super::kit::command("export", server.address, "--table Books --to {}", &path);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (path, super::kit::error(&output))
    };
    let filter = "PartitionKey eq 'p00001' and Number ge 798";
    let (path, _) = export("f.jsonl", &["--filter", filter, "--select", "Number"]);
    let expected = ["p00001 r00000798 798", "p00001 r00000799 799"];
    let shown: Vec<_> = read(&path)
        .iter()
        .map(|entity| {
            assert_eq!(entity.len(), 3, "{entity:?}");
            let text = |name: &str| entity[name].as_str().unwrap().to_owned();
            format!("{} {} {}", text("PartitionKey"), text("RowKey"), entity["Number"])
        })
        .collect();
    assert_eq!(shown, expected);
    let (path, said) = export("c.csv", &["--filter", filter, "--columns", "Nothing,Number"]);
    let rows = std::fs::read_to_string(&path).unwrap();
    let mut rows = rows.split("\r\n");
    assert_eq!(rows.next(), Some("PartitionKey,RowKey,Timestamp,Nothing,Nothing@type,Number,Number@type"));
    let row = rows.next().unwrap();
    assert!(row.starts_with("p00001,r00000798,20") && row.ends_with("Z,,,798,Edm.Int32"), "{row}");
    assert!(said.contains("left out, because they have no column: Text"), "{said}");
}

#[test]
fn of_entities_with_the_same_keys_the_last_wins() {
    let server = Partita::in_memory();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.jsonl");
    let entity = |row: usize, number: usize| {
        numbered(1, 1)
            .pop()
            .map(|mut entity| {
                entity.insert("RowKey".to_owned(), json!(format!("{row}")));
                entity.insert("Number".to_owned(), json!(number));
                entity
            })
            .unwrap()
    };
    // In one partition, so that each group must wait for the previous one.
    let twice: Vec<_> = (0..600).map(|number| entity(number % 7, number)).collect();
    write(&path, &twice);
    succeed("import", server.address, "--table Same --from {}", &path);
    let mut last: Vec<_> = (593..600).map(|number| entity(number % 7, number)).collect();
    sort(&mut last);
    assert_eq!(held(server.address, "Same"), last);
}

#[test]
fn https_with_a_private_authority_needs_the_ca_flag() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().display().to_string();
    let server = Partita::start(&["--in-memory", "--dev-cert", &certificates, "--tls-listen", "127.0.0.1:0"]);
    let server = loaded(server, &numbered(10, 10));
    let (_, rest) = server.banner.split_once("https://").unwrap();
    let address = rest.split('/').next().unwrap();
    let path = directory.path().join("t.jsonl");
    let text = format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=https://{address}/{ACCOUNT}");
    let arguments =
        format!("--table Books --to {{}} --ca {certificates}/authority.pem --connection-string {text}");
    succeed("export", server.address, &arguments, &path);
    assert_eq!(read(&path), numbered(10, 10));
    let arguments =
        format!("--table Copy --from {{}} --ca {certificates}/authority.pem --connection-string {text}");
    succeed("import", server.address, &arguments, &path);
    assert_eq!(held(server.address, "Copy"), numbered(10, 10));
    let arguments = format!("--table Books --overwrite --to {{}} --connection-string {text}");
    let said = super::kit::fail("export", server.address, &arguments, &path);
    assert!(said.contains("--ca names an authority to trust"), "{said}");
}
