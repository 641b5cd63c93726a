//! Servers on a cluster: preparing it, refusing an unsafe one, and sharing it.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::process::Output;

use serde_json::{Value, json};

use crate::admin::kit::Visitor;
use crate::support::cluster::{new_address, new_store, nodes, partita};
use crate::support::{ACCOUNT, Partita, binary};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const BOOK: &[u8] = br#"{"PartitionKey":"p","RowKey":"r","Title":"Emma"}"#;

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The error of a `partita serve` that does not start.
fn refused(arguments: &[&str]) -> String {
    let output = partita(&[&["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"], arguments].concat());
    assert!(!output.status.success());
    said(&output)
}

fn on(store: &str) -> Partita {
    Partita::start(&["--store", store])
}

#[test]
fn an_unreachable_cluster_is_retried_and_then_named() {
    // Nothing listens on port 1.
    let said = refused(&["--store", "cassandra://127.0.0.1:1,localhost:1/k", "--store-wait-seconds", "1"]);
    assert!(said.contains("retrying"), "{said}");
    assert!(said.contains("tried 127.0.0.1:1, localhost:1"), "{said}");
    assert!(said.contains("gave up after 1 s; --store-wait-seconds"), "{said}");
    let at_once = partita(&["store", "check", "cassandra://127.0.0.1:1/k"]);
    assert!(!at_once.status.success());
}

#[test]
fn a_wrong_address_is_named_without_its_password() {
    for (address, expected) in [
        ("cassandra://u:s3cr3t@127.0.0.1/K", "keyspace \"K\""),
        ("cassandra://u:s3cr3t@127.0.0.1/k?reads=dirty", "serial or quorum"),
        ("/var/lib/partita", "begins with cassandra://"),
    ] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--store", address];
        for arguments in [&serve[..], &["store", "check", address], &["store", "init", address]] {
            let output = partita(arguments);
            let said = said(&output);
            assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }
}

#[test]
fn a_store_together_with_a_directory_is_refused() {
    let address = "cassandra://127.0.0.1:1/k";
    for other in [&["--data", "/nowhere"][..], &["--in-memory"]] {
        let said = refused(&[&["--store", address], other].concat());
        assert!(said.contains("leave out one"), "{said}");
    }
    // A flag wins over a variable, which a container image may have set.
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", address, "--store-wait-seconds", "0"]);
    let said = said(&command.env("PARTITA_DATA", "/nowhere").output().unwrap());
    assert!(said.contains("tried 127.0.0.1:1"), "{said}");
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--in-memory"]);
    command.env("PARTITA_STORE", address);
    assert!(Partita::spawn(command).stop().success());
}

#[test]
fn a_keyspace_is_created_once_and_then_not_changed() {
    let Some(nodes) = nodes() else { return };
    let address = new_address(&nodes);
    let missing = refused(&["--store", &address]);
    assert!(missing.contains("partita store init"), "{missing}");
    let init = |arguments: &[&str]| partita(&[&["store", "init", address.as_str()], arguments].concat());
    for (arguments, expected) in [
        (&["--replication-factor", "100"][..], "of the 100 nodes"),
        (&["--datacenter", "atlantis=1"], "no datacenter \"atlantis\""),
    ] {
        let output = init(arguments);
        assert!(!output.status.success() && said(&output).contains(expected), "{}", said(&output));
    }
    let made = init(&["--replication-factor", "1"]);
    assert!(
        made.status.success() && said(&made).contains("created tables schema_version"),
        "{}",
        said(&made)
    );
    let again = init(&["--replication-factor", "1"]);
    assert!(again.status.success() && said(&again).contains("nothing was changed"), "{}", said(&again));
}

#[test]
fn a_keyspace_of_another_program_is_not_changed() {
    let Some(nodes) = nodes() else { return };
    let address = format!("cassandra://{nodes}/system_auth");
    let output = partita(&["store", "init", &address, "--replication-factor", "1"]);
    assert!(!output.status.success() && said(&output).contains("not ours (cidr_"), "{}", said(&output));
    let served = refused(&["--store", &format!("{address}?unsafe=true")]);
    assert!(served.contains("holds no tables of ours"), "{served}");
}

#[test]
fn an_unsafe_cluster_is_refused_unless_the_address_accepts_it() {
    let Some(nodes) = nodes() else { return };
    let store = new_store(&nodes);
    let strict = store.split('?').next().unwrap();
    let said_by_serve = refused(&["--store", strict]);
    assert!(said_by_serve.contains("keeps 1 copy of everything and takes 3"), "{said_by_serve}");
    assert!(said_by_serve.contains("unsafe=true"), "{said_by_serve}");
    let check = partita(&["store", "check", strict]);
    assert!(!check.status.success() && said(&check).contains("unsafe: keyspace test_"), "{}", said(&check));
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--store", &store]);
    command.stderr(std::fs::File::create(&log).unwrap());
    assert!(Partita::spawn(command).stop().success());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("accepted with unsafe=true: keyspace test_"), "{log}");
}

