//! A client of blobs that knows only their protocol: one connection, one request at a time.
//!
//! It signs nothing: a token of the development account, made once, is good for all that it does.

use std::collections::BTreeMap;

use crate::shelf::{Observed, ObservedVersion};
use crate::wire::{Answer, Wire};

/// Signed with the published key of the development account, for all operations on blobs, until 2099.
const TOKEN: &str = "sv=2021-02-12&ss=b&srt=sco&sp=rwdlacup&se=2099-01-01T00:00:00Z&spr=https,http\
                     &sig=aWSRoTcv%2B2ynhS2uvD4dv4pdHxbjHxWmpIB4V7eKRfM%3D";
const ACCOUNT: &str = "/devstoreaccount1";
/// More than an archivist has.
const LISTED_MAX: usize = 5000;

#[derive(Debug)]
pub struct BlobClient {
    wire: Wire,
    /// The address of its container.
    container: String,
}

/// What is said of one blob in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// It, or uncommitted blocks of it.
    pub is_base: bool,
    pub is_leased: bool,
    pub snapshots: Vec<String>,
}

impl BlobClient {
    pub fn new(authority: &str, container: &str) -> Self {
        Self { wire: Wire::new(authority), container: format!("{ACCOUNT}/{container}") }
    }

    pub async fn create(&mut self) -> Option<u16> {
        let target = format!("{}?restype=container&{TOKEN}", self.container);
        Some(self.wire.ask("PUT", &target, "", b"").await?.status)
    }

    /// One request to a blob. `query` ends in `&` unless it is empty, `headers` are whole lines.
    pub async fn ask(
        &mut self,
        method: &str,
        blob: &str,
        query: &str,
        headers: &str,
        body: &[u8],
    ) -> Option<Answer> {
        let target = format!("{}/{blob}?{query}{TOKEN}", self.container);
        self.wire.ask(method, &target, headers, body).await
    }

    /// The URL of a blob, with which it can be copied.
    pub fn url(&self, blob: &str) -> String {
        format!("http://{}{}/{blob}?{TOKEN}", self.wire.authority(), self.container)
    }

    /// The blob, or its snapshot of this time: `None` if there was no answer in time, which a server whose clocks are moved says
    /// itself; `Ok(None)` if there is no such blob.
    pub async fn try_get(
        &mut self,
        blob: &str,
        snapshot: Option<&str>,
    ) -> Option<Result<Option<ObservedVersion>, String>> {
        let query = snapshot.map_or_else(String::new, |time| format!("snapshot={time}&"));
        let answer = self.ask("GET", blob, &query, "", b"").await?;
        let number = answer.header("x-ms-meta-number").and_then(|number| number.parse().ok());
        Some(match (answer.status, number) {
            (200, Some(number)) => Ok(Some(ObservedVersion { number, content: answer.body })),
            (200, None) => Err("it has no number in its metadata".to_owned()),
            (404, _) => Ok(None),
            (500, _) if answer.text().contains("<Code>OperationTimedOut</Code>") => return None,
            (status, _) => Err(format!("a Get was answered with {status}: {}", answer.text())),
        })
    }

    /// Of a server that must answer.
    async fn get(&mut self, blob: &str, snapshot: Option<&str>) -> Result<Option<ObservedVersion>, String> {
        self.try_get(blob, snapshot).await.unwrap_or_else(|| Err("a Get was not answered".to_owned()))
    }

    /// Everything that is in the container, by name.
    pub async fn list(&mut self) -> Result<BTreeMap<String, Listed>, String> {
        let include = "include=snapshots,uncommittedblobs";
        let target = format!("{}?restype=container&comp=list&{include}&{TOKEN}", self.container);
        let answer = self.wire.ask("GET", &target, "", b"").await.ok_or("a list was not answered")?;
        match answer.status {
            200 => read_list(&answer.text()),
            status => Err(format!("a list was answered with {status}: {}", answer.text())),
        }
    }

