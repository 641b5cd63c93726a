//! Get Service Stats: how far the secondary lags behind.

use std::time::SystemTime;

use crate::xml_tree::{Element, escape};

/// The state of a secondary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceStats {
    /// `live`, `bootstrap` or `unavailable`.
    pub status: String,
    /// The secondary has every write before this time. Known only if it is live.
    pub last_sync: Option<SystemTime>,
}

impl ServiceStats {
    /// `None` if it is another document.
    pub fn read(document: &[u8]) -> Option<Self> {
        let root = Element::parse(document).filter(|root| root.name == "StorageServiceStats")?;
        let replication = root.child("GeoReplication").ok()??;
        let text = |name| replication.child(name).ok().flatten().map(Element::text);
        let last_sync = text("LastSyncTime").and_then(|text| httpdate::parse_http_date(text).ok());
        Some(Self { status: text("Status")?.to_owned(), last_sync })
    }

    /// The answer to Get Service Stats, with its byte order mark.
    pub fn write(&self) -> Vec<u8> {
        let status = escape(&self.status);
        let last_sync = match self.last_sync {
            Some(time) => format!("<LastSyncTime>{}</LastSyncTime>", httpdate::fmt_http_date(time)),
            None => "<LastSyncTime />".to_owned(),
        };
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication><Status>{status}</Status>{last_sync}</GeoReplication></StorageServiceStats>"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_time_is_none() {
        let check = |replication: &str, expected: Option<(&str, bool)>| {
            let document = format!("\u{feff}<StorageServiceStats>{replication}</StorageServiceStats>");
            let found = ServiceStats::read(document.as_bytes());
            assert_eq!(
                found.as_ref().map(|stats| (stats.status.as_str(), stats.last_sync.is_some())),
                expected,
                "{replication}"
            );
        };
        check(
            "<GeoReplication><Status>live</Status><LastSyncTime>Wed, 08 Sep 2021 16:46:37 GMT</LastSyncTime></GeoReplication>",
            Some(("live", true)),
        );
        check(
            "<GeoReplication><Status>bootstrap</Status><LastSyncTime /></GeoReplication>",
            Some(("bootstrap", false)),
        );
        check("<GeoReplication />", None);
        check("", None);
    }

    #[test]
    fn an_answer_is_the_services_to_the_byte_and_reads_back() {
        let time = httpdate::parse_http_date("Wed, 08 Sep 2021 16:46:37 GMT").unwrap();
        let check = |status: &str, last_sync, expected: &str| {
            let stats = ServiceStats { status: status.to_owned(), last_sync };
            let written = String::from_utf8(stats.write()).unwrap();
            assert_eq!(
                written,
                format!(
                    "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>{expected}</GeoReplication></StorageServiceStats>"
                )
            );
            assert_eq!(ServiceStats::read(written.as_bytes()), Some(stats));
        };
        check(
            "live",
            Some(time),
            "<Status>live</Status><LastSyncTime>Wed, 08 Sep 2021 16:46:37 GMT</LastSyncTime>",
        );
        check("unavailable", None, "<Status>unavailable</Status><LastSyncTime />");
    }
}
