//! `partita blob` without export and import: one request, or a few, and what it prints.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::{self, Stream};
use partita_client::{
    Blob, BlobItem, BlobProperties, BlobType, DeleteSnapshots, Error, PublicAccess, UploadOptions,
};
use serde_json::{Value, json};
use thiserror::Error as ThisError;

use super::BlobOutcome;
use super::command::{
    BlobDeleteCommand, BlobGetCommand, BlobListCommand, BlobPutCommand, BlobShowCommand,
    CreateContainerCommand, OneBlob, OneContainer, Public,
};
use super::endpoint::{BlobRequestError, Containers};
use crate::endpoint::RequestError;
use crate::queue::{Display, Shown, fitted};

const PIECE_BYTES: usize = 256 * 1024;

/// Why a command failed.
#[derive(Debug, ThisError)]
pub enum BlobToolError {
    #[error(transparent)]
    Request(#[from] BlobRequestError),
    #[error("can't write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("can't read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("can't write {}: {source}", .path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    #[error("can't read the content: {0}")]
    Source(String),
}

/// The endpoint, and one of its blobs.
struct Chosen {
    containers: Containers,
    blob: Blob,
    what: String,
}

impl Chosen {
    fn new(of: &OneBlob, snapshot: Option<&str>) -> Result<Self, BlobRequestError> {
        let containers = Containers::connect(&of.of.connection)?;
        let blob = containers.blob(&of.of.container, &of.name)?;
        let blob = snapshot.map_or(blob.clone(), |time| blob.at_snapshot(time));
        Ok(Self { containers, blob, what: format!("{}/{}", of.of.container, of.name) })
    }

    fn failed(&self, error: Error) -> BlobToolError {
        match error {
            Error::Source(why) => BlobToolError::Source(why),
            error => self.containers.failed(&self.what, error).into(),
        }
    }

    /// `None` if there is no such blob, which is told.
    fn found<T>(&self, result: Result<T, Error>) -> Result<Option<T>, BlobToolError> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code() == Some("BlobNotFound") => {
                eprintln!("there is no blob {}", fitted(&self.what, None));
                Ok(None)
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}

pub async fn list(command: &BlobListCommand) -> Result<(), BlobToolError> {
    let containers = Containers::connect(&command.connection)?;
    let display = Display::new(command.format);
    let Some(name) = &command.container else {
        let mut listed = std::pin::pin!(containers.service.containers(&command.prefix));
        let failed = |error| BlobRequestError::List(RequestError::at(|| containers.service.url(), error));
        while let Some(entry) = listed.try_next().await.map_err(failed)? {
            let json = json!({ "name": entry.name, "metadata": entry.metadata });
            display.say(&fitted(&entry.name, None), &json)?;
        }
        return Ok(());
    };
    let list = containers.container(name)?.blobs().prefix(&command.prefix).with_metadata();
    let list = if command.snapshots { list.with_snapshots() } else { list };
    let (delimiter, mut next) = (command.folders.then_some("/"), None);
    loop {
        let page = list.page(delimiter, next.as_deref()).await;
        let page = page.map_err(|error| containers.failed(name, error))?;
        for item in &page.items {
            match item {
                BlobItem::Prefix(prefix) => {
                    let text = format!("{:>15} {}", "folder", fitted(prefix, None));
                    display.say(&text, &json!({ "prefix": prefix }))?;
                }
                BlobItem::Blob(blob) => {
                    let snapshot = blob.snapshot.as_deref();
                    let behind = snapshot.map(|time| format!(" (snapshot {time})")).unwrap_or_default();
                    let length = blob.properties.length;
                    let text = format!("{length:>15} {}{behind}", fitted(&blob.name, None));
                    display.say(&text, &as_json(&blob.name, snapshot, &blob.properties))?;
                }
            }
        }
        next = page.next;
        if next.is_none() {
            return Ok(());
        }
    }
}

pub async fn create_container(command: &CreateContainerCommand) -> Result<(), BlobToolError> {
    let containers = Containers::connect(&command.of.connection)?;
    let container = containers.container(&command.of.container)?;
    let access = match command.public {
        None => PublicAccess::Private,
        Some(Public::Blob) => PublicAccess::Blobs,
        Some(Public::Container) => PublicAccess::Container,
    };
    let created = container.create(&command.metadata.iter().cloned().collect(), access).await;
    created.map_err(|error| containers.failed(container.name(), error))?;
    Ok(say(&format!("created {}", container.name()))?)
}

pub async fn delete_container(command: &OneContainer) -> Result<(), BlobToolError> {
    let containers = Containers::connect(&command.connection)?;
    let container = containers.container(&command.container)?;
    container.drop().await.map_err(|error| containers.failed(container.name(), error))?;
    Ok(say(&format!("deleted {}", container.name()))?)
}

pub async fn put(command: &BlobPutCommand) -> Result<(), BlobToolError> {
    let of = Chosen::new(&command.of, None)?;
    let mut options = UploadOptions::new()
        .metadata(command.metadata.iter().cloned().collect())
        .tags(command.tag.iter().cloned().collect())
        .parallel(usize::from(command.parallel));
    if let Some(content_type) = &command.content_type {
        options = options.content_type(content_type);
    }
    let blob = if command.if_absent { of.blob.if_absent() } else { of.blob.clone() };
    let written = match &command.file {
        Some(path) => {
            let file = File::open(path)
                .map_err(|source| BlobToolError::Unreadable { path: path.clone(), source })?;
            blob.upload_stream(pieces(file), &options).await
        }
        None => blob.upload_stream(pieces(io::stdin()), &options).await,
    };
    let written = written.map_err(|error| of.failed(error))?;
    Ok(say(&format!("put {} {}", of.what, written.etag))?)
}

fn pieces(input: impl io::Read) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(input, |mut input| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let length = input.read(&mut piece)?;
        piece.truncate(length);
        Ok((length > 0).then_some((piece.into(), input)))
    })
}

