//! Service properties set in parts by several clients at once.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{ACCOUNT, Client, Partita};

fn set(client: &mut Client, section: &str) {
    let body = format!("<StorageServiceProperties>{section}</StorageServiceProperties>");
    let headers = [("Content-Type", "application/xml")];
    assert_eq!(
        client.send("PUT", "/?restype=service&comp=properties", &headers, body.as_bytes()).status,
        202
    );
}

#[test]
fn neither_of_two_changes_at_once_undoes_the_other() {
    let server = Partita::in_memory();
    for round in 1..=50 {
        let retention =
            format!("<RetentionPolicy><Enabled>true</Enabled><Days>{round}</Days></RetentionPolicy>");
        let logging = format!(
            "<Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>{retention}</Logging>"
        );
        let metrics = format!(
            "<MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>{retention}</MinuteMetrics>"
        );
        std::thread::scope(|scope| {
            scope.spawn(|| set(&mut server.client(), &logging));
            scope.spawn(|| set(&mut server.client(), &metrics));
        });
        let shown = server.client().send("GET", "/?restype=service&comp=properties", &[], b"").text();
        let days = format!("<Days>{round}</Days>");
        assert_eq!(shown.matches(&days).count() - usize::from(round == 7), 2, "{shown}");
    }
}

/// Where the front end answers, or the service's own documents do, the words stand in the status line too.
#[test]
fn the_reason_phrase_is_the_message_of_some_refusals() {
    let server = Partita::in_memory();
    let mut client = server.client();
    let malformed = client.send("PUT", "/?restype=service&comp=properties", &[], b"<a>");
    assert_eq!(
        (malformed.status, malformed.reason.as_str()),
        (400, "XML specified is not syntactically valid.")
    );
    let missing = client.send("GET", "/Missing?comp=acl", &[], b"");
    assert_eq!((missing.status, missing.reason.as_str()), (404, "The table specified does not exist."));
    let target = format!("/{ACCOUNT}/Tables");
    let refused = client.send_raw("GET", &target, &[("x-ms-version", "2019-02-02")], b"").unwrap();
    assert!(
        refused.reason.starts_with("Server failed to authenticate the request. Make sure"),
        "{refused:?}"
    );
    let of_table = client.send("GET", "/Missing()", &[("Accept", "application/json")], b"");
    assert_eq!((of_table.status, of_table.reason.as_str()), (404, "Not Found"));
}
