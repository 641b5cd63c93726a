//! What an archivist asks of its blobs, as a request and as a change of what must be there.

use serde::{Deserialize, Serialize};

use crate::blob_client::{BlobClient, block_id};
use crate::shelf::{Piece, SLOT_BYTES, SLOTS, Shelf, Snapshot, Version};
use crate::wire::Answer;

/// Blobs by what they are: the first are block blobs, then append blobs, then page blobs.
pub const BLOCK_BLOBS: usize = 3;
pub const APPEND_BLOBS: usize = 2;
pub const PAGE_BLOBS: usize = 2;
pub const SHELVES: usize = BLOCK_BLOBS + APPEND_BLOBS + PAGE_BLOBS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Block,
    Append,
    Page,
}

pub fn kind(shelf: usize) -> Kind {
    match shelf {
        0..BLOCK_BLOBS => Kind::Block,
        shelf if shelf < BLOCK_BLOBS + APPEND_BLOBS => Kind::Append,
        _ => Kind::Page,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filing {
    /// Which blob.
    pub shelf: usize,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    Put {
        number: u32,
        length: u32,
    },
    PutBlock {
        block: u8,
        number: u32,
        length: u32,
    },
    Commit {
        number: u32,
        blocks: Vec<u8>,
    },
    CreateAppend {
        number: u32,
    },
    Append {
        number: u32,
        length: u32,
    },
    CreatePages {
        number: u32,
    },
    /// Slots; number 0 clears them.
    WritePages {
        number: u32,
        first: u32,
        count: u32,
    },
    /// What the other blob is when it is copied.
    Copy {
        from: usize,
        version: Version,
    },
    Snapshot,
    DeleteSnapshot {
        time: String,
    },
    Delete,
    Acquire {
        number: u32,
    },
    Release,
    /// A write to a leased blob without its lease: it must be refused.
    Trespass {
        number: u32,
    },
}

/// How a filing was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filed {
    Done,
    /// A snapshot of this time.
    Taken(String),
    Refused(u16),
    Unknown,
}

pub fn blob_name(shelf: usize) -> String {
    format!("{:?}/{shelf}", kind(shelf))
}

fn piece(number: u32, length: u32) -> Piece {
    Piece { number, length, block: None }
}

fn pages(number: u32, count: u32) -> Vec<Piece> {
    (0..count).map(|_| piece(number, SLOT_BYTES)).collect()
}

fn lease_id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

impl Filing {
    /// Whether it changes what readers see.
    pub fn changes_content(&self) -> bool {
        !matches!(
            self.what,
            What::PutBlock { .. }
                | What::Snapshot
                | What::DeleteSnapshot { .. }
                | What::Acquire { .. }
                | What::Release
                | What::Trespass { .. }
        )
    }

    /// What is there once it is done. The time of a snapshot is not known yet.
    pub fn apply(&self, before: &Shelf) -> Shelf {
        let mut shelf = before.clone();
        match &self.what {
            What::Put { number, length } => {
                shelf.replace(Version { number: *number, pieces: vec![piece(*number, *length)] });
            }
            What::CreateAppend { number } => shelf.replace(Version { number: *number, pieces: Vec::new() }),
            What::CreatePages { number } => {
                shelf.replace(Version { number: *number, pieces: pages(0, SLOTS) });
            }
            What::Copy { version, .. } => shelf.replace(version.clone()),
            What::PutBlock { block, number, length } => {
                shelf.blocks.insert(*block, Piece { block: Some(*block), ..piece(*number, *length) });
            }
            What::Commit { number, blocks } => {
                let pieces = blocks.iter().filter_map(|block| before.block(*block)).collect();
                shelf.replace(Version { number: *number, pieces });
            }
            What::Append { number, length } => {
                if let Some(blob) = &mut shelf.blob {
                    blob.pieces.push(piece(*number, *length));
                }
            }
            What::WritePages { number, first, count } => {
                let (first, end) = (*first as usize, (*first + *count) as usize);
                if let Some(slots) = shelf.blob.as_mut().and_then(|blob| blob.pieces.get_mut(first..end)) {
                    slots.copy_from_slice(&pages(*number, *count));
                }
            }
            What::Snapshot => {
                if let Some(version) = before.blob.clone() {
                    shelf.snapshots.push(Snapshot { time: None, version });
                }
            }
            What::DeleteSnapshot { time } => {
                shelf.snapshots.retain(|snapshot| snapshot.time.as_ref() != Some(time));
            }
            What::Delete => shelf = Shelf::default(),
            What::Acquire { number } => shelf.lease = Some(*number),
            What::Release => shelf.lease = None,
            What::Trespass { .. } => {}
        }
        shelf
    }

    /// `None` if there was no answer.
    pub async fn send(&self, client: &mut BlobClient, owner: usize, shelf: &Shelf) -> Option<Answer> {
        let name = blob_name(self.shelf);
        let lease = shelf.lease.map(|lease| format!("x-ms-lease-id: {}\r\n", lease_id(lease)));
        let lease = lease.unwrap_or_default();
        let made = |number: &u32, more: &str| format!("{lease}x-ms-meta-number: {number}\r\n{more}");
        let (query, headers, body) = match &self.what {
            What::Put { number, length } => {
                let body = piece(*number, *length).bytes(owner);
                (String::new(), made(number, "x-ms-blob-type: BlockBlob\r\n"), body)
            }
            What::PutBlock { block, number, length } => {
                let body = Piece { block: Some(*block), ..piece(*number, *length) }.bytes(owner);
                (format!("comp=block&blockid={}&", block_id(*block)), lease, body)
            }
            What::Commit { number, blocks } => {
                let latest = |block: &u8| format!("<Latest>{}</Latest>", block_id(*block));
                let list: String = blocks.iter().map(latest).collect();
                let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>");
                ("comp=blocklist&".to_owned(), made(number, ""), body.into_bytes())
            }
            What::CreateAppend { number } => {
                (String::new(), made(number, "x-ms-blob-type: AppendBlob\r\n"), Vec::new())
            }
            What::Append { number, length } => {
                ("comp=appendblock&".to_owned(), lease, piece(*number, *length).bytes(owner))
            }
            What::CreatePages { number } => {
                let length = SLOTS * SLOT_BYTES;
                let more = format!("x-ms-blob-type: PageBlob\r\nx-ms-blob-content-length: {length}\r\n");
                (String::new(), made(number, &more), Vec::new())
            }
            What::WritePages { number, first, count } => {
                let (verb, body) = match number {
                    0 => ("clear", Vec::new()),
                    number => {
                        ("update", Version { number: 0, pieces: pages(*number, *count) }.content(owner))
                    }
                };
                let (start, end) = (first * SLOT_BYTES, (first + count) * SLOT_BYTES - 1);
                let headers =
                    format!("{lease}x-ms-page-write: {verb}\r\nx-ms-range: bytes={start}-{end}\r\n");
                ("comp=page&".to_owned(), headers, body)
            }
            What::Copy { from, .. } => {
                let source = client.url(&blob_name(*from));
                (String::new(), format!("{lease}x-ms-copy-source: {source}\r\n"), Vec::new())
            }
            What::Snapshot => ("comp=snapshot&".to_owned(), String::new(), Vec::new()),
            What::DeleteSnapshot { time } => (format!("snapshot={time}&"), String::new(), Vec::new()),
            What::Delete if shelf.blob.is_some() => {
                (String::new(), format!("{lease}x-ms-delete-snapshots: include\r\n"), Vec::new())
            }
            What::Delete => (String::new(), String::new(), Vec::new()),
            What::Acquire { number } => {
                let headers = format!(
                    "x-ms-lease-action: acquire\r\nx-ms-lease-duration: -1\r\nx-ms-proposed-lease-id: {}\r\n",
                    lease_id(*number)
                );
                ("comp=lease&".to_owned(), headers, Vec::new())
            }
            What::Release => {
                ("comp=lease&".to_owned(), format!("{lease}x-ms-lease-action: release\r\n"), Vec::new())
            }
            What::Trespass { number } => {
                let headers = format!("x-ms-meta-number: {number}\r\nx-ms-blob-type: BlockBlob\r\n");
                (String::new(), headers, piece(*number, 100).bytes(owner))
            }
        };
        let method = match self.what {
            What::Delete | What::DeleteSnapshot { .. } => "DELETE",
            _ => "PUT",
        };
        client.ask(method, &name, &query, &headers, &body).await
    }

    /// What an answer says; an error if it can't be right.
    pub fn understand(&self, answer: Option<&Answer>) -> Result<Filed, String> {
        let Some(answer) = answer else { return Ok(Filed::Unknown) };
        let is_trespass = matches!(self.what, What::Trespass { .. });
        match answer.status {
            // While the disk fails, a 5xx proves nothing.
            500.. => Ok(Filed::Unknown),
            412 if is_trespass => Ok(Filed::Refused(412)),
            200..300 if !is_trespass => match (&self.what, answer.header("x-ms-snapshot")) {
                (What::Snapshot, Some(time)) => Ok(Filed::Taken(time.to_owned())),
                (What::Snapshot, None) => Err("a snapshot has no time".to_owned()),
                _ => Ok(Filed::Done),
            },
            status => Err(format!("{self:?} was answered with {status}: {}", answer.text())),
        }
    }
}

impl Shelf {
    /// Another blob at the same name. Snapshots and the lease stay, uncommitted blocks do not.
    fn replace(&mut self, version: Version) {
        self.blob = Some(version);
        self.blocks.clear();
    }

    /// The block that a list with this id takes: the latest.
    fn block(&self, id: u8) -> Option<Piece> {
        let committed = || self.blob.as_ref()?.pieces.iter().find(|piece| piece.block == Some(id)).copied();
        self.blocks.get(&id).copied().or_else(committed)
    }

    /// Ids of the blocks that a list may name.
    pub fn block_ids(&self) -> Vec<u8> {
        let committed = self.blob.iter().flat_map(|blob| &blob.pieces).filter_map(|piece| piece.block);
        let mut ids: Vec<u8> = self.blocks.keys().copied().chain(committed).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
