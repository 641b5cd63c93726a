//! Whether two stores hold the same of an account, every byte of it.

use model::{AccountName, ServiceKind};
use sha2::{Digest as _, Sha256};
use store::{StoredRef, TableRef};

use crate::error::{Difference, Error, Found, Side};
use crate::merge::{Merge, Next};
use crate::patience::persist;
use crate::rows::Rows;
use crate::tables;
use crate::{Shared, Step, WATCH_EVERY, Watch};

/// Every table of the accounts, in order, each the same on both sides.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    pub tables: Vec<VerifiedTable>,
}

#[derive(Clone, Debug)]
pub struct VerifiedTable {
    pub table: TableRef,
    pub entities: u64,
    /// Of stored rows.
    pub bytes: u64,
    /// SHA-256 of all keys and rows in their order.
    pub digest: [u8; 32],
}

impl Verified {
    pub fn entities(&self) -> u64 {
        self.tables.iter().map(|table| table.entities).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// Reads both sides to the end, or to the first difference, which is an error.
pub async fn verify(
    source: &Shared,
    target: &Shared,
    accounts: &[AccountName],
    watch: Watch<'_>,
) -> Result<Verified, Error> {
    let mut verified = Verified::default();
    for account in accounts {
        check_properties(source, target, account).await?;
        for table in check_tables(source, target, account).await? {
            check_policies(source, target, &table).await?;
            let seen = verified.entities();
            verified.tables.push(check_rows(source, target, table, seen, watch).await?);
        }
    }
    Ok(verified)
}

async fn check_properties(source: &Shared, target: &Shared, account: &AccountName) -> Result<(), Error> {
    let of = |side| Error::of_account(side, account);
    for service in ServiceKind::ALL {
        let ours = persist(|| source.service_metadata(account, service)).await.map_err(of(Side::Source))?;
        let theirs = persist(|| target.service_metadata(account, service)).await.map_err(of(Side::Target))?;
        if ours != theirs {
            let found = Found::OtherMetadata;
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
            None => return differs(table, Found::OnlyIn(Side::Source)),
            Some(other) if other.name.as_str() != table.name.as_str() => return differs(table, Found::Other),
            Some(_) => {}
        }
    }
    if let Some((_, table)) = theirs.iter().find(|(stored_name, _)| !ours.contains_key(*stored_name)) {
        return differs(table, Found::OnlyIn(Side::Target));
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
    Err(Difference::of_table(table, None, Found::OtherMetadata).into())
}

async fn check_rows(
    source: &Shared,
    target: &Shared,
    table: TableRef,
    seen: u64,
    watch: Watch<'_>,
) -> Result<VerifiedTable, Error> {
    let rows = |side, engine| Rows::of(side, engine, &table);
    let mut both = Merge::new(rows(Side::Source, source), rows(Side::Target, target));
    let (mut entities, mut bytes, mut digest) = (0, 0, Sha256::new());
    while let Some(next) = both.next().await? {
        let (entity, found) = match next {
            Next::Both(ours, theirs) if ours.row.bytes() == theirs.row.bytes() => {
                take_in(&mut digest, ours);
                entities += 1;
                bytes += ours.row.bytes().len() as u64;
                if entities % WATCH_EVERY == 0 {
                    watch(Step { table: &table, seen: seen + entities, changed: 0 });
                }
                continue;
            }
            Next::Both(ours, _) => (ours, Found::Other),
            Next::Source(ours) => (ours, Found::OnlyIn(Side::Source)),
            Next::Target(theirs) => (theirs, Found::OnlyIn(Side::Target)),
        };
        let key = entity.key().map_err(|fault| Error::of_table(Side::Source, &table)(fault.into()))?;
        return Err(Difference::of_table(&table, Some(key), found).into());
    }
    watch(Step { table: &table, seen: seen + entities, changed: 0 });
    Ok(VerifiedTable { table, entities, bytes, digest: digest.finalize().into() })
}

/// Lengths first, so that no two tables read the same.
fn take_in(digest: &mut Sha256, entity: StoredRef<'_>) {
    let parts = [entity.partition.as_bytes(), entity.row_key.as_bytes(), entity.row.bytes()];
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
}
