//! What blobs should do, said once more and differently: whole contents in memory, no rows, no objects, no versions.

use std::collections::BTreeMap;

use blob_model::{AccessTier, BlockChoice, DateTime, Etag, LeaseId, Leased, Metadata, SnapshotTime, Tags};

use crate::oracle::{LeaseOracle, Told};

#[derive(Clone, Debug, Default)]
pub struct BlobOracle {
    pub blobs: BTreeMap<&'static str, Name>,
}

/// All that there is under one name.
#[derive(Clone, Debug, Default)]
pub struct Name {
    pub base: Option<State>,
    /// By their ids.
    pub uncommitted: Option<BTreeMap<&'static str, Vec<u8>>>,
    /// The oldest first. Of what was overwritten nobody was told the time.
    pub snapshots: Vec<(Option<SnapshotTime>, State)>,
}

#[derive(Clone, Debug)]
pub struct State {
    pub etag: Etag,
    pub created: DateTime,
    pub content: Vec<u8>,
    pub kind: Kind,
    pub metadata: Metadata,
    pub tags: Tags,
    pub language: Option<String>,
    pub lease: LeaseOracle,
    pub is_copy: bool,
    /// Until when it can be restored.
    pub deleted: Option<DateTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its tier, what it will be, and its blocks with their lengths.
    Block(AccessTier, Option<AccessTier>, Vec<(&'static str, usize)>),
    Append {
        blocks: u32,
        is_sealed: bool,
    },
}

/// Content, and its blocks with their lengths.
pub type Chosen = (Vec<u8>, Vec<(&'static str, usize)>);

/// The conditions of a request, by what they come down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Nothing,
    Match(bool),
    NoneMatch(bool),
    Star,
    Tags(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Read,
    Write,
    Create,
    CopyTarget,
}

impl Asked {
    /// For a blob that is there, or for none.
    pub fn check(self, is_there: bool, on: On, holds_lease: bool) -> Told<()> {
        const NOT_MET: Told<()> = Err("ConditionNotMet");
        let target = if on == On::CopyTarget { Err("TargetConditionNotMet") } else { NOT_MET };
        match (self, is_there) {
            (Self::Nothing | Self::NoneMatch(_) | Self::Star, false) => Ok(()),
            (Self::Match(_), false) => target,
            (Self::Tags(_), false) => NOT_MET,
            (Self::Nothing, true) => Ok(()),
            (Self::Match(holds) | Self::NoneMatch(holds), true) => {
                if holds {
                    Ok(())
                } else {
                    target
                }
            }
            (Self::Tags(holds), true) => {
                if holds {
                    Ok(())
                } else {
                    NOT_MET
                }
            }
            (Self::Star, true) if holds_lease => Ok(()),
            (Self::Star, true) => match on {
                On::Create | On::CopyTarget => Err("BlobAlreadyExists"),
                On::Read | On::Write => NOT_MET,
            },
        }
    }
}

impl State {
    pub fn is_block(&self) -> bool {
        matches!(self.kind, Kind::Block(..))
    }

    pub fn online(&self) -> Told<()> {
        match self.kind {
            Kind::Block(AccessTier::Archive, ..) => Err("BlobArchived"),
            _ => Ok(()),
        }
    }

    pub fn readable(&self) -> Told<&[u8]> {
        self.online().map(|()| self.content.as_slice())
    }

    pub fn check(
        &self,
        asked: Asked,
        on: On,
        named: Option<LeaseId>,
        needs: bool,
        now: DateTime,
    ) -> Told<()> {
        self.lease.check(named, needs, now, Leased::Blob)?;
        asked.check(true, on, named.is_some())
    }
}

impl Name {
    pub fn live(&self) -> Told<&State> {
        self.base.as_ref().filter(|base| base.deleted.is_none()).ok_or("BlobNotFound")
    }

    pub fn live_mut(&mut self) -> Option<&mut State> {
        self.base.as_mut().filter(|base| base.deleted.is_none())
    }

    pub fn snapshot(&self, time: SnapshotTime) -> Told<&State> {
        let found = self.snapshots.iter().find(|(of, state)| *of == Some(time) && state.deleted.is_none());
        found.map(|(_, state)| state).ok_or("BlobNotFound")
    }

    /// Whether a new blob may be put here.
    pub fn check_new(
        &self,
        asked: Asked,
        on: On,
        named: Option<LeaseId>,
        names_tier: bool,
        now: DateTime,
    ) -> Told<()> {
        match self.live() {
            Ok(there) => {
                there.check(asked, on, named, true, now)?;
                if names_tier { Ok(()) } else { there.online() }
            }
            Err(_) if named.is_some() => Err("LeaseNotPresentWithBlobOperation"),
            Err(_) => asked.check(false, on, false),
        }
    }

    /// Puts a blob over what is there, which is kept if deleted blobs are.
    pub fn put(&mut self, mut new: State, keeps_until: Option<DateTime>, now: DateTime) {
        if let Some(mut old) = self.base.take() {
            if old.deleted.is_none() {
                new.lease = old.lease;
                new.lease.after_write(now);
                old.deleted = keeps_until;
            } else {
                old.deleted = old.deleted.filter(|until| now < *until);
            }
            if old.deleted.is_some() {
                self.snapshots.push((None, State { lease: LeaseOracle::default(), ..old }));
            }
        }
        self.base = Some(new);
        self.uncommitted = None;
    }

    /// The content and the blocks of a list.
    pub fn choose(&self, list: &[(BlockChoice, &'static str)]) -> Told<Chosen> {
        let committed = |id: &str| {
            let live = self.live().ok()?;
            let Kind::Block(_, _, blocks) = &live.kind else { return None };
            let mut at = 0;
            for (of, length) in blocks {
                if *of == id {
                    return Some(live.content[at..at + length].to_vec());
                }
                at += length;
            }
            None
        };
        let (mut content, mut blocks) = (Vec::new(), Vec::new());
        for (choice, id) in list {
            let uncommitted = self.uncommitted.as_ref().and_then(|blocks| blocks.get(id)).cloned();
            let block = match choice {
                BlockChoice::Committed => committed(id),
                BlockChoice::Uncommitted => uncommitted,
                BlockChoice::Latest => uncommitted.or_else(|| committed(id)),
            };
            let block = block.ok_or("InvalidBlockList")?;
            blocks.push((*id, block.len()));
            content.extend(block);
        }
        Ok((content, blocks))
    }
}
