//! Every document of recorded traffic: what our client reads of it, our server writes again, to the byte. The recordings are
//! not part of this project; `PARTITA_BLOB_RECORDINGS` names their folder. Without them this test passes, as the replay does:
//! the tests of each document cover the same ground.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blob_model::{ContainerName, DateTime};
use blob_wire::{BlobInclude, Writer};
use blob_wire::{
    batch, blob_list, block_list, container_list, error_body, found_blobs, page_list, tag_document,
};
use common::{ServiceKind, Version};
use protocol::service_properties::BlobProperties as ServiceProperties;
use protocol::service_stats::ServiceStats;
use protocol::xml_tree::Element;
use protocol::{QueryString, access_policies};
use serde_json::Value;

/// A document that was recorded.
struct Recorded<'r> {
    body: &'r str,
    query: QueryString,
    status: u64,
    version: Version,
}

/// Beside the repository, as for `scripts/replay`.
const DEFAULT_FOLDER: &str = "../../../../shared/recordings-blob";

/// Accounts with a hierarchical namespace, which this server has not, say of each blob whether it is a file.
const OTHER_ACCOUNTS: &str = "<ResourceType>";

#[test]
fn documents_are_written_as_the_service_writes_them() {
    let named = std::env::var("PARTITA_BLOB_RECORDINGS").map(PathBuf::from);
    let folder = named.unwrap_or_else(|_| testing::package_directory().join(DEFAULT_FOLDER));
    if !folder.is_dir() {
        eprintln!("no recordings at {}", folder.display());
        return;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries(&folder) {
        let Some(body) = text_of(&entry["ResponseBody"]) else { continue };
        let uri = entry["RequestUri"].as_str().unwrap();
        let query = QueryString::parse(uri.split_once('?').map_or("", |(_, query)| query)).unwrap();
        let status = entry["StatusCode"].as_u64().unwrap();
        let version = header(&entry, "x-ms-version").and_then(|version| Version::parse(&version));
        let version = version.unwrap_or(Version::DEFAULT);
        let kind = header(&entry, "Content-Type").unwrap_or_default();
        let written = match kind.as_str() {
            "application/xml" => again(&Recorded { body: &body, query, status, version }),
            multipart if multipart.starts_with("multipart/") => batch_again(&entry, &body, multipart),
            _ => continue,
        };
        let Some((name, written)) = written else { continue };
        assert_eq!(written, body, "{uri}");
        *seen.entry(name).or_default() += 1;
    }
    eprintln!("{seen:?}");
    for document in [
        "blobs",
        "containers",
        "blocks",
        "pages",
        "tags",
        "found",
        "policies",
        "properties",
        "stats",
        "error",
        "batch",
    ] {
        assert!(seen.contains_key(document), "no recording has {document}");
    }
}

fn entries(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
    files.into_iter().flat_map(|path| read(path)["Entries"].as_array().unwrap().clone()).collect()
}

/// Recordings break long bodies into lines, and encode what is no text.
fn text_of(body: &Value) -> Option<String> {
    match body {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => Some(lines.iter().map(|line| line.as_str().unwrap()).collect()),
        _ => None,
    }
}

fn header(entry: &Value, name: &str) -> Option<String> {
    let headers = entry["ResponseHeaders"].as_object()?;
    let (_, value) = headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    text_of(value)
}

/// The document by its kind, written again.
fn again(recorded: &Recorded<'_>) -> Option<(String, String)> {
    let Recorded { body, query, status, version } = recorded;
    let document = body.as_bytes();
    let root = Element::parse_list(document, 1_000_000).unwrap();
    let writer = if body.starts_with("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n") {
        Writer::New
    } else {
        Writer::Old
    };
    let asked = |name| query.get_ignoring_case(name).unwrap_or_default();
    let (name, written) = match (root.name.as_str(), asked("comp")) {
        ("Error", _) => ("error", error(document, writer, *status)),
        ("EnumerationResults", "blobs") => ("found", found(&root, document)),
        ("EnumerationResults", _) if asked("restype") == "container" => {
            if body.contains(OTHER_ACCOUNTS) {
                return None;
            }
            ("blobs", blobs(&root, document, query))
        }
        ("EnumerationResults", _) => ("containers", containers(&root, document, query, *version)),
        ("BlockList", _) => {
            let lists = block_list::read(document).unwrap();
            ("blocks", block_list::write(lists.committed.as_deref(), lists.uncommitted.as_deref()))
        }
        ("PageList", _) => {
            let page = page_list::read(document).unwrap();
            (
                "pages",
                page_list::write(page_list::writer(*version), &page.ranges, page.next_marker.as_deref()),
            )
        }
        ("Tags", _) => ("tags", tag_document::write(&tag_document::read(document).unwrap())),
        ("SignedIdentifiers", _) => {
            ("policies", access_policies::write(&access_policies::read(ServiceKind::Blob, document).unwrap()))
        }
        ("StorageServiceProperties", _) => ("properties", ServiceProperties::read(document).unwrap().write()),
        ("StorageServiceStats", _) => ("stats", ServiceStats::read(document).unwrap().write()),
        other => panic!("unknown document: {other:?}"),
    };
    Some((name.to_owned(), String::from_utf8(written).unwrap()))
}

fn error(document: &[u8], writer: Writer, status: u64) -> Vec<u8> {
    let error = error_body::read(document).unwrap();
    assert!(status >= 400);
    let mut lines = error.message.split('\n');
    let message = lines.next().unwrap();
    let id = lines.next().unwrap().strip_prefix("RequestId:").unwrap();
    let time = DateTime::parse(lines.next().unwrap().strip_prefix("Time:").unwrap()).unwrap();
    // A test may hold names for ever.
    let details: Vec<_> =
        error.details.into_iter().map(|(name, value)| (&*name.leak(), value.into())).collect();
    error_body::write(writer, &error.code, message, &details, id, time)
}

fn blobs(root: &Element, document: &[u8], query: &QueryString) -> Vec<u8> {
    let page = blob_list::read(document).unwrap();
    let asked = |name| query.get_ignoring_case(name).unwrap_or_default();
    let list = blob_list::BlobList {
        endpoint: root.attribute("ServiceEndpoint").unwrap(),
        container: root.attribute("ContainerName").unwrap(),
        prefix: asked("prefix"),
        marker: asked("marker"),
        max_results: query.get("maxresults"),
        delimiter: asked("delimiter"),
        include: BlobInclude::parse(asked("include")).unwrap(),
        items: &page.items,
        next_marker: &page.next_marker,
    };
    list.write()
}

fn containers(root: &Element, document: &[u8], query: &QueryString, version: Version) -> Vec<u8> {
    let page = container_list::read(document).unwrap();
    let asked = |name| query.get_ignoring_case(name).unwrap_or_default();
    let list = container_list::ContainerList {
        endpoint: root.attribute("ServiceEndpoint").unwrap(),
        prefix: asked("prefix"),
        marker: asked("marker"),
        max_results: query.get("maxresults"),
        shows_metadata: blob_wire::ContainerInclude::parse(asked("include")).unwrap().metadata,
        containers: &page.containers,
        next_marker: &page.next_marker,
        version,
    };
    assert!(page.containers.iter().all(|container| ContainerName::parse(container.name.as_str()).is_ok()));
    list.write()
}

fn found(root: &Element, document: &[u8]) -> Vec<u8> {
    let page = found_blobs::read(document).unwrap();
    let text = |name: &str| root.child(name).unwrap().map(Element::text);
    let found = found_blobs::FoundBlobs {
        endpoint: root.attribute("ServiceEndpoint").unwrap(),
        marker: text("Marker").unwrap_or_default(),
        expression: text("Where").unwrap(),
        max_results: text("MaxResults"),
        blobs: &page.blobs,
        next_marker: &page.next_marker,
    };
    found.write()
}

/// The parts of a recorded answer, one by one, and whether its request is read.
fn batch_again(entry: &Value, body: &str, content_type: &str) -> Option<(String, String)> {
    let bytes = STANDARD.decode(body).unwrap();
    let answer = String::from_utf8(bytes).unwrap();
    let id = content_type.split_once("batchresponse_").unwrap().1;
    let boundary = format!("--batchresponse_{id}");
    let parts = answer.split(&boundary).filter(|part| part.starts_with("\r\n")).map(|part| {
        let (mime, http) = part.split_once("\r\n\r\n").unwrap();
        let (head, body) = http.split_once("\r\n\r\n").unwrap();
        let (line, headers) = head.split_once("\r\n").unwrap();
        let (status, reason) = line.strip_prefix("HTTP/1.1 ").unwrap().split_once(' ').unwrap();
        let headers = headers.split("\r\n").map(|header| {
            let (name, value) = header.split_once(": ").unwrap();
            (&*name.to_owned().leak(), value.to_owned())
        });
        batch::PartAnswer {
            content_id: mime.split_once("Content-ID: ").map(|(_, id)| id.to_owned()),
            status: status.parse().unwrap(),
            reason: reason.to_owned(),
            headers: headers.collect(),
            body: body.strip_suffix("\r\n").unwrap_or(body).as_bytes().to_vec(),
        }
    });
    let parts: Vec<batch::PartAnswer> = parts.collect();
    let request = STANDARD.decode(entry["RequestBody"].as_str().unwrap()).unwrap();
    let asked = batch::read(entry["RequestHeaders"]["Content-Type"].as_str().unwrap(), &request).unwrap();
    assert_eq!(asked.len(), parts.len());
    assert!(asked.iter().zip(&parts).all(|(asked, part)| asked.content_id == part.content_id.as_deref()));
    assert_eq!(batch::content_type(id), content_type);
    Some(("batch".to_owned(), STANDARD.encode(batch::write(id, &parts))))
}
