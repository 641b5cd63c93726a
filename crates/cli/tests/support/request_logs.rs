//! Request logs, read as any client reads them.

use super::Client;

const VERSION: (&str, &str) = ("x-ms-version", "2021-02-12");

/// The logs of an account whose names begin so: names and texts. None if there is no container of logs.
pub fn log_blobs(blobs: &mut Client, prefix: &str) -> Option<Vec<(String, String)>> {
    let list = format!("/$logs?restype=container&comp=list&prefix={prefix}");
    let listed = blobs.send("GET", &list, &[VERSION], b"");
    if listed.status == 404 {
        return None;
    }
    assert_eq!(listed.status, 200, "{}", listed.text());
    let text = listed.text();
    assert!(text.contains("<NextMarker />"), "{text}");
    let names = text.split("<Name>").skip(1).filter_map(|rest| rest.split("</Name>").next());
    let read = |name: &str| {
        let answer = blobs.send("GET", &format!("/$logs/{name}"), &[VERSION], b"");
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        (name.to_owned(), answer.text())
    };
    Some(names.map(read).collect())
}

/// The lines of all of them.
pub fn request_logs(blobs: &mut Client, prefix: &str) -> String {
    log_blobs(blobs, prefix).unwrap_or_default().into_iter().map(|(_, text)| text).collect()
}