#[test]
fn servers_on_a_cluster_share_their_data() {
    let Some(nodes) = nodes() else { return };
    let store = new_store(&nodes);
    let (first, second) = (on(&store), on(&store));
    assert!(first.banner.contains("Data               cassandra://"), "{}", first.banner);
    let (mut writer, mut reader) = (first.client(), second.client());
    assert_eq!(writer.send("POST", "/Tables", &JSON, br#"{"TableName":"Books"}"#).status, 201);
    assert_eq!(writer.send("POST", "/Books", &JSON, BOOK).status, 201);
    let path = "/Books(PartitionKey='p',RowKey='r')";
    assert!(reader.send("GET", path, &[], b"").text().contains("Emma"));
    assert_eq!(reader.send("POST", "/Books", &JSON, BOOK).status, 409);
    assert_eq!(reader.send("DELETE", path, &[("If-Match", "*")], b"").status, 204);
    assert_eq!(writer.send("GET", path, &[], b"").status, 404);
    assert_eq!(writer.send("POST", "/Books", &JSON, BOOK).status, 201);
    for server in [first, second] {
        assert!(is_ready(&server));
        assert!(server.stop().success());
    }
    let third = on(&store);
    assert!(third.client().send("GET", path, &[], b"").text().contains("Emma"));
}

#[test]
fn service_properties_set_through_two_servers_keep_what_the_other_set() {
    let Some(nodes) = nodes() else { return };
    let store = new_store(&nodes);
    let (first, second) = (on(&store), on(&store));
    let path = "/?restype=service&comp=properties";
    let set = |server: &Partita, properties: &str| {
        let body = format!("<StorageServiceProperties>{properties}</StorageServiceProperties>");
        let answer = server.client().send("PUT", path, &[], body.as_bytes());
        assert_eq!(answer.status, 202, "{}", answer.text());
    };
    let logging = |retention: &str| {
        format!(
            "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>false</Write>\
             <RetentionPolicy><Enabled>true</Enabled><Days>{retention}</Days></RetentionPolicy></Logging>"
        )
    };
    let cors = "<Cors><CorsRule><AllowedOrigins>http://shop.example</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                <MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors>";
    set(&first, &logging("1"));
    // The other server sees the change within seconds. Then each changes what it knows.
    for server in [&first, &second] {
        testing::wait_until("the properties are taken up", || {
            server.client().send("GET", path, &[], b"").text().contains("<Days>1</Days>").then_some(())
        });
    }
    set(&first, cors);
    set(&second, &logging("7"));
    let third = on(&store);
    let kept = third.client().send("GET", path, &[], b"").text();
    assert!(kept.contains("http://shop.example") && kept.contains("<Days>7</Days>"), "{kept}");
}

#[test]
fn the_administration_shows_servers_slots_nodes_and_directories() {
    let Some(nodes) = nodes() else { return };
    let store = new_store(&nodes);
    let (first, second) = (on(&store), on(&store));
    let mut visitor = Visitor::developer(&first);
    visitor.create_table("Books");
    visitor.create_table("Empty");
    for partition in 0..20 {
        let body = format!(r#"{{"PartitionKey":"p{partition}","RowKey":"r"}}"#);
        assert_eq!(visitor.table("POST", "/Books", &body).status, 201);
    }
    let status = visitor.get("/api/status").json();
    assert_eq!((&status["store"]["kind"], &status["health"]["ready"]), (&json!("cassandra"), &json!(true)));
    assert_eq!(
        status["disk"],
        json!({ "used_bytes": null, "free_bytes": null }),
        "a cluster's disks are elsewhere"
    );
    assert!(status["engine"]["cluster_requests_conditional_write"].as_f64().unwrap() >= 20.0, "{status}");
    let cluster = &status["cluster"];
    assert!(store.contains(&format!("/{}?", cluster["keyspace"].as_str().unwrap())), "{cluster}");
    let servers = cluster["front_ends"].as_array().unwrap();
    let own: Vec<_> = servers.iter().filter(|server| server["this"] == true).collect();
    assert!(servers.len() == 2 && own.len() == 1 && own[0]["slot"] == cluster["slot"], "{cluster}");
    for server in servers {
        assert_eq!((&server["table_lease_ms"], &server["frozen"]), (&json!(100), &json!(false)), "{cluster}");
    }
    let shown = cluster["nodes"].as_array().unwrap();
    let contacts: Vec<&str> = nodes.split(',').collect();
    assert!(shown.len() >= contacts.len(), "{cluster}");
    for node in shown {
        assert!(node["up"] == true && node["datacenter"].is_string() && node["rack"].is_string(), "{node}");
    }
    for contact in contacts {
        let is_it =
            |node: &Value| node["address"].as_str().unwrap().starts_with(contact.split(':').next().unwrap());
        assert!(shown.iter().any(is_it), "{contact} is not in {cluster}");
    }
    // What a busy cluster does not tell within a second is left out.
    testing::wait_until("the directories of both tables are shown", || {
        let cluster = visitor.get("/api/status").json()["cluster"].clone();
        let shown = cluster["segments"].as_array().unwrap();
        let expected = |table| json!({ "account": ACCOUNT, "table": table, "segments": 1 });
        ["Books", "Empty"].into_iter().all(|table| shown.contains(&expected(table))).then_some(())
    });

    let tables = visitor.get("/api/tables").json();
    let unknown = |name: &str| json!({ "name": name, "estimated_rows": null, "estimated_bytes": null });
    assert_eq!(tables["tables"], json!([unknown("Books"), unknown("Empty")]), "a cluster can't tell");
    let plan = visitor.get("/api/forward/table/$partita/explain/Books").json();
    assert_eq!((&plan["class"], &plan["azure"]), (&json!("table scan"), &json!({ "class": "table scan" })));

    // A server that stops gives its slot back.
    let slot = cluster["slot"].clone();
    assert!(first.stop().success());
    let mut visitor = Visitor::developer(&second);
    testing::wait_until("the stopped server is gone", || {
        let cluster = visitor.get("/api/status").json()["cluster"].clone();
        let servers = cluster["front_ends"].as_array().unwrap();
        (servers.len() == 1 && servers[0]["this"] == true && servers[0]["slot"] != slot).then_some(())
    });
}

fn is_ready(server: &Partita) -> bool {
    server.client().send_raw("GET", "/health/ready", &[], b"").unwrap().status == 200
}