pub async fn get(command: &BlobGetCommand) -> Result<BlobOutcome, BlobToolError> {
    let of = Chosen::new(&command.of, command.snapshot.as_deref())?;
    let Some(mut download) = of.found(of.blob.download().await)? else { return Ok(BlobOutcome::NotFound) };
    match &command.to {
        None => {
            let mut out = io::stdout().lock();
            while let Some(piece) = download.next().await.map_err(|error| of.failed(error))? {
                out.write_all(&piece)?;
            }
            out.flush()?;
        }
        Some(path) => {
            let unwritten = |source| BlobToolError::Unwritten { path: path.clone(), source };
            let mut file = File::create(path).map_err(unwritten)?;
            while let Some(piece) = download.next().await.map_err(|error| of.failed(error))? {
                file.write_all(&piece).map_err(unwritten)?;
            }
            file.sync_all().map_err(unwritten)?;
        }
    }
    Ok(BlobOutcome::Done)
}

pub async fn show(command: &BlobShowCommand) -> Result<BlobOutcome, BlobToolError> {
    let of = Chosen::new(&command.of, command.snapshot.as_deref())?;
    let Some(properties) = of.found(of.blob.properties().await)? else { return Ok(BlobOutcome::NotFound) };
    let json = as_json(of.blob.name(), of.blob.snapshot_time(), &properties);
    let lines = json.as_object().into_iter().flatten().map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        format!("{name:<18} {}", fitted(&value, None))
    });
    Display::new(command.format).say(&lines.collect::<Vec<_>>().join("\n"), &json)?;
    Ok(BlobOutcome::Done)
}

pub async fn delete(command: &BlobDeleteCommand) -> Result<BlobOutcome, BlobToolError> {
    let of = Chosen::new(&command.of, command.snapshot.as_deref())?;
    let snapshots = if command.snapshots { DeleteSnapshots::Include } else { DeleteSnapshots::Refuse };
    match of.found(of.blob.delete(snapshots).await)? {
        Some(()) => say(&format!("deleted {}", of.what))?,
        None => return Ok(BlobOutcome::NotFound),
    }
    Ok(BlobOutcome::Done)
}

/// What is not set is left out.
fn as_json(name: &str, snapshot: Option<&str>, of: &BlobProperties) -> Value {
    let kind = match of.blob_type {
        BlobType::Block => "block",
        BlobType::Append => "append",
        BlobType::Page => "page",
    };
    let mut json = json!({
        "name": name, "type": kind, "length": of.length, "etag": of.etag.as_str(),
        "lastModified": of.last_modified.to_seconds_string(),
    });
    for (name, value) in [
        ("snapshot", snapshot),
        ("contentType", of.headers.content_type.as_deref()),
        ("contentEncoding", of.headers.encoding.as_deref()),
        ("contentLanguage", of.headers.language.as_deref()),
        ("contentDisposition", of.headers.disposition.as_deref()),
        ("cacheControl", of.headers.cache_control.as_deref()),
        ("contentMD5", of.headers.md5.as_deref()),
        ("tier", of.tier.as_deref()),
    ] {
        if let Some(value) = value {
            json[name] = value.into();
        }
    }
    if !of.metadata.is_empty() {
        json["metadata"] = json!(of.metadata);
    }
    if of.tag_count > 0 {
        json["tagCount"] = of.tag_count.into();
    }
    if let Some(lease) = of.lease {
        json["lease"] = format!("{lease:?}").to_lowercase().into();
    }
    json
}

fn say(text: &str) -> io::Result<()> {
    Display::new(Shown::Text).say(text, &())
}
