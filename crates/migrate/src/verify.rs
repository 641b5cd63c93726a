//! Compares two stores byte by byte.

use model::{AccountName, ServiceKind};
use sha2::{Digest as _, Sha256};
use store::{StoredRef, TableRef};

use crate::content::{ContentCopy, Walk};
use crate::error::{Difference, DifferenceKind, Error, Side};
use crate::merge::{PairedRows, RowPair};
use crate::patience::persist;
use crate::rows::Rows;
use crate::tables;
use crate::{MigrationProgress, ProgressWatch, Shared, WATCH_EVERY};

/// All tables of the accounts, in order. Each is the same on both sides.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    pub tables: Vec<VerifiedTable>,
    /// Objects that rows name, and their bytes.
    pub objects: u64,
    pub object_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct VerifiedTable {
    pub table: TableRef,
    pub entities: u64,
    /// Of stored rows.
    pub bytes: u64,
    /// SHA-256 of all keys and rows, in order.
    pub digest: [u8; 32],
}

impl VerifyReport {
    pub fn entities(&self) -> u64 {
        self.tables.iter().map(|table| table.entities).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// Reads both sides to the end. The first difference is an error.
pub async fn verify(
    source: &Shared,
    target: &Shared,
    accounts: &[AccountName],
    watch: ProgressWatch<'_>,
    content: &ContentCopy,
) -> Result<VerifyReport, Error> {
    let mut verified = VerifyReport::default();
    let mut content = Walk::new(content);
    for account in accounts {
        check_properties(source, target, account).await?;
        for table in check_tables(source, target, account).await? {
            check_policies(source, target, &table).await?;
            let seen = verified.entities();
            let both = Both { source, target, watch };
            verified.tables.push(check_rows(both, table, seen, &mut content).await?);
        }
    }
    (verified.objects, verified.object_bytes) = (content.objects, content.bytes);
    Ok(verified)
}

async fn check_properties(source: &Shared, target: &Shared, account: &AccountName) -> Result<(), Error> {
    let of = |side| Error::of_account(side, account);
    for service in ServiceKind::ALL {
        let ours = persist(|| source.service_metadata(account, service)).await.map_err(of(Side::Source))?;
        let theirs = persist(|| target.service_metadata(account, service)).await.map_err(of(Side::Target))?;
        if ours != theirs {
            let found = DifferenceKind::OtherMetadata;
            return Err(Difference { account: account.clone(), table: None, key: None, found }.into());
        }
    }
    Ok(())
}

async fn check_tables(
    source: &Shared,
    target: &Shared,
    account: &AccountName,
) -> Result<Vec<TableRef>, Error> {
    let ours = tables::list(Side::Source, source, account).await?;
    let theirs = tables::list(Side::Target, target, account).await?;
    let differs = |table: &TableRef, found| Err(Difference::of_table(table, None, found).into());
    for (stored_name, table) in &ours {
        match theirs.get(stored_name) {
            None => return differs(table, DifferenceKind::OnlyIn(Side::Source)),
            Some(other) if other.name.as_str() != table.name.as_str() => {
                return differs(table, DifferenceKind::Other);
            }
            Some(_) => {}
        }
    }
    if let Some((_, table)) = theirs.iter().find(|(stored_name, _)| !ours.contains_key(*stored_name)) {
        return differs(table, DifferenceKind::OnlyIn(Side::Target));
    }
    Ok(ours.into_values().collect())
}

async fn check_policies(source: &Shared, target: &Shared, table: &TableRef) -> Result<(), Error> {
    let of = |side| Error::of_table(side, table);
    let ours = persist(|| source.table_metadata(table)).await.map_err(of(Side::Source))?;
    let theirs = persist(|| target.table_metadata(table)).await.map_err(of(Side::Target))?;
    if ours == theirs {
        return Ok(());
    }
    Err(Difference::of_table(table, None, DifferenceKind::OtherMetadata).into())
}

struct Both<'a> {
    source: &'a Shared,
    target: &'a Shared,
    watch: ProgressWatch<'a>,
}

async fn check_rows(
    stores: Both<'_>,
    table: TableRef,
    seen: u64,
    content: &mut Walk<'_>,
) -> Result<VerifiedTable, Error> {
    let Both { source, target, watch } = stores;
    let rows = |side, engine| Rows::of(side, engine, &table);
    let mut both = PairedRows::new(rows(Side::Source, source), rows(Side::Target, target));
    let (mut entities, mut bytes, mut digest) = (0, 0, Sha256::new());
    while let Some(next) = both.next().await? {
        let (entity, found) = match next {
            RowPair::Both(ours, theirs) if ours.row.bytes() == theirs.row.bytes() => {
                if table.service == ServiceKind::Blob && content.compare(&table, ours).await?.is_some() {
                    return Err(differs(&table, ours, DifferenceKind::OtherContent)?.into());
                }
                take_in(&mut digest, ours);
                entities += 1;
                bytes += ours.row.bytes().len() as u64;
                if entities % WATCH_EVERY == 0 {
                    watch(MigrationProgress { table: &table, seen: seen + entities, changed: 0 });
                }
                continue;
            }
            RowPair::Both(ours, _) => (ours, DifferenceKind::Other),
            RowPair::Source(ours) => (ours, DifferenceKind::OnlyIn(Side::Source)),
            RowPair::Target(theirs) => (theirs, DifferenceKind::OnlyIn(Side::Target)),
        };
        return Err(differs(&table, entity, found)?.into());
    }
    watch(MigrationProgress { table: &table, seen: seen + entities, changed: 0 });
    Ok(VerifiedTable { table, entities, bytes, digest: digest.finalize().into() })
}

fn differs(table: &TableRef, entity: StoredRef<'_>, found: DifferenceKind) -> Result<Difference, Error> {
    let key = entity.key().map_err(|fault| Error::of_table(Side::Source, table)(fault.into()))?;
    Ok(Difference::of_table(table, Some(key), found))
}

/// Hashes lengths too, so that different tables can't give the same bytes.
fn take_in(digest: &mut Sha256, entity: StoredRef<'_>) {
    let parts = [entity.partition.as_bytes(), entity.row_key.as_bytes(), entity.row.bytes()];
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
}
