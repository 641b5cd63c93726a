//! One pass: makes the target a copy of a snapshot.

use bytes::Bytes;
use model::{AccountName, ServiceKind};
use store::TableRef;

use crate::content::{ContentCopy, Walk};
use crate::error::{Error, Side};
use crate::loader::Loader;
use crate::merge::{PairedRows, RowPair};
use crate::patience::persist;
use crate::rows::Rows;
use crate::tables::{self, Holds, Settler};
use crate::{MigrationProgress, ProgressWatch, Shared, WATCH_EVERY};

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    pub tables: u64,
    /// Entities of the source.
    pub entities: u64,
    pub stored: u64,
    pub removed: u64,
    pub dropped_tables: u64,
    /// Objects that were copied, and their bytes.
    pub objects: u64,
    pub object_bytes: u64,
}

impl PassReport {
    pub fn changed(&self) -> u64 {
        self.stored + self.removed + self.dropped_tables
    }
}

/// Makes the target a copy of the snapshot, for these accounts.
///
/// `known` is an earlier snapshot that the target is a copy of. Then the two snapshots are compared, which are on the
/// same machine, and only changes are written. Without it the target itself is read.
pub async fn pass(
    snapshot: &Shared,
    known: Option<&Shared>,
    target: &Shared,
    accounts: &[AccountName],
    watch: ProgressWatch<'_>,
    content: &ContentCopy,
) -> Result<PassReport, Error> {
    let content = Walk::new(content);
    let mut pass = Pass { snapshot, known, target, watch, content, passed: PassReport::default() };
    for account in accounts {
        pass.account(account).await?;
    }
    let Pass { content: Walk { objects, bytes: object_bytes, .. }, passed, .. } = pass;
    Ok(PassReport { objects, object_bytes, ..passed })
}

struct Pass<'a> {
    snapshot: &'a Shared,
    known: Option<&'a Shared>,
    target: &'a Shared,
    watch: ProgressWatch<'a>,
    content: Walk<'a>,
    passed: PassReport,
}

impl Pass<'_> {
    async fn account(&mut self, account: &AccountName) -> Result<(), Error> {
        let wanted = tables::list(Side::Source, self.snapshot, account).await?;
        let present = tables::list(Side::Target, self.target, account).await?;
        let settler = Settler { target: self.target, present: &present };
        for (_, table) in present.iter().filter(|(stored_name, _)| !wanted.contains_key(*stored_name)) {
            settler.drop(table).await?;
            self.passed.dropped_tables += 1;
        }
        for table in wanted.into_values() {
            self.table(&settler, &table).await?;
            self.passed.tables += 1;
        }
        for service in ServiceKind::ALL {
            self.properties(account, service).await?;
        }
        Ok(())
    }

    async fn properties(&self, account: &AccountName, service: ServiceKind) -> Result<(), Error> {
        let of = |side| Error::of_account(side, account);
        let wanted = persist(|| self.snapshot.service_metadata(account, service)).await;
        let wanted = wanted.map_err(of(Side::Source))?;
        let found = persist(|| self.target.service_metadata(account, service)).await;
        let found = found.map_err(of(Side::Target))?;
        match wanted {
            None if found.is_some() => Err(Error::PropertiesStay { account: account.clone() }),
            Some(wanted) if found.as_ref() != Some(&wanted) => {
                self.replace_properties(account, service, found, wanted).await.map_err(of(Side::Target))
            }
            _ => Ok(()),
        }
    }

    /// Tries again if the target changed meanwhile: an earlier answer may have been lost.
    async fn replace_properties(
        &self,
        account: &AccountName,
        service: ServiceKind,
        mut found: Option<Bytes>,
        wanted: Bytes,
    ) -> Result<(), store::Error> {
        while found.as_ref() != Some(&wanted) {
            let replace =
                || self.target.replace_service_metadata(account, service, found.clone(), wanted.clone());
            if persist(replace).await? {
                return Ok(());
            }
            found = persist(|| self.target.service_metadata(account, service)).await?;
        }
        Ok(())
    }

    async fn table(&mut self, settler: &Settler<'_>, table: &TableRef) -> Result<(), Error> {
        let failed = Error::of_table(Side::Source, table);
        let metadata = persist(|| self.snapshot.table_metadata(table)).await.map_err(&failed)?;
        let held = match settler.settle(table, metadata).await? {
            Holds::Nothing => Rows::none(Side::Target, table),
            Holds::WhatItHeld => match self.known_with(table).await? {
                Some(known) => Rows::of(Side::Source, known, table),
                None => Rows::of(Side::Target, self.target, table),
            },
        };
        let mut rows = PairedRows::new(Rows::of(Side::Source, self.snapshot, table), held);
        let mut loader = Loader::new(self.target, table);
        let mut seen = 0_u64;
        while let Some(next) = rows.next().await? {
            match next {
                // Versions of a row have different timestamps, so most differences are in the first bytes.
                RowPair::Both(source, held) if source.row.bytes() == held.row.bytes() => {
                    if table.service == ServiceKind::Blob {
                        self.content.mend(table, source).await?;
                    }
                }
                RowPair::Source(source) | RowPair::Both(source, _) => {
                    if table.service == ServiceKind::Blob {
                        self.content.copy(table, source).await?;
                    }
                    loader.put(source).await?;
                    self.passed.stored += 1;
                }
                RowPair::Target(held) => {
                    loader.remove(held).await?;
                    self.passed.removed += 1;
                }
            }
            if !matches!(next, RowPair::Target(_)) {
                self.passed.entities += 1;
            }
            seen += 1;
            if seen.is_multiple_of(WATCH_EVERY) {
                self.tell(table);
            }
        }
        loader.finish().await?;
        self.tell(table);
        Ok(())
    }

    /// The earlier snapshot, if it has this table.
    async fn known_with(&self, table: &TableRef) -> Result<Option<&Shared>, Error> {
        let Some(known) = self.known else { return Ok(None) };
        match persist(|| known.find_table(table)).await {
            Ok(_) => Ok(Some(known)),
            Err(store::Error::TableNotFound) => Ok(None),
            Err(error) => Err(Error::of_table(Side::Source, table)(error)),
        }
    }

    fn tell(&self, table: &TableRef) {
        (self.watch)(MigrationProgress { table, seen: self.passed.entities, changed: self.passed.changed() });
    }
}
