//! Service properties set in parts by several clients at once.

#![allow(clippy::unwrap_used, reason = "a test: what is unwrapped is what is asserted")]

use crate::support::{Client, Partita};

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