    /// Lengths of the uncommitted blocks, by id.
    pub async fn blocks(&mut self, blob: &str) -> Result<BTreeMap<u8, u32>, String> {
        let query = "comp=blocklist&blocklisttype=uncommitted&";
        let answer = self.ask("GET", blob, query, "", b"").await.ok_or("a block list was not answered")?;
        match answer.status {
            200 => read_blocks(&answer.text()),
            404 => Ok(BTreeMap::new()),
            status => Err(format!("a block list was answered with {status}: {}", answer.text())),
        }
    }

    /// All of one blob.
    pub async fn observe(
        &mut self,
        blob: &str,
        listed: &Listed,
        has_blocks: bool,
    ) -> Result<Observed, String> {
        let mut observed = Observed {
            is_listed: listed.is_base,
            is_leased: listed.is_leased,
            blob: self.get(blob, None).await?,
            ..Observed::default()
        };
        if has_blocks {
            observed.blocks = self.blocks(blob).await?;
        }
        for time in &listed.snapshots {
            let snapshot = self.get(blob, Some(time)).await?;
            let snapshot = snapshot.ok_or_else(|| format!("the snapshot {time} is only in the list"))?;
            observed.snapshots.insert(time.clone(), snapshot);
        }
        Ok(observed)
    }
}

/// The lab's own names need no escapes.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}

fn read_list(document: &str) -> Result<BTreeMap<String, Listed>, String> {
    let mut blobs = BTreeMap::<String, Listed>::new();
    let entries = document.split("<Blob>").skip(1);
    if entries.clone().count() >= LISTED_MAX {
        return Err("a list has more than one page".to_owned());
    }
    for entry in entries {
        let name = element(entry, "Name").ok_or_else(|| format!("a blob without a name in {document}"))?;
        let blob = blobs.entry(name.to_owned()).or_default();
        match element(entry, "Snapshot") {
            Some(time) => blob.snapshots.push(time.to_owned()),
            None => {
                blob.is_base = true;
                blob.is_leased = element(entry, "LeaseState") == Some("leased");
            }
        }
    }
    Ok(blobs)
}

fn read_blocks(document: &str) -> Result<BTreeMap<u8, u32>, String> {
    let read = |entry: &str| {
        let id = block_number(element(entry, "Name")?)?;
        Some((id, element(entry, "Size")?.parse().ok()?))
    };
    let blocks = document.split("<Block>").skip(1);
    let blocks: Option<BTreeMap<u8, u32>> = blocks.map(read).collect();
    blocks.ok_or_else(|| format!("a block that nobody put in {document}"))
}

/// The Base64 of three digits.
pub fn block_id(number: u8) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes = format!("{number:03}").bytes().fold(0_usize, |sum, byte| sum << 8 | usize::from(byte));
    (0..4).rev().map(|at| char::from(DIGITS[bytes >> (6 * at) & 63])).collect()
}

fn block_number(id: &str) -> Option<u8> {
    (0..=u8::MAX).find(|number| block_id(*number) == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read() {
        assert_eq!(block_id(7), "MDA3");
        assert_eq!(block_number("MjU1"), Some(255));
        let blocks = "<BlockList><UncommittedBlocks><Block><Name>MDA3</Name><Size>9</Size></Block>\
                      </UncommittedBlocks></BlockList>";
        assert_eq!(read_blocks(blocks), Ok([(7, 9)].into()));
        let list = "<Blobs><Blob><Name>b</Name><Snapshot>t</Snapshot></Blob><Blob><Name>b</Name>\
                    <Properties><LeaseState>leased</LeaseState></Properties></Blob></Blobs>";
        let listed = Listed { is_base: true, is_leased: true, snapshots: vec!["t".to_owned()] };
        assert_eq!(read_list(list), Ok([("b".to_owned(), listed)].into()));
    }
}
